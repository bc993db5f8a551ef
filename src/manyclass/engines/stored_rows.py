"""Rows of a store in the form that solvers need, read block by block, one batch ahead of the solver."""

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np

from .._native import core, native
from ..data.block_file import Block, PackedBlock
from ..data.block_store import BlockStore
from ..data.dealing import shuffled
from ..solvers import RowBlock, StreamShape

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class StoredRows:
    """Training rows in a store.

    Attributes
    ----------
    C : float
        Penalty of a row, before its weights.
    class_weight, sample_weight : ndarray, optional
        Factors of C per class, and per row by its id.
    constant : float
        Value of the constant feature; 0 for none.
    classes : tuple of int, optional
        Train only the classes from the first number to before the second. Rows of other classes count as rows without
        a label.
    """

    store: BlockStore
    C: float
    class_weight: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    constant: float = 0.0
    classes: tuple[int, int] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes to train."""
        if self.classes is None:
            return int(self.store.classes.size)
        return self.classes[1] - self.classes[0]

    @property
    def block_names(self) -> list[str]:
        """Name of each block's dual variables, with the range of classes unless all classes are trained."""
        suffix = "" if self.classes is None else f".{self.classes[0]}-{self.classes[1]}"
        return [entry.file.removesuffix(".safetensors") + suffix for entry in self.store.manifest.blocks]

    def shape(self, tail_rows: int = 1) -> StreamShape:
        """Return the shape; features in at most `tail_rows` rows get lists of weights, not one weight per class."""
        store, constant = self.store, self.constant != 0
        frequencies = np.append(store.frequencies, store.n_rows) if constant else store.frequencies
        return StreamShape(
            places=core.FeaturePlaces(frequencies, constant, tail_rows),
            n_classes=self.n_classes,
            width=store.nnz / max(1, store.n_rows) + constant,
            constant=self.constant,
            n_rows=store.n_rows,
            first_class=self.classes[0] if self.classes else 0,
        )

    def penalty_bounds(self) -> tuple[float, float]:
        """Return upper bounds on the sum of the penalties of all rows and on the largest of them."""
        largest = self.C
        if self.class_weight is not None:
            largest *= float(self.class_weight.max())
        if self.sample_weight is None:
            return largest * self.store.n_rows, largest
        return largest * float(self.sample_weight.sum()), largest * float(self.sample_weight.max())

    def penalties(self, block: PackedBlock | Block) -> np.ndarray:
        """Return the penalty of each row of a block."""
        C = np.full(block.ids.size, self.C)
        if self.class_weight is not None:
            C *= self.class_weight[block.labels]
        if self.sample_weight is not None:
            C *= self.sample_weight[block.ids]
        return C

    def labels(self, block: PackedBlock | Block) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of labels per row of a block, and the labels, as offsets from the first trained class."""
        counts = np.diff(block.label_ptr)
        if self.classes is None:
            return counts, block.labels
        low, high = self.classes
        here = (block.labels >= low) & (block.labels < high)
        rows = np.repeat(np.arange(counts.size), counts)[here]
        return np.bincount(rows, minlength=counts.size), block.labels[here] - block.labels.dtype.type(low)


@dataclass(frozen=True)
class Batch:
    """Blocks that are visited together."""

    blocks: tuple[int, ...]  # numbers in the store
    ids: tuple[np.ndarray, ...]  # of the rows, per block
    rows: RowBlock  # of all blocks, with one part per block


class BlockReader:
    """Reads batches of blocks, one batch ahead; `longest` is the largest allowed squared length of a row."""

    def __init__(self, data: StoredRows, shape: StreamShape, dtype: np.dtype, longest: float):
        self._data, self._places, self._dtype, self._longest = data, shape.places, dtype, longest
        self._smallest = np.finfo(dtype).tiny  # rows with smaller penalties take no part
        self._spares: list[Any] = []  # layouts of finished batches, whose memory is reused

    def read(self, numbers: tuple[int, ...], batch: int) -> Batch:
        """Read a batch; raise BlockError if a block is damaged, or ValueError if a row is too long."""
        data = self._data
        entries = [data.store.manifest.blocks[number] for number in numbers]
        rows, nnz = sum(entry.rows for entry in entries), sum(entry.nnz for entry in entries)
        layout = self._spares.pop() if self._spares else native(core, "Layout", self._dtype)()
        layout.begin_rows(self._places, rows, nnz + rows * (data.constant != 0), self._longest)
        ids, labels, label_counts, C = [], [], [], []
        parts = one_ahead(data.store.read_packed, numbers, "manyclass-unzip")
        for number, part in zip(numbers, parts, strict=True):
            self._add(layout, number, part)
            ids.append(part.ids)
            counts, own = data.labels(part)
            labels.append(own)
            label_counts.append(counts)
            penalties = data.penalties(part).astype(self._dtype)
            C.append(np.where(penalties < self._smallest, 0, penalties))
        ends = tuple(np.cumsum([part.size for part in ids]).tolist())
        label_ptr = np.concatenate([[0], np.cumsum(np.concatenate(label_counts))])
        rows_of_all = RowBlock(layout, label_ptr, np.concatenate(labels), np.concatenate(C), ends, batch)
        return Batch(numbers, tuple(ids), rows_of_all)

    def forget_spares(self) -> None:
        """Free the memory kept for the next batches."""
        self._spares.clear()

    def _add(self, layout: Any, number: int, part: PackedBlock | Block) -> None:
        features = part.n_features, self._data.constant, self._places
        try:
            if isinstance(part, Block):
                layout.add_rows(part.indptr, part.indices, part.values, *features)
            else:
                layout.add_planes(part.indptr, part.index_planes, part.value_planes, *features)
        except OverflowError:
            self._refuse_long_row(number)
        except ValueError as error:
            if isinstance(part, Block):
                raise
            raise self._data.store.damage(number, error) from error

    def _refuse_long_row(self, number: int) -> NoReturn:
        block = self._data.store.read(number)
        rows = block.as_csr(self._data.store.n_features).astype(np.float64)
        with np.errstate(over="ignore"):
            longest = int(np.argmax(rows.multiply(rows).sum(axis=1).A1))
        row = rows[longest]
        at = int(np.argmax(np.abs(row.data)))
        most = min(self._longest, float(np.finfo(self._dtype).max)) ** 0.5
        raise ValueError(
            f"{self._data.store.path}: the row with id {block.ids[longest]} has {row.data[at]:g} at column "
            f"{row.indices[at]}, too large to train in {self._dtype} with these penalties, where rows can have a "
            f"length of at most {most:.3g}; scale the features, lower C, or use float64"
        )

    def batches(self, order: Sequence[int], at_once: int) -> Generator[Batch]:
        """Yield batches of at most `at_once` blocks. A batch is valid until the next one is requested."""
        groups = [tuple(order[begin : begin + at_once]) for begin in range(0, len(order), at_once)]

        def read(number: int) -> Batch:
            for block in groups[number + 1] if number + 1 < len(groups) else ():
                self._data.store.expect(block)
            return self.read(groups[number], number)

        with closing(one_ahead(read, range(len(groups)), "manyclass-read")) as batches:
            for batch in batches:
                try:
                    yield batch
                finally:  # also after the last batch
                    self._spares.append(batch.rows.layout)


def one_ahead(make: Callable[[T], R], items: Iterable[T], thread: str) -> Generator[R]:
    """Yield `make(item)` for each item; another thread makes the next one while this one is used."""
    with ThreadPoolExecutor(1, thread) as beside:
        ahead: Future[R] | None = None
        for item in items:
            ready, ahead = ahead, beside.submit(make, item)
            if ready is not None:
                yield ready.result()
        if ahead is not None:
            yield ahead.result()


def folds_of(ids: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Return the fold of each row: random, but determined by its id and the seed alone."""
    return (shuffled(ids, seed + 2) % np.uint64(folds)).astype(np.int64)
