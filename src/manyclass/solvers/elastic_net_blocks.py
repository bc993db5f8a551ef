"""Labels with an elastic net: each is trained on its few active rows, one block of labels after the other."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..problems import Binary, SparseBinary
from .l2_blocks import BlockResult, L2Blocks
from .layout import as_matrix
from .solver import Certificate, StopRule, TrainingSet

# Train labels on all rows, several in a vector, if they involve more than one row in this many.
ON_ALL_ROWS = 32
# Do so only if it takes at most this many bytes, or no more than the rows.
SMALL_LANES = 1 << 22
# What the core reports per label; the last two are booleans.
RESULT = ("primal", "dual", "violation", "rounds", "visited", "support", "done", "cut")
# The arrays of a block of labels, as the core gives and takes them. None stands for the dtype of the fit.
BLOCK: dict[str, Any] = {
    "weight_ptr": np.int64,
    "features": np.int32,
    "weights": None,
    "constants": None,
    "row_ptr": np.int64,
    "rows": np.int32,
    "variables": None,
}


class ElasticNetBlocks(L2Blocks):
    """Train each label on its own active rows until it meets the rule by itself; see `native/labels/training.hpp`."""

    _typed: ClassVar[str] = "weights"

    _problem: SparseBinary

    def _make_kernel(self, problem: Any, data: TrainingSet, method: str, keep_state: bool) -> Any:
        if method == "newton" or data.reduced:
            raise ValueError("labels with an elastic net are trained on the dual, without feature reduction")
        X = data.X.as_csr()
        # The core reads these arrays where they are.
        self._rows = (
            X.indptr.astype(np.int64, copy=False),
            X.indices.astype(np.int32, copy=False),
            X.data.astype(self._dtype, copy=False),
            data.X.n_features,
        )
        self._results_by_label = np.full((data.n_classes, len(RESULT)), np.nan)
        return native(core, "LabelBlocks", self._dtype)(
            self._rows,
            data.C.astype(self._dtype).astype(np.float64),  # rounded like variables at their bound
            data.rows_by_class(),
            (problem.lam, problem.tau, data.constant),
            problem.loss == "squared_hinge",
            (problem.draws, ON_ALL_ROWS if self._lanes_fit(data) else 0),
            keep_state,
            self._threads,
        )

    def _lanes_fit(self, data: TrainingSet) -> bool:
        """Whether a vector of labels can be trained together: all rows' variables and three times the weights fit."""
        return 64 * (data.X.n_rows + 3 * data.X.n_features) <= max(SMALL_LANES, data.X.nbytes)

    @property
    def trained_by(self) -> type[L2Blocks]:
        return ElasticNetBlocks

    def problems_of(self, block: int) -> range:
        first = self._kernel.first(block)
        return range(first, first + self._kernel.many(block))

    def meets(self, rule: StopRule, found: Certificate) -> bool:
        return all(self._block_meets(block, rule) for block in self._chosen)

    def _lines_of(self, block: int) -> np.ndarray:
        labels = self.problems_of(block)
        return self._results_by_label[labels.start : labels.stop]

    def _block_meets(self, block: int, rule: StopRule) -> bool:
        lines = self._lines_of(block)
        return not np.isnan(lines).any() and all(rule.met(Certificate(*line[:3])) for line in lines.tolist())

    def by_label(self) -> np.ndarray:
        """Return one row per label with the columns `RESULT`; NaN for labels never started."""
        return self._results_by_label

    def _add_results(self, blocks: Sequence[int], found: Any) -> list[int]:
        lines, at = np.asarray(found, np.float64).reshape(-1, len(RESULT)), 0
        started_blocks = []
        for block in blocks:
            known = self._lines_of(block)
            part = lines[at : at + len(known)]
            at += len(known)
            started = part[:, RESULT.index("rounds")] > 0
            if not started.any():
                continue
            known[started] = part[started]
            # Labels left out by an interrupt have results of an earlier training, which must not pass for new ones
            # when they are imported.
            known[~started & ~np.isnan(known[:, 0]), RESULT.index("cut")] = 1
            self._results[block] = _result_of(known)
            started_blocks.append(block)
        return started_blocks

    def certificate(self) -> Certificate:
        found = self._results_by_label[[c for block in self._chosen for c in self.problems_of(block)]]
        started = ~np.isnan(found[:, 0])
        missing = int((~started).sum())
        at_zero = missing * float(self._C.sum() * self._problem.loss_at_zero(1))
        primal, dual = (math.fsum(found[started, column]) for column in (0, 1))
        return Certificate(primal + at_zero, dual, max(found[started, 2].max(initial=0.0), 1.0 * (missing > 0)))

    def memory(self) -> dict[str, int]:
        """Return the bytes of the index of the rows, and of weights in training and finished."""
        return {
            "data": self._kernel.index_bytes,
            "weights": self._kernel.work_bytes + self._kernel.held_bytes,
            "dual_variables": 0,
        }

    def weights(self) -> np.ndarray | sp.csr_matrix:
        return as_matrix(self._kernel.weights(), self._features, self._problems)

    def untrained(self) -> np.ndarray:
        return np.flatnonzero(np.isnan(self._results_by_label[:, 0]))

    def _hold_chosen(self) -> None:
        for block in set(range(self.blocks)) - set(self._chosen):
            self._kernel.clear(block)
            self._lines_of(block)[:] = np.nan

    def _start_empty(self) -> None:
        super()._start_empty()
        self._results_by_label = np.full_like(self._results_by_label, np.nan)

    def state(self) -> dict[str, np.ndarray]:
        parts = [dict(zip(BLOCK, self._kernel.block(b), strict=True)) for b in range(self.blocks)]
        counts = [
            np.diff(part["row_ptr"]) if part["row_ptr"].size else np.zeros(len(self.problems_of(b)), np.int64)
            for b, part in enumerate(parts)
        ]
        labels = np.repeat(np.arange(self._problems), np.concatenate(counts))
        rows, values = (np.concatenate([part[name] for part in parts]) for name in ("rows", "variables"))
        by_row = sp.csr_matrix((values, (rows, labels)), shape=(self._n, self._problems))
        return {"indptr": by_row.indptr.astype(np.int64), "classes": by_row.indices, "values": by_row.data}

    def _set_alpha(self, row: np.ndarray, state: dict[str, np.ndarray]) -> None:
        by_label = sp.csc_matrix((state["values"], (row, state["classes"])), shape=(self._n, self._problems))
        by_label.sort_indices()
        no_weights = [np.empty(0, BLOCK[name] or self._dtype) for name in list(BLOCK)[:4]]
        for block in range(self.blocks):
            labels = self.problems_of(block)
            ptr = by_label.indptr[labels.start : labels.stop + 1].astype(np.int64)
            part = slice(ptr[0], ptr[-1])
            self._kernel.set_block(
                block, *no_weights, ptr - ptr[0], by_label.indices[part].astype(np.int32), by_label.data[part]
            )

    def _arrays_of(self, blocks: list[int]) -> dict[str, np.ndarray]:
        """Each array of `BLOCK` holds the values of one block after the other; `sizes` has their numbers."""
        parts = [self._kernel.block(b) for b in blocks]
        sizes = np.array([[array.size for array in part] for part in parts], np.int64).reshape(-1, len(BLOCK))
        labels = [label for b in blocks for label in self.problems_of(b)]
        found = {"results": self._results_by_label[labels], "sizes": sizes}
        for column, (name, dtype) in enumerate(BLOCK.items()):
            empty = np.empty(0, dtype or self._dtype)
            found[name] = np.concatenate([empty, *(part[column] for part in parts)]).astype(empty.dtype)
        return found

    def _set_arrays(self, blocks: list[int], found: dict[str, np.ndarray]) -> None:
        at = np.zeros(len(BLOCK), np.int64)
        for block, sizes in zip(blocks, found["sizes"], strict=True):
            arrays = [found[name][a : a + size] for name, a, size in zip(BLOCK, at, sizes, strict=True)]
            self._kernel.set_block(block, *arrays)
            at += sizes


def blocks_of(problem: Binary) -> type[L2Blocks]:
    """Return the solver that trains the blocks of a problem."""
    return ElasticNetBlocks if isinstance(problem, SparseBinary) else L2Blocks


def _result_of(labels: np.ndarray) -> BlockResult:
    started = ~np.isnan(labels[:, 0])
    column = {name: labels[started, k] for k, name in enumerate(RESULT)}
    cut = not started.all() or bool(column["cut"].any())
    return BlockResult(
        primal=math.fsum(column["primal"]),
        dual=math.fsum(column["dual"]),
        violation=float(column["violation"].max()),
        passes=int(column["rounds"].max()),
        visited=float(column["visited"].sum()),
        done=not cut and bool(column["done"].all()),
        cut=cut,
    )
