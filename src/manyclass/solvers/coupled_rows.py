"""Whole rows of the coupled losses: full passes, and cheap ones in between on the classes in use."""

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data.json_content import as_declared
from ..peers import Peers
from ..problems import Problem
from .alike import groups_of_alike_rows
from .closed_form import bounds_are_optimal, state_at_bounds
from .layout import as_matrix, class_bounds, make_layout, tail_rows, wave_size
from .options import SolverOptions
from .passes import Estimate, Passes, PassSums
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stored import CSR, fill, numbers_from_array, numbers_to_array, weights_from_arrays, weights_to_arrays
from .team_size import TeamSize

logger = logging.getLogger("manyclass")

# Multiplications per call into the core, which take a few tenths of a second.
WORK_AT_ONCE = 5e8
KERNELS = {"coupled": "Coupled", "maximum_entropy": "MaximumEntropy"}
ANY_NUMBER = np.iinfo(np.int64).max
# The alternating algorithm adds up the mean of the classes in this many chunks.
CHUNKS = 32
# A cheap pass gathers single weights, which is about this many times slower than reading whole rows of them.
GATHER_COST = 20
MOST_CHEAP_PASSES = 3
# Halve the waves if their rows shorten each other's steps by more than this on average.
LEAST_THETA = 0.5

# A fit is hard if after this many full passes it still needs more than as many again. A hard fit gets what an easy
# one does not need: steps beyond the best one of a row, groups of alike rows that are visited together again and
# again, and a model with the best factor on its weights.
EASY_PASSES = 10
RELAXATION = 1.5
VISITS_PER_GROUP = 50
FACTORS = [1 + sign * 2.0**-e for e in range(1, 15) for sign in (1, -1)]
# A hard fit computes a certificate at least once in this many full passes.
CERTIFY_EVERY = 10


@dataclass
class _Pass(PassSums):
    """See PassStats in coupled/solver.hpp."""

    alpha_sum: float = 0.0
    waves: int = 0
    theta: float = 0.0

    @property
    def estimate(self) -> Estimate:
        return Estimate.from_sums(self.loss, self.gap, self.alpha_sum, self.violation)


@dataclass
class _Status:
    """Everything that changes during a fit and is not in the kernel.

    Team sizes are not part of it: the result does not depend on them.
    """

    wave: int  # rows per wave
    current: _Pass
    passes: Passes
    said: Progress
    dual_bytes: int  # maximum so far: more variables are in use early on than in the end
    loaded: bool  # dual variables were loaded that may be optimal
    certify_loaded: bool  # the next certificate is that of loaded variables
    scale: float  # factor on the weights of the model
    target: float  # relative gap

    @classmethod
    def at_start(cls, wave: int) -> "_Status":
        passes = Passes()
        return cls(wave, _Pass(0, full=True), passes, passes.progress(), 0, False, False, scale=1.0, target=0.0)


def _passes_left(before: Estimate | None, last: Estimate, rule: StopRule) -> float:
    """Estimate the full passes left until the target, at the pace of the last two."""
    if before is None:
        return np.inf
    was, now = (before.gap, last.gap) if rule.stop == "gap" else (before.violation, last.violation)
    target = rule.tol * (abs(last.primal) if rule.stop == "gap" else 1.0)
    if not 0 < now < was:
        return np.inf
    return max(0.0, np.log(now / max(target, 1e-300)) / np.log(was / now))


def projected(problem: Problem, values: np.ndarray, own: np.ndarray, row: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Project dual variables onto the feasible set, which is smaller than before if C has become smaller.

    Parameters
    ----------
    problem : Problem
    values, own, row : ndarray
        The variables, whether each belongs to its row's own class, and the row of each.
    C : ndarray of shape (n,)
        Penalties of the rows.
    """
    values = np.minimum(values, problem.cap(own, C[row]))
    sums = np.bincount(row, weights=values, minlength=C.size)
    return values * np.minimum(1.0, problem.total(C) / np.maximum(sums, 1e-300))[row]


class CoupledRows(Solver):
    """Coordinate ascent on the dual, one row at a time; see `native/coupled/solver.hpp`."""

    def __init__(self, problem: Problem, data: TrainingSet, options: SolverOptions, *, peers: Peers | None = None):
        if problem.kernel not in KERNELS:
            raise ValueError(f"this solver trains coupled losses; {problem.name!r} is {problem.kernel!r}")
        self._problem, self._codes, self._C = problem, data.codes, data.C
        self._dtype, self._seed, self._threads = np.dtype(options.dtype), options.seed, options.threads
        self._alternating = options.solver == "alternating"
        self._n, self._K = data.X.n_rows, data.n_classes
        self._features = data.X.n_features + (data.constant != 0)
        self._width = data.X.nnz / max(1, self._n) + (data.constant != 0)
        self._most_new = problem.most_new or ANY_NUMBER
        sparse = problem.sparse_weights and not data.reduced
        tail = 0 if self._alternating else tail_rows(self._K) if sparse else 1
        self._kernel = native(core, KERNELS[problem.kernel], self._dtype)(
            make_layout(data, self._dtype, tail),
            data.codes,
            data.C.astype(self._dtype),
            self._K,
            problem.name,
            problem.parameters.get("gamma", 0.5),
            data.reduced,
        )
        self._status = _Status.at_start(wave_size(data, problem))
        self._join(peers or Peers(), data)
        self._team = {full: TeamSize(self._threads) for full in (True, False)}
        self._groups: tuple[np.ndarray, np.ndarray] | None = None  # groups of alike rows; None for an easy fit
        # The rows of a fit that may turn out to be hard.
        self._data: TrainingSet | None = data if problem.kernel == "coupled" and not self._alternating else None
        self._begin_pass(self._status.current)
        if problem.name == "llw" and not self._alternating and bounds_are_optimal(data):
            self.load_state(state_at_bounds(data))

    def _join(self, peers: Peers, data: TrainingSet) -> None:
        """Share the classes among the processes, if rows are enough work for that."""
        self._peers = peers
        self._shared = peers.size > 1 and (self._status.wave > 1 or self._alternating) and not data.reduced
        self._chunks = class_bounds(self._K, CHUNKS)
        if self._shared:
            bounds = class_bounds(self._K, peers.size)
            if self._alternating:
                bounds = [self._chunks[p * CHUNKS // peers.size] for p in range(peers.size + 1)]
            self._kernel.join(peers.gather_bytes, bounds, peers.rank)
        elif peers.size > 1:
            logger.info("a row is too little work to share among processes: each process trains the whole model")

    def _begin_pass(self, new: _Pass) -> None:
        self._kernel.begin_pass()
        self._status.current = new
        self._order = np.random.default_rng([self._seed, new.number]).permutation(self._n)

    def _rows_at_once(self, share: float) -> int:
        if self._alternating:
            return self._n
        waves = share * WORK_AT_ONCE / (self._status.wave * max(1.0, self._width * self._K))
        return self._status.wave * max(1, int(waves))

    def advance(self, rule: StopRule) -> Progress:
        """Visit some more rows of the current pass."""
        status = self._status
        status.target = rule.tol if rule.stop == "gap" else 0.0
        if status.loaded:
            status.loaded, status.certify_loaded = False, self._data is not None
            status.said = status.passes.progress(ready=True)
            return status.said
        if status.scale != 1:
            status.scale = 1.0
            self._kernel.refresh(self._threads)
        now = status.current
        self._visit(now, rule)
        ready, ended = False, now.done == self._n
        if ended:
            if now.full and self._groups is not None:
                self._kernel.settle(*self._groups, VISITS_PER_GROUP, _entry_level(rule), self._most_new)
            ready = self._end_pass(now, rule)
        status.said = status.passes.progress(ready=ready, pass_ended=ended and now.full)
        return status.said

    def _visit(self, now: _Pass, rule: StopRule) -> None:
        """Visit the next rows of a pass."""
        team = self._team[now.full]
        begin = time.perf_counter()
        rows = self._order[now.done : now.done + self._rows_at_once(team.share)]
        if self._alternating:
            *seen, _ = self._kernel.alternate(rows, self._chunks, self._threads)
        else:
            *seen, asleep = self._kernel.sweep(
                rows, self._status.wave, now.full, _entry_level(rule), self._most_new, team.threads
            )
            team.learn(rows.size, time.perf_counter() - begin, asleep)
        now.done += rows.size
        now.loss, now.gap, now.alpha_sum, now.violation, now.waves, now.theta = seen

    def _end_pass(self, ended: _Pass, rule: StopRule) -> bool:
        """Choose the next pass; return whether a certificate is worth its cost now."""
        status = self._status
        status.dual_bytes = max(status.dual_bytes, self._kernel.dual_bytes)
        if ended.theta < LEAST_THETA * ended.waves:
            status.wave = max(1, status.wave // 2)
        before, seen, passes = status.passes.last_full, ended.estimate, status.passes
        ready = passes.end(seen, rule, full=ended.full)
        if ended.full and rule.stop == "gap":
            if self._groups is not None:
                ready = ready or passes.full % CERTIFY_EVERY == 0
            # Not with "kkt": relaxed steps oscillate around the optimum, which lowers the gap but not the violation.
            elif not ready and passes.full >= EASY_PASSES and _passes_left(before, seen, rule) > EASY_PASSES:
                self._begin_hard_part()
        self._begin_pass(_Pass(ended.number + 1, full=ready or not self._cheap_pass_pays(seen)))
        return ready

    def _begin_hard_part(self) -> None:
        if self._data is None:
            return
        self._kernel.set_relaxation(RELAXATION)
        # With feature reduction, products of rows do not tell how rows affect each other.
        empty = np.zeros(1, np.int64), np.empty(0, np.int64)
        self._groups = empty if self._data.reduced else groups_of_alike_rows(self._data)

    def _cheap_pass_pays(self, seen: Estimate) -> bool:
        support = self._kernel.dual_entries / max(1, self._n)
        return (
            not self._alternating
            and support * GATHER_COST < self._K
            and self._status.passes.cheap_pays(seen, at_most=MOST_CHEAP_PASSES)
        )

    def certificate(self) -> Certificate:
        """Certify all variables in float64; a hard fit at the best factor on its weights."""
        status, hard = self._status, self._groups is not None
        if not hard and not status.certify_loaded:
            primal, dual, violation = self._kernel.certificate(self._threads)[:3]
        else:
            primal, dual, violation, primals = self._kernel.certificate(self._threads, 1.0, FACTORS)
            best = int(np.argmin(primals))
            # The dual variables of a hard fit that has ended are only optimal with a factor.
            ended = Certificate(primals[best], dual, violation).gap <= status.target
            if primals[best] < primal and (hard or ended):
                status.scale = FACTORS[best]
                primal, dual, violation, _ = self._kernel.certificate(self._threads, status.scale)
        status.certify_loaded = False
        found = Certificate(primal, dual, violation)
        status.passes.learn(found, either_way=hard)
        return found

    def memory(self) -> dict[str, int]:
        """Return the maximum bytes of data, weights and dual variables."""
        kernel = self._kernel
        dual = max(self._status.dual_bytes, kernel.dual_bytes)
        return {"data": kernel.data_bytes, "weights": kernel.weight_bytes, "dual_variables": dual}

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Return the weights `(features, K)` of the dual variables."""
        scale = () if self._status.scale == 1 else (self._status.scale,)
        return as_matrix(self._kernel.weights(self._features, self._threads, *scale), self._features, self._K)

    def state(self) -> dict[str, np.ndarray]:
        """Return the dual variables by rows, as CSR arrays."""
        return dict(zip(CSR, self._kernel.alpha(), strict=True))

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Start from these dual variables, projected onto the feasible set if C has become smaller."""
        indptr, classes, values = (state[name] for name in CSR)
        row = np.repeat(np.arange(self._n), np.diff(indptr))
        values = projected(self._problem, values, classes == self._codes[row], row, self._C)
        self._kernel.set_alpha(indptr, classes, values.astype(self._dtype))
        self._status.loaded = True  # the first certificate also sets the training weights

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Return everything needed to resume with the same bits, also in the middle of a pass."""
        if self._peers.rank > 0 and not self._shared:
            return {}
        # The training weights carry the rounding of all steps so far, so they do not follow from the dual variables.
        held, mean = self._held_weights()
        stored = weights_to_arrays(np.ascontiguousarray(held).reshape(-1)) | {"mean": mean}
        stored["classes"] = np.array(self._kernel.held_columns[:2])
        if self._peers.rank > 0:
            return stored
        stored |= {"status": numbers_to_array(asdict(self._status)), "sums": self._kernel.pass_sums()}
        if self._problem.kernel == "maximum_entropy":
            stored["variables"] = self._kernel.variables
        else:
            stored |= {f"variables.{name}": array for name, array in self.state().items()}
        if self._groups is not None:
            stored |= dict(zip(("alike.ptr", "alike.rows"), self._groups, strict=True))
        return stored

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        """Resume from a checkpoint."""
        stored = parts[0]
        self._status = as_declared(_Status, numbers_from_array(stored["status"]), "status")
        self._begin_pass(self._status.current)
        self._kernel.set_pass_sums(stored["sums"])
        self._restore_weights(parts)
        if self._problem.kernel == "maximum_entropy":
            fill(self._kernel.variables, "variables", stored["variables"])
        else:
            self._kernel.set_alpha(*(stored[f"variables.{name}"] for name in CSR))
        if "alike.ptr" in stored:
            self._kernel.set_relaxation(RELAXATION)
            # Copies, so that the mapped file can be closed.
            self._groups = stored["alike.ptr"].copy(), stored["alike.rows"].copy()
        return self._status.said

    def _held_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return views of the training weights, one column per class held here, and of their mean if it is kept."""
        low, high, column, mean = self._kernel.held_columns
        weights = self._kernel.training_weights.reshape(self._kernel.heads, -1)
        return weights[:, column : column + high - low], weights[:, mean : mean + 1] if mean >= 0 else weights[:, :0]

    def _restore_weights(self, parts: Sequence[dict[str, np.ndarray]]) -> None:
        """Set the weights of the classes held here, from whichever processes held them before."""
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


def _entry_level(rule: StopRule) -> float:
    """Return the violation above which a class enters a row's variables.

    By the papers' rule a variable moves only if it violates by more than the tolerance. The level is somewhat lower
    here, so that variables left where they are do not delay the end.
    """
    return 0.8 * rule.tol if rule.stop == "kkt" else 0.0
