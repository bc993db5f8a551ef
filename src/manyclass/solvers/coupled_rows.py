"""Whole rows of the coupled losses: full passes, and cheap ones between them on the classes in use."""

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data.json_content import as_declared
from ..peers import Alone, Peers
from ..problems import Problem
from .alike import groups_of_alike_rows
from .closed_form import bounds_are_optimal, state_at_bounds
from .layout import as_matrix, class_bounds, make_layout, tail_rows, wave_size
from .options import SolverOptions
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stored import fill, numbers_from_array, numbers_to_array, of_same_kinds, weights_from_arrays, weights_to_arrays
from .team_size import TeamSize

logger = logging.getLogger("manyclass")

# A call into the core takes about this many multiplications: some tenths of a second.
WORK_AT_ONCE = 5e8
KERNELS = {"coupled": "Coupled", "maximum_entropy": "MaximumEntropy"}
ANY_NUMBER = np.iinfo(np.int64).max
# Of classes, by which the alternating algorithm adds up their mean.
CHUNKS = 32
# A cheap pass gathers single weights, about this many times slower than reading whole rows of them.
GATHER_COST = 20
MOST_CHEAP_PASSES = 3
# Cheap passes have done their part when the gap on the classes in use is this share of the last full pass's.
CHEAP_ENOUGH = 0.2
# Rows of a wave that shorten each other's steps by more than this, on average, go in smaller waves.
LEAST_THETA = 0.5
# A pass sees each row before its own step, so the gap it adds up is larger than the one it leaves behind.
OPTIMISM = 1.5

# A fit that will need more full passes than this, after as many, is a hard one. It gets what easy ones do not need:
# steps beyond the best one of a row, groups of alike rows visited together again and again, and a model with the best
# factor on its weights.
EASY_PASSES = 10
RELAXATION = 1.5
ROUNDS_A_GROUP = 50
FACTORS = [1 + sign * 2.0**-e for e in range(1, 15) for sign in (1, -1)]
# How often such a fit looks at where it stands, in full passes.
LOOK_EVERY = 10

# What a checkpoint keeps besides the kernel's arrays and the two passes. Not the sizes of teams: results do not
# depend on them.
NUMBERS = (
    "_wave",
    "_full_passes",
    "_cheap_passes",
    "_believed",
    "_dual_bytes",
    "_loaded",
    "_from_state",
    "_scale",
    "_target",
)


@dataclass
class _Pass:
    """Sums over the rows visited so far in one pass; see PassStats in coupled/solver.hpp."""

    number: int
    full: bool
    order: np.ndarray
    done: int = 0
    loss: float = 0.0
    gap: float = 0.0
    alpha_sum: float = 0.0
    violation: float = 0.0
    waves: int = 0
    theta: float = 0.0

    def see(
        self, done: int, loss: float, gap: float, alpha_sum: float, violation: float, waves: int, theta: float
    ) -> None:
        self.done, self.waves, self.theta = done, waves, theta
        self.loss, self.gap, self.alpha_sum, self.violation = loss, gap, alpha_sum, violation

    def numbers(self) -> dict[str, Any]:
        """All but the order of the rows, which follows from the pass's number."""
        return {name: value for name, value in vars(self).items() if name != "order"}

    @property
    def primal(self) -> float:
        # gap = |W|^2 + loss - sum(alpha), so 1/2 |W|^2 follows from the sums.
        return 0.5 * (self.gap - self.loss + self.alpha_sum) + self.loss


def _passes_left(before: _Pass | None, last: _Pass, rule: StopRule) -> float:
    """Full passes to the target, at the pace of the last two."""
    if before is None:
        return np.inf
    was, now = (before.gap, last.gap) if rule.stop == "gap" else (before.violation, last.violation)
    target = rule.tol * (abs(last.primal) if rule.stop == "gap" else 1.0)
    if not 0 < now < was:
        return np.inf
    return max(0.0, np.log(now / max(target, 1e-300)) / np.log(was / now))


class CoupledRows(Solver):
    """Coordinate ascent on the dual, a row at a time; see `native/coupled/solver.hpp`."""

    def __init__(
        self,
        problem: Problem,
        data: TrainingSet,
        options: SolverOptions,
        *,
        interrupt: Any = None,
        peers: Peers | None = None,
    ):
        if problem.kernel not in KERNELS:
            raise ValueError(f"this solver trains coupled losses; {problem.name!r} is {problem.kernel!r}")
        self._problem, self._loss = problem, problem.name
        self._codes = data.codes
        self._dtype, self._seed, self._threads = np.dtype(options.dtype), options.seed, options.threads
        alternating = options.solver == "leagues"
        self._n, self._K = data.X.n_rows, data.n_classes
        self._C = data.C
        self._features = data.X.n_features + (data.constant != 0)
        self._width = data.X.nnz / max(1, self._n) + (data.constant != 0)
        self._wave = wave_size(data, problem)
        self._alternating = alternating
        sparse = problem.sparse_weights and not data.reduced
        tail = 0 if alternating else tail_rows(self._K) if sparse else 1
        layout = make_layout(data, self._dtype, tail)
        self._kernel = native(core, KERNELS[problem.kernel], self._dtype)(
            layout,
            data.codes,
            data.C.astype(self._dtype),
            self._K,
            self._loss,
            getattr(problem, "gamma", 0.5),
            data.reduced,
        )
        self._peers = peers or Alone()
        self._shared = self._peers.size > 1 and (self._wave > 1 or alternating) and not data.reduced
        self._chunks = class_bounds(self._K, CHUNKS)
        if self._shared:
            size = self._peers.size
            bounds = class_bounds(self._K, size)
            if alternating:
                bounds = [self._chunks[p * CHUNKS // size] for p in range(size + 1)]
            self._kernel.join(self._peers.gather, bounds, self._peers.rank)
        elif self._peers.size > 1:
            logger.info("rows are too little work to be shared among processes: each trains by itself")
        self._team = {full: TeamSize(self._threads) for full in (True, False)}
        self._pass = self._new_pass(0, full=True)
        self._full_passes = 0
        self._cheap_passes = 0  # since the last full one
        self._last_full: _Pass | None = None
        self._believed = OPTIMISM  # the estimated gap over the one a certificate will find
        self._dual_bytes = 0  # at their most: early on more variables are in use than in the end
        self._loaded = False
        self._groups: tuple[np.ndarray, np.ndarray] | None = None  # of a hard fit
        self._data: TrainingSet | None = data if problem.kernel == "coupled" and not alternating else None
        self._scale = 1.0  # of the model's weights
        self._from_state = False  # the next certificate is that of a state that was loaded
        self._target = 0.0  # relative gap
        self._said = Progress(0, np.nan, np.nan, np.nan, active=1.0, ready=False, pass_ended=False)
        if problem.name == "llw" and not alternating and bounds_are_optimal(data):
            self.load_state(state_at_bounds(data))

    def _new_pass(self, number: int, *, full: bool) -> _Pass:
        self._kernel.begin_pass()
        return _Pass(number, full, self._order(number))

    def _order(self, number: int) -> np.ndarray:
        return np.random.default_rng([self._seed, number]).permutation(self._n)

    def _rows_at_once(self, share: float) -> int:
        if self._alternating:
            return self._n
        waves = share * WORK_AT_ONCE / (self._wave * max(1.0, self._width * self._K))
        return self._wave * max(1, int(waves))

    def advance(self, rule: StopRule) -> Progress:
        """Visit some more rows of the current pass."""
        self._target = rule.tol if rule.stop == "gap" else 0.0
        if self._loaded:  # these may be optimal as they are
            self._loaded, self._from_state = False, self._data is not None
            self._said = Progress(0, np.nan, np.nan, np.nan, active=1.0, ready=True, pass_ended=False)
            return self._said
        if self._scale != 1:
            self._scale = 1.0
            self._kernel.refresh(self._threads)
        now = self._pass
        team = self._team[now.full]
        end = min(self._n, now.done + self._rows_at_once(team.share))
        # By the papers' rule a variable moves only if it violates by more than the tolerance. Somewhat less here, so
        # that those left where they are do not hold up the end.
        enter = 0.8 * rule.tol if rule.stop == "kkt" else 0.0
        begin = time.perf_counter()
        rows = now.order[now.done : end]
        if self._alternating:
            *seen, _ = self._kernel.alternate(rows, self._chunks, self._threads)
        else:
            most_new = self._problem.most_new or ANY_NUMBER
            *seen, asleep = self._kernel.sweep(rows, self._wave, now.full, enter, most_new, team.threads)
            team.learn(end - now.done, time.perf_counter() - begin, asleep)
        now.see(end, *seen)
        ended = end == self._n
        if ended and now.full and self._groups is not None:
            ptr, rows = self._groups
            self._kernel.settle(ptr, rows, ROUNDS_A_GROUP, enter, self._problem.most_new or ANY_NUMBER)
        ready = self._end_pass(now, rule) if ended else False
        last = self._last_full
        self._said = Progress(
            epochs=self._full_passes,
            primal=last.primal if last else np.nan,
            dual=last.primal - last.gap if last else np.nan,
            violation=last.violation if last else np.nan,
            active=1.0,
            ready=ready,
            pass_ended=ended and now.full,
        )
        return self._said

    def _end_pass(self, ended: _Pass, rule: StopRule) -> bool:
        """Choose the next pass; tell whether a certificate is worth its cost now."""
        ready = False
        self._dual_bytes = max(self._dual_bytes, self._kernel.dual_bytes)
        if ended.theta < LEAST_THETA * ended.waves:
            self._wave = max(1, self._wave // 2)
        if ended.full:
            self._full_passes += 1
            self._cheap_passes = 0
            before, self._last_full = self._last_full, ended
            if rule.stop == "gap":
                ready = ended.gap <= self._believed * rule.tol * abs(ended.primal)
                if self._groups is not None and self._full_passes % LOOK_EVERY == 0:
                    ready = True
            else:
                ready = ended.violation <= rule.tol
            # Relaxed steps go to and fro around the optimum: the gap falls, the largest violation does not.
            easy = (
                rule.stop == "kkt"
                or self._full_passes < EASY_PASSES
                or _passes_left(before, ended, rule) <= EASY_PASSES
            )
            if not ready and not easy and self._groups is None:
                self._begin_hard_part()
        else:
            self._cheap_passes += 1
        self._pass = self._new_pass(ended.number + 1, full=ready or not self._cheap_pass_pays(ended))
        return ready

    def _begin_hard_part(self) -> None:
        if self._data is None:
            return
        self._kernel.set_relaxation(RELAXATION)
        # Products of rows are not what joins them where weights are left out.
        empty = np.zeros(1, np.int64), np.empty(0, np.int64)
        self._groups = empty if self._data.reduced else groups_of_alike_rows(self._data)

    def _cheap_pass_pays(self, ended: _Pass) -> bool:
        assert self._last_full is not None
        support = self._kernel.dual_entries / max(1, self._n)
        return (
            not self._alternating
            and support * GATHER_COST < self._K
            and self._cheap_passes < MOST_CHEAP_PASSES
            and (ended.full or ended.gap > CHEAP_ENOUGH * self._last_full.gap)
        )

    def certificate(self) -> Certificate:
        """Certify all variables in float64; a hard fit at the best factor on its weights."""
        hard = self._groups is not None
        if not hard and not self._from_state:
            primal, dual, violation = self._kernel.certificate(self._threads)[:3]
        else:
            primal, dual, violation, primals = self._kernel.certificate(self._threads, 1.0, FACTORS)
            best = int(np.argmin(primals))
            # Dual variables of a hard fit that has ended are optimal with a factor only.
            ended = Certificate(primals[best], dual, violation).gap <= self._target
            if primals[best] < primal and (hard or ended):
                self._scale = FACTORS[best]
                primal, dual, violation, _ = self._kernel.certificate(self._threads, self._scale)
        self._from_state = False
        found = Certificate(primal, dual, violation)
        if self._last_full is not None and found.gap > 0 and self._last_full.primal != 0:
            estimated = self._last_full.gap / abs(self._last_full.primal)
            learned = 0.9 * estimated / found.gap
            self._believed = learned if self._groups is not None else min(self._believed, learned)
        return found

    def memory(self) -> dict[str, int]:
        """Bytes of data, weights and dual variables, at their most."""
        kernel = self._kernel
        dual = max(self._dual_bytes, kernel.dual_bytes)
        return {"data": kernel.data_bytes, "weights": kernel.weight_bytes, "dual_variables": dual}

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, K)` from the dual variables."""
        scale = () if self._scale == 1 else (self._scale,)
        return as_matrix(self._kernel.weights(self._features, self._threads, *scale), self._features, self._K)

    def state(self) -> dict[str, np.ndarray]:
        """The dual variables by rows: CSR arrays."""
        indptr, classes, values = self._kernel.alpha()
        return {"indptr": indptr, "classes": classes, "values": values}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from these dual variables, brought back to the feasible set where C has become smaller."""
        indptr, values = state["indptr"], state["values"]
        row = np.repeat(np.arange(self._n), np.diff(indptr))
        own = state["classes"] == self._codes[row]
        values = np.minimum(values, self._problem.cap(own, self._C[row]))
        sums = np.bincount(row, weights=values, minlength=self._n)
        values = values * np.minimum(1.0, self._problem.total(self._C) / np.maximum(sums, 1e-300))[row]
        self._kernel.set_alpha(indptr, state["classes"], values.astype(self._dtype))
        self._loaded = True  # the certificate that comes first also sets the training weights

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Everything that is needed to go on with the same bits, also in the middle of a pass."""
        if self._peers.rank > 0 and not self._shared:
            return {}
        # They carry the rounding of all steps so far: the dual variables do not tell them to the last bit.
        held, mean = self._held_weights()
        weights = weights_to_arrays(np.ascontiguousarray(held).reshape(-1)) | {"mean": mean}
        weights["classes"] = np.array(self._kernel.held_columns[:2])
        if self._peers.rank > 0:
            return weights
        numbers = {name: getattr(self, name) for name in NUMBERS} | {"pass": self._pass.numbers()}
        numbers["said"] = asdict(self._said)
        numbers["last_full"] = None if self._last_full is None else self._last_full.numbers()
        stored = {"numbers": numbers_to_array(numbers), "sums": self._kernel.pass_sums()}
        stored |= weights
        if self._problem.kernel == "maximum_entropy":
            stored["variables"] = self._kernel.variables
        else:
            stored |= {f"variables.{name}": array for name, array in self.state().items()}
        if self._groups is not None:
            stored |= dict(zip(("alike.ptr", "alike.rows"), self._groups, strict=True))
        return stored

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        """Go on from a checkpoint."""
        stored = parts[0]
        numbers = numbers_from_array(stored["numbers"])
        held = {name: numbers.get(name) for name in NUMBERS}
        for name, number in of_same_kinds(held, {name: getattr(self, name) for name in NUMBERS}).items():
            setattr(self, name, number)
        now, last = of_same_kinds(numbers.get("pass"), self._pass.numbers()), numbers.get("last_full")
        self._pass = _Pass(**now, order=self._order(now["number"]))
        if last is not None:
            last = _Pass(**of_same_kinds(last, self._pass.numbers()), order=np.empty(0, np.int64))
        self._last_full = last
        self._kernel.set_pass_sums(stored["sums"])
        self._restore_weights(parts)
        if self._problem.kernel == "maximum_entropy":
            fill(self._kernel.variables, "variables", stored["variables"])
        else:
            self._kernel.set_alpha(*(stored[f"variables.{name}"] for name in ("indptr", "classes", "values")))
        if "alike.ptr" in stored:
            self._kernel.set_relaxation(RELAXATION)
            # Copied: what is read from a file should let go of it.
            self._groups = stored["alike.ptr"].copy(), stored["alike.rows"].copy()
        self._said = as_declared(Progress, numbers.get("said"), "said")
        return self._said

    def _held_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Views of the training weights: a column for each class held here; and of their mean, where it is kept."""
        low, high, column, mean = self._kernel.held_columns
        weights = self._kernel.training_weights.reshape(self._kernel.heads, -1)
        return weights[:, column : column + high - low], weights[:, mean : mean + 1] if mean >= 0 else weights[:, :0]

    def _restore_weights(self, parts: Sequence[dict[str, np.ndarray]]) -> None:
        """Set the weights of the classes that are held here, whoever held them before."""
        low, high, *_ = self._kernel.held_columns
        here, mean = self._held_weights()
        for part in parts:
            first, last = part["classes"].tolist()
            if not 0 <= first <= last <= self._K:
                raise ValueError(f"weights of classes {first} to {last}, of {self._K}")
            there = np.empty(self._kernel.heads * (last - first), self._dtype)
            weights_from_arrays(part, there)
            begin, end = max(low, first), max(low, first, min(high, last))
            here[:, begin - low : end - low] = there.reshape(self._kernel.heads, -1)[:, begin - first : end - first]
            fill(mean, "mean", part["mean"])

    def untrained(self) -> np.ndarray:
        """Every class takes part in the first pass."""
        return np.empty(0, np.int64)
