"""Labels with an elastic net: each trained on its few active rows, blocks of labels one after another."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..problems import Binary, SparseBinary
from .class_blocks import BlockResult, ClassBlocks
from .layout import as_matrix
from .solver import Certificate, StopRule, TrainingSet

# Labels that have to do with more than one row in so many are trained together, on all rows: where what that takes is
# no more than this, or than the rows take.
TOGETHER = 32
SMALL_LANES = 1 << 22
# What the core tells of a label; the last two are truth values.
RESULT = ("primal", "dual", "violation", "rounds", "visited", "support", "done", "cut")
# The arrays of a block of labels, as the core gives and takes them.
BLOCK = ("weight_ptr", "features", "weights", "constants", "row_ptr", "rows", "variables")


class LabelBlocks(ClassBlocks):
    """Each label on its own active set of rows; see `native/labels/training.hpp`.

    A label is done when its own certificate meets the rule, whatever those of others are.
    """

    _problem: SparseBinary

    def _make_kernel(self, problem: Any, data: TrainingSet, method: str, keep_state: bool) -> Any:
        if method == "newton" or data.reduced:
            raise ValueError("labels with an elastic net are trained by their dual, and on all features")
        X = data.X.as_csr()
        # The core reads these arrays where they are.
        self._rows = (
            X.indptr.astype(np.int64, copy=False),
            X.indices.astype(np.int32, copy=False),
            X.data.astype(self._dtype, copy=False),
        )
        self._results_by_label = np.full((data.n_classes, len(RESULT)), np.nan)
        own_ptr, own = data.rows_by_class()
        return native(core, "LabelBlocks", self._dtype)(
            *self._rows,
            data.X.n_features,
            data.C.astype(self._dtype).astype(np.float64),  # as variables at their bound have it
            own_ptr,
            own,
            problem.lam,
            problem.tau,
            data.constant,
            problem.loss == "squared_hinge",
            problem.draws,
            TOGETHER if self._lanes_fit(data) else 0,
            keep_state,
            self._threads,
        )

    def _lanes_fit(self, data: TrainingSet) -> bool:
        """Whether a vector of labels may be trained together: with variables of all rows, and weights thrice."""
        return 64 * (data.X.n_rows + 3 * data.X.n_features) <= max(SMALL_LANES, data.X.nbytes)

    @property
    def trained_by(self) -> type[ClassBlocks]:
        """Whose blocks these are, whoever advances them."""
        return LabelBlocks

    def problems_of(self, block: int) -> range:
        """The labels of a block."""
        first = self._kernel.first(block)
        return range(first, first + self._kernel.many(block))

    def meets(self, rule: StopRule, found: Certificate) -> bool:
        """Whether all labels that were to be trained meet a rule, each by itself."""
        return all(self._block_meets(block, rule) for block in self._chosen)

    def _block_meets(self, block: int, rule: StopRule) -> bool:
        lines = self._results_by_label[list(self.problems_of(block))]
        return not np.isnan(lines).any() and all(rule.met(Certificate(*line[:3])) for line in lines.tolist())

    def by_label(self) -> np.ndarray:
        """How each label ended: one line per label, with the columns `RESULT`; NaN where it was not begun."""
        return self._results_by_label

    def _add_results(self, blocks: Sequence[int], found: Any) -> list[int]:
        lines, at = np.asarray(found, np.float64).reshape(-1, len(RESULT)), 0
        begun_blocks = []
        for block in blocks:
            labels = self.problems_of(block)
            part = lines[at : at + len(labels)]
            at += len(labels)
            begun = part[:, RESULT.index("rounds")] > 0
            if not begun.any():
                continue
            known = self._results_by_label[labels.start : labels.stop]
            known[begun] = part[begun]
            # Lines from before of labels that an interrupt has left out: whoever imports them must not take them for
            # those of this time.
            known[~begun & ~np.isnan(known[:, 0]), RESULT.index("cut")] = 1
            self._results[block] = _together(known)
            begun_blocks.append(block)
        return begun_blocks

    def certificate(self) -> Certificate:
        """Add up the labels' certificates. One that was never begun has weights 0 and dual value 0."""
        found = self._results_by_label[[c for block in self._chosen for c in self.problems_of(block)]]
        begun = ~np.isnan(found[:, 0])
        missing = int((~begun).sum())
        at_zero = missing * float(self._C.sum() * self._problem.loss_at(np.zeros(1))[0])
        primal, dual = (math.fsum(found[begun, column]) for column in (0, 1))
        return Certificate(primal + at_zero, dual, max(found[begun, 2].max(initial=0.0), 1.0 * (missing > 0)))

    def memory(self) -> dict[str, int]:
        """Bytes of the index of the rows, of what threads work with and of the labels that are done."""
        return {
            "data": self._kernel.index_bytes,
            "weights": self._kernel.work_bytes + self._kernel.held_bytes,
            "dual_variables": 0,
        }

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, labels)`."""
        return as_matrix(self._kernel.weights(), self._features, self._problems)

    def untrained(self) -> np.ndarray:
        """Labels that were never begun."""
        return np.flatnonzero(np.isnan(self._results_by_label[:, 0]))

    def choose_blocks(self, blocks: Sequence[int]) -> None:
        """Train only these from now on. What there is of others is dropped."""
        self._chosen = sorted(set(blocks))
        for block in set(range(self.blocks)) - set(self._chosen):
            self._kernel.clear(block)
            labels = self.problems_of(block)
            self._results_by_label[labels.start : labels.stop] = np.nan
        self._results = {b: self._results[b] for b in self._chosen if b in self._results}
        self._left = [b for b in self._chosen if b not in self._results]

    def sibling(self, interrupt: Any, threads: int = 1) -> "LabelBlocks":
        """Another solver on the same index of the rows, with no blocks chosen; both can work at the same time."""
        other = super().sibling(interrupt, threads)
        assert isinstance(other, LabelBlocks)
        other._results_by_label = np.full_like(self._results_by_label, np.nan)
        return other

    def state(self) -> dict[str, np.ndarray]:
        """The dual variables by rows: CSR arrays."""
        parts = [dict(zip(BLOCK, self._kernel.block(b), strict=True)) for b in range(self.blocks)]
        counts = [
            np.diff(part["row_ptr"]) if part["row_ptr"].size else np.zeros(len(self.problems_of(b)), np.int64)
            for b, part in enumerate(parts)
        ]
        labels = np.repeat(np.arange(self._problems), np.concatenate(counts))
        rows, values = (np.concatenate([part[name] for part in parts]) for name in ("rows", "variables"))
        by_row = sp.csr_matrix((values, (rows, labels)), shape=(self._n, self._problems))
        return {"indptr": by_row.indptr.astype(np.int64), "classes": by_row.indices, "values": by_row.data}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from these dual variables, brought back to the feasible set where C has become smaller."""
        self._start = state
        row = np.repeat(np.arange(self._n), np.diff(state["indptr"]))
        cap = self._problem.cap(np.zeros(row.size, bool), self._C[row])
        values = np.minimum(state["values"], cap).astype(self._dtype)
        by_label = sp.csc_matrix((values, (row, state["classes"])), shape=(self._n, self._problems))
        by_label.sort_indices()
        nothing: list[np.ndarray] = [np.empty(0, t) for t in (np.int64, np.int32, self._dtype, self._dtype)]
        for block in range(self.blocks):
            labels = self.problems_of(block)
            ptr = by_label.indptr[labels.start : labels.stop + 1].astype(np.int64)
            part = slice(ptr[0], ptr[-1])
            self._kernel.set_block(
                block, *nothing, ptr - ptr[0], by_label.indices[part].astype(np.int32), by_label.data[part]
            )

    def export_blocks(self, blocks: Sequence[int] | None = None) -> dict[str, np.ndarray]:
        """What training has made of blocks, as plain arrays for `import_blocks`.

        Parameters
        ----------
        blocks : sequence of int, optional
            Which blocks; those not begun give the dual variables they start from. Without it, all that were begun.

        Returns
        -------
        dict of arrays
            `blocks`, ascending; `results`, a line a label; the arrays of `BLOCK`, those of one block after those of
            another, and their `sizes` by block.
        """
        chosen = sorted(self._results if blocks is None else blocks)
        parts = [self._kernel.block(b) for b in chosen]
        labels = [c for b in chosen for c in self.problems_of(b)]
        found = {
            "blocks": np.array(chosen, np.int64),
            "results": self._results_by_label[labels],
            "sizes": np.array([[array.size for array in part] for part in parts], np.int64).reshape(-1, len(BLOCK)),
        }
        kinds: tuple[Any, ...] = (np.int64, np.int32, self._dtype, self._dtype, np.int64, np.int32, self._dtype)
        for column, (name, kind) in enumerate(zip(BLOCK, kinds, strict=True)):
            found[name] = np.concatenate([np.empty(0, kind), *(part[column] for part in parts)]).astype(kind)
        return found

    def import_blocks(self, found: dict[str, np.ndarray]) -> None:
        """Take over blocks of another solver of the same problem, as if they had been trained here.

        Parameters
        ----------
        found : dict of arrays
            From `export_blocks`. Blocks that were not begun only take over the dual variables they start from.

        Raises
        ------
        ValueError, IndexError
            If the arrays do not fit this problem.
        """
        if found["weights"].dtype != self._dtype:
            raise ValueError(f"blocks of {found['weights'].dtype} cannot be imported into a fit in {self._dtype}")
        at = np.zeros(len(BLOCK), np.int64)
        blocks = found["blocks"].tolist()
        for block, sizes in zip(blocks, found["sizes"], strict=True):
            arrays = [found[name][a : a + size] for name, a, size in zip(BLOCK, at, sizes, strict=True)]
            self._kernel.set_block(block, *arrays)
            at += sizes
        self._take_off(self._add_results(blocks, found["results"]))


def blocks_of(problem: Binary) -> type[ClassBlocks]:
    """Who trains the blocks of a problem."""
    return LabelBlocks if isinstance(problem, SparseBinary) else ClassBlocks


def _together(labels: np.ndarray) -> BlockResult:
    begun = ~np.isnan(labels[:, 0])
    column = {name: labels[begun, k] for k, name in enumerate(RESULT)}
    cut = not begun.all() or bool(column["cut"].any())
    return BlockResult(
        primal=math.fsum(column["primal"]),
        dual=math.fsum(column["dual"]),
        violation=float(column["violation"].max()),
        epochs=int(column["rounds"].max()),
        visited=float(column["visited"].sum()),
        done=not cut and bool(column["done"].all()),
        cut=cut,
    )
