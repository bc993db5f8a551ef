"""Fully corrective block-coordinate Frank-Wolfe on the dual of the max-margin loss: PD-Sparse."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data.json_content import as_declared
from ..peers import Peers
from ..problems import MaxMargin
from .layout import as_matrix, make_layout
from .options import SolverOptions
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stored import numbers_from_array, numbers_to_array, of_same_kinds

# Labels that may join a row's in one visit; twice as many from pass to pass. Early on nearly all are tied, and most
# that join would leave again.
MOST_NEW = (4, 8, 16)
# Rows that search for labels side by side, before they move one after the other.
WAVE = 32
# A call into the core takes about this many seconds; results do not depend on how a pass is divided.
SECONDS_AT_ONCE = 0.2
MOST_CHEAP_PASSES = 5
# Cheap passes have done their part when the gap on the labels in use is this share of the last full pass's.
CHEAP_ENOUGH = 0.2
# A pass sees each row before its own step, so the gap it adds up is larger than the one it leaves behind.
OPTIMISM = 1.5
# Sums of labels that no row uses any more are dropped when there are so many more than last time.
TOO_MANY = 1.5
# What a checkpoint keeps besides the kernel's arrays and the two passes.
NUMBERS = ("_full_passes", "_cheap_passes", "_believed", "_loaded", "_needed", "_most_bytes")


@dataclass
class _Pass:
    """Sums over the rows visited so far in one pass; see `sweep` in max_margin/solver.hpp."""

    number: int
    full: bool
    done: int = 0
    loss: float = 0.0
    gap: float = 0.0
    dual: float = 0.0
    violation: float = 0.0

    @property
    def primal(self) -> float:
        return self.dual + self.gap


class FrankWolfe(Solver):
    """Row by row, add the most violating labels and step on all in use; see `native/max_margin/solver.hpp`."""

    def __init__(
        self,
        problem: MaxMargin,
        data: TrainingSet,
        options: SolverOptions,
        *,
        interrupt: Any = None,
        peers: Peers | None = None,
    ):
        self._dtype, self._seed, self._threads = np.dtype(options.dtype), options.seed, options.threads
        self._n, self._K, self._C = data.X.n_rows, data.n_classes, data.C
        self._features = data.X.n_features + (data.constant != 0)
        self._ptr, self._labels = _label_sets(data)
        self._kernel = native(core, "MaxMargin", self._dtype)(
            make_layout(data, self._dtype, 1),
            self._ptr,
            self._labels,
            data.C.astype(self._dtype),
            self._K,
            problem.lam,
            problem.tau,
            data.X.n_features if data.constant != 0 else -1,
        )
        self._pass = _Pass(0, full=True)
        self._order = self._order_of(0)
        self._rows_at_once = WAVE
        self._full_passes = 0
        self._cheap_passes = 0  # since the last full one
        self._last_full: _Pass | None = None
        self._believed = OPTIMISM  # the estimated gap over the one a certificate will find
        self._loaded = False
        self._needed = 0  # sums by feature and label, when last they were set anew
        self._most_bytes = [0, 0]  # of weights and dual variables: early on more are in use than in the end
        self._said = Progress(0, np.nan, np.nan, np.nan, active=1.0, ready=False, pass_ended=False)

    def _order_of(self, number: int) -> np.ndarray:
        return np.random.default_rng([self._seed, number]).permutation(self._n)

    def advance(self, rule: StopRule) -> Progress:
        """Visit some more rows of the current pass."""
        if self._loaded:  # these may be optimal as they are, and the certificate sets the sums
            self._loaded = False
            self._said = Progress(0, np.nan, np.nan, np.nan, active=1.0, ready=True, pass_ended=False)
            return self._said
        now = self._pass
        end = min(self._n, now.done + self._rows_at_once)
        begin = time.perf_counter()
        rows = self._order[now.done : end]
        most_new = MOST_NEW[min(self._full_passes, len(MOST_NEW) - 1)]
        seen = self._kernel.sweep(rows, WAVE, now.full, most_new, self._seed, self._threads)
        seconds = max(time.perf_counter() - begin, 1e-6)
        self._rows_at_once = WAVE * int(np.clip(SECONDS_AT_ONCE / seconds * len(rows) / WAVE, 1, self._n))
        now.done = end
        now.loss, now.gap, now.dual, now.violation = seen
        ended = end == self._n
        ready = self._end_pass(now, rule) if ended else False
        last = self._last_full
        self._said = Progress(
            epochs=self._full_passes,
            primal=last.primal if last else np.nan,
            dual=last.dual if last else np.nan,
            violation=last.violation if last else np.nan,
            active=1.0,
            ready=ready,
            pass_ended=ended and now.full,
        )
        return self._said

    def _end_pass(self, ended: _Pass, rule: StopRule) -> bool:
        """Choose the next pass; tell whether a certificate is worth its cost now."""
        ready = False
        self._note_memory()
        if ended.full:
            self._full_passes += 1
            self._cheap_passes = 0
            self._last_full = ended
            if rule.stop == "gap":
                ready = ended.gap <= self._believed * rule.tol * abs(ended.primal)
            else:
                ready = ended.violation <= rule.tol
        else:
            self._cheap_passes += 1
        full = ready or not self._cheap_pass_pays(ended)
        if full and self._kernel.entries > TOO_MANY * self._needed:
            self._refresh()
        self._begin_pass(_Pass(ended.number + 1, full=full))
        return ready

    def _refresh(self) -> None:
        self._kernel.refresh(self._threads)
        self._needed = self._kernel.entries

    def _begin_pass(self, new: _Pass) -> None:
        self._pass, self._order = new, self._order_of(new.number)
        self._kernel.begin_pass()

    def _cheap_pass_pays(self, ended: _Pass) -> bool:
        assert self._last_full is not None
        return self._cheap_passes < MOST_CHEAP_PASSES and (
            ended.full or ended.gap > CHEAP_ENOUGH * self._last_full.gap
        )

    def certificate(self) -> Certificate:
        """Certify all variables in float64."""
        found = Certificate(*self._kernel.certificate(self._threads))
        self._refresh()  # without the rounding of all steps so far
        if self._last_full is not None and found.gap > 0 and self._last_full.primal != 0:
            estimated = self._last_full.gap / abs(self._last_full.primal)
            self._believed = min(self._believed, 0.9 * estimated / found.gap)
        return found

    def memory(self) -> dict[str, int]:
        """Bytes of data, weights and dual variables, at their most."""
        self._note_memory()
        weights, dual = self._most_bytes
        return {"data": self._kernel.data_bytes, "weights": weights, "dual_variables": dual}

    def _note_memory(self) -> None:
        now = self._kernel.weight_bytes, self._kernel.dual_bytes
        self._most_bytes = [max(pair) for pair in zip(self._most_bytes, now, strict=True)]

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, K)` from the dual variables."""
        return as_matrix(self._kernel.weights(self._features, self._threads), self._features, self._K)

    def state(self) -> dict[str, np.ndarray]:
        """The dual variables by rows, of a row's own labels and of others: CSR arrays."""
        indptr, classes, values = self._kernel.alpha()
        return {"indptr": indptr, "classes": classes, "values": values}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from these dual variables, brought back to the feasible set where C has become smaller."""
        indptr, values = state["indptr"], state["values"]
        row = np.repeat(np.arange(self._n), np.diff(indptr))
        sums = np.bincount(row, weights=values, minlength=self._n)  # of both kinds of labels
        values = values * np.minimum(1.0, 2 * self._C / np.maximum(sums, 1e-300))[row]
        self._kernel.set_alpha(indptr, state["classes"], values.astype(self._dtype))
        self._loaded = True

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Everything that is needed to go on with the same bits, also in the middle of a pass."""
        numbers: dict[str, Any] = {name: getattr(self, name) for name in NUMBERS}
        numbers |= {"pass": asdict(self._pass), "said": asdict(self._said)}
        numbers["last_full"] = None if self._last_full is None else asdict(self._last_full)
        stored = {"numbers": numbers_to_array(numbers), "pass_sums": self._kernel.pass_sums()}
        stored["ease"] = self._kernel.ease()
        # They carry the rounding of all steps so far: the dual variables do not tell them to the last bit.
        stored |= dict(zip(("sums.ptr", "sums.labels", "sums.values"), self._kernel.held_sums(), strict=True))
        return stored | {f"variables.{name}": array for name, array in self.state().items()}

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        """Go on from a checkpoint."""
        stored = parts[0]
        numbers = numbers_from_array(stored["numbers"])
        held = {name: numbers.get(name) for name in NUMBERS}
        for name, number in of_same_kinds(held, {name: getattr(self, name) for name in NUMBERS}).items():
            setattr(self, name, number)
        self._begin_pass(as_declared(_Pass, numbers.get("pass"), "pass"))
        self._last_full = as_declared(_Pass | None, numbers.get("last_full"), "last_full")  # type: ignore[arg-type]
        self._kernel.set_pass_sums(stored["pass_sums"])
        self._kernel.set_ease(stored["ease"])
        self._kernel.set_held_sums(stored["sums.ptr"], stored["sums.labels"], stored["sums.values"])
        self._kernel.set_alpha(*(stored[f"variables.{name}"] for name in ("indptr", "classes", "values")))
        self._said = as_declared(Progress, numbers.get("said"), "said")
        return self._said

    def untrained(self) -> np.ndarray:
        """Every label takes part in the first pass."""
        return np.empty(0, np.int64)


def _label_sets(data: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
    """The labels of each row, ascending: where they begin, and which they are."""
    if data.Y is None:
        return np.arange(data.X.n_rows + 1, dtype=np.int64), data.codes
    return data.Y.indptr.astype(np.int64), data.Y.indices.astype(np.int32)
