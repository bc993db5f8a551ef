"""Fully corrective block-coordinate Frank-Wolfe on the dual of the max-margin loss: PD-Sparse."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data.json_content import as_declared
from ..problems import MaxMargin
from .layout import as_matrix, make_layout
from .options import SolverOptions
from .passes import Estimate, Passes, PassSums
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stored import CSR, numbers_from_array, numbers_to_array

# Labels that may join a row in one visit, by pass. Early on nearly all are tied, and most would leave again.
MOST_NEW = (4, 8, 16)
# Rows that search for labels side by side before they move one after the other.
WAVE = 32
# Seconds per call into the core; results do not depend on how a pass is divided.
SECONDS_AT_ONCE = 0.2
MOST_CHEAP_PASSES = 5
# Drop the sums of labels that no row uses any more when this many times as many are held as last time.
TOO_MANY = 1.5
SUMS = ("sums.ptr", "sums.labels", "sums.values")


@dataclass
class _Pass(PassSums):
    """See `sweep` in max_margin/solver.hpp."""

    dual: float = 0.0

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.dual + self.gap, self.gap, self.violation)


@dataclass
class _Status:
    """Everything that changes during a fit and is not in the kernel."""

    current: _Pass
    passes: Passes
    said: Progress
    loaded: bool  # dual variables were loaded that may be optimal
    sums_needed: int  # sums by feature and label that were in use when last refreshed
    weight_bytes: int  # maximum so far: more is in use early on than in the end
    dual_bytes: int

    @classmethod
    def at_start(cls) -> "_Status":
        passes = Passes()
        return cls(_Pass(0, full=True), passes, passes.progress(), False, 0, 0, 0)


class FrankWolfe(Solver):
    """Row by row, add the most violating labels and step on all in use; see `native/max_margin/solver.hpp`."""

    def __init__(self, problem: MaxMargin, data: TrainingSet, options: SolverOptions):
        self._dtype, self._seed, self._threads = np.dtype(options.dtype), options.seed, options.threads
        self._n, self._K, self._C = data.X.n_rows, data.n_classes, data.C
        self._features = data.X.n_features + (data.constant != 0)
        self._kernel = native(core, "MaxMargin", self._dtype)(
            make_layout(data, self._dtype, 1),
            *data.labels_by_row(),
            data.C.astype(self._dtype),
            self._K,
            problem.lam,
            problem.tau,
            data.X.n_features if data.constant != 0 else -1,
        )
        self._status = _Status.at_start()
        self._rows_at_once = WAVE
        self._begin_pass(self._status.current)

    def _begin_pass(self, new: _Pass) -> None:
        self._kernel.begin_pass()
        self._status.current = new
        self._order = np.random.default_rng([self._seed, new.number]).permutation(self._n)

    def advance(self, rule: StopRule) -> Progress:
        status = self._status
        if status.loaded:
            status.loaded = False
            status.said = status.passes.progress(ready=True)
            return status.said
        now = status.current
        begin = time.perf_counter()
        rows = self._order[now.done : now.done + self._rows_at_once]
        most_new = MOST_NEW[min(status.passes.full, len(MOST_NEW) - 1)]
        seen = self._kernel.sweep(rows, WAVE, now.full, most_new, self._seed, self._threads)
        seconds = max(time.perf_counter() - begin, 1e-6)
        self._rows_at_once = WAVE * int(np.clip(SECONDS_AT_ONCE / seconds * rows.size / WAVE, 1, self._n))
        now.done += rows.size
        now.loss, now.gap, now.dual, now.violation = seen
        ended = now.done == self._n
        ready = self._end_pass(now, rule) if ended else False
        status.said = status.passes.progress(ready=ready, pass_ended=ended and now.full)
        return status.said

    def _end_pass(self, ended: _Pass, rule: StopRule) -> bool:
        """Choose the next pass; return whether a certificate is worth its cost now."""
        passes, seen = self._status.passes, ended.estimate
        self._note_memory()
        ready = passes.end(seen, rule, full=ended.full)
        full = ready or not passes.cheap_pays(seen, at_most=MOST_CHEAP_PASSES)
        if full and self._kernel.entries > TOO_MANY * self._status.sums_needed:
            self._refresh()
        self._begin_pass(_Pass(ended.number + 1, full=full))
        return ready

    def _refresh(self) -> None:
        """Recompute the sums from the dual variables, without the rounding of all steps so far."""
        self._kernel.refresh(self._threads)
        self._status.sums_needed = self._kernel.entries

    def certificate(self) -> Certificate:
        found = Certificate(*self._kernel.certificate(self._threads))
        self._refresh()
        self._status.passes.learn(found)
        return found

    def memory(self) -> dict[str, int]:
        self._note_memory()
        weights, dual = self._status.weight_bytes, self._status.dual_bytes
        return {"data": self._kernel.data_bytes, "weights": weights, "dual_variables": dual}

    def _note_memory(self) -> None:
        status, kernel = self._status, self._kernel
        status.weight_bytes = max(status.weight_bytes, kernel.weight_bytes)
        status.dual_bytes = max(status.dual_bytes, kernel.dual_bytes)

    def weights(self) -> np.ndarray | sp.csr_matrix:
        return as_matrix(self._kernel.weights(self._features, self._threads), self._features, self._K)

    def state(self) -> dict[str, np.ndarray]:
        return dict(zip(CSR, self._kernel.alpha(), strict=True))

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        indptr, classes, values = (state[name] for name in CSR)
        row = np.repeat(np.arange(self._n), np.diff(indptr))
        sums = np.bincount(row, weights=values, minlength=self._n)  # over own and other labels
        values = values * np.minimum(1.0, 2 * self._C / np.maximum(sums, 1e-300))[row]
        self._kernel.set_alpha(indptr, classes, values.astype(self._dtype))
        self._status.loaded = True  # the first certificate also sets the sums

    def checkpoint(self) -> dict[str, np.ndarray]:
        stored = {"status": numbers_to_array(asdict(self._status)), "pass_sums": self._kernel.pass_sums()}
        stored["ease"] = self._kernel.ease()
        # The sums carry the rounding of all steps so far, so they do not follow from the dual variables.
        stored |= dict(zip(SUMS, self._kernel.held_sums(), strict=True))
        return stored | {f"variables.{name}": array for name, array in self.state().items()}

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        stored = parts[0]
        self._status = as_declared(_Status, numbers_from_array(stored["status"]), "status")
        self._begin_pass(self._status.current)
        self._kernel.set_pass_sums(stored["pass_sums"])
        self._kernel.set_ease(stored["ease"])
        self._kernel.set_held_sums(*(stored[name] for name in SUMS))
        self._kernel.set_alpha(*(stored[f"variables.{name}"] for name in CSR))
        return self._status.said
