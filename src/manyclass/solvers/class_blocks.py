"""Many binary problems: blocks of neighbouring ones, each trained to its end before the next."""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._native import core
from ..problems import Binary
from .layout import as_matrix, make_layout
from .solver import Certificate, Progress, StopRule, TrainingSet, native

# Blocks a thread gets in one call into the core, so that threads rarely wait for each other at its end.
BLOCKS_A_THREAD = 4


class BlockResult(NamedTuple):
    """The end of one block; see BlockResult in binary_blocks.hpp."""

    primal: float
    dual: float
    violation: float
    epochs: int
    visited: float
    done: bool


class ClassBlocks:
    """Each block of problems alone over its rows; see `native/binary_blocks.hpp`."""

    def __init__(
        self,
        problem: Binary,
        data: TrainingSet,
        *,
        dtype: np.dtype,
        seed: int,
        threads: int,
        max_epochs: int,
        newton: bool,
        keep_state: bool,
        interrupt: Any,
    ):
        self._dtype, self._seed, self._threads = np.dtype(dtype), seed, threads
        self._max_epochs, self._interrupt = max_epochs, interrupt
        self._problem, self._codes, self._C = problem, data.codes, data.C
        self._n, self._n_classes = data.X.n_rows, data.n_classes
        self._problems = problem.columns(data.n_classes)
        self._features = data.X.n_features + (data.constant != 0)
        self._kernel = native(core, "BinaryBlocks", self._dtype)(
            make_layout(data, self._dtype, 1),
            data.codes,
            data.C.astype(self._dtype),
            self._n_classes,
            self._features,
            problem.loss,
            problem.pairs,
            newton,
            data.reduced,
            keep_state,
        )
        self._width = self._kernel.width
        self._next = 0
        self._results: dict[int, BlockResult] = {}  # of the blocks that were begun

    @property
    def _blocks(self) -> int:
        return self._kernel.blocks

    def advance(self, rule: StopRule) -> Progress:
        """Train the next few blocks."""
        first, last = self._next, min(self._blocks, self._next + BLOCKS_A_THREAD * self._threads)
        found = self._kernel.train(
            first,
            last,
            rule.stop == "gap",
            rule.tol,
            self._max_epochs,
            self._seed,
            self._threads,
            self._interrupt,
        )
        results = {first + b: BlockResult(*values) for b, values in enumerate(found)}
        self._results |= {b: r for b, r in results.items() if r.epochs > 0 or r.done}
        self._next = last
        so_far = self._sum()
        return Progress(
            epochs=max((r.epochs for r in self._results.values()), default=0),
            primal=so_far.primal,
            dual=so_far.dual,
            violation=so_far.violation,
            active=1 - last / self._blocks,
            ready=last == self._blocks,
            row_ended=True,
        )

    def _sum(self) -> Certificate:
        return Certificate(
            math.fsum(r.primal for r in self._results.values()),
            math.fsum(r.dual for r in self._results.values()),
            max((r.violation for r in self._results.values()), default=0.0),
        )

    def certificate(self) -> Certificate:
        """Add up the blocks' certificates. A problem that was never trained has weights 0 and dual value 0."""
        found = self._sum()
        untrained = self.untrained()
        if len(untrained) == 0:
            return found
        by_class = np.bincount(self._codes, self._C, self._n_classes)
        if self._problem.pairs:
            first, second = np.triu_indices(self._n_classes, 1)
            C = (by_class[first] + by_class[second])[untrained].sum()
        else:
            C = len(untrained) * by_class.sum()
        at_zero = float(C * self._problem.loss_at(np.zeros(1))[0])
        return Certificate(found.primal + at_zero, found.dual, max(found.violation, 1.0))

    def memory(self) -> dict[str, int]:
        """Bytes of data, and of weights and dual variables (one block a thread, and those that are kept)."""
        block = self._width * self._dtype.itemsize
        return {
            "data": self._kernel.data_bytes,
            "weights": self._threads * (self._kernel.heads + self._n) * block,
            "dual_variables": self._kernel.dual_bytes,
        }

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, problems)` from the dual variables."""
        return as_matrix(self._kernel.weights(self._features, self._threads), self._features, self._problems)

    def state(self) -> dict[str, np.ndarray]:
        """The dual variables by rows: CSR arrays."""
        indptr, classes, values = self._kernel.alpha()
        return {"indptr": indptr, "classes": classes, "values": values}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from these dual variables, brought back to the feasible set where C has become smaller."""
        row = np.repeat(np.arange(self._n), np.diff(state["indptr"]))
        own = state["classes"] == self._codes[row]
        values = np.minimum(state["values"], self._problem.cap(own, self._C[row]))
        self._kernel.set_alpha(state["indptr"], state["classes"], values.astype(self._dtype))

    def untrained(self) -> np.ndarray:
        """Problems whose block was never begun."""
        begun = np.zeros(self._problems, bool)
        for block in self._results:
            begun[self._kernel.problems_of(block)] = True
        return np.flatnonzero(~begun)
