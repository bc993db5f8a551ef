"""The rows of a store as solvers want them, a block at a time, the next one read while this one is solved."""

from collections import deque
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
    """What to learn from: the rows of a store, frozen.

    Attributes
    ----------
    store : BlockStore
    C : float
        Of every row, times its weights.
    class_weight : ndarray of shape (K,), optional
        Factor of C for the rows of each class.
    sample_weight : ndarray, optional
        Factor of C for each row, by its id.
    constant : float
        Value of the constant feature; 0 for none.
    classes : tuple of int, optional
        The first class to learn, and the one behind the last; None for all. Rows of other classes are rows without
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
        """How many classes there are to learn."""
        if self.classes is None:
            return int(self.store.classes.size)
        return self.classes[1] - self.classes[0]

    @property
    def nbytes(self) -> int:
        """Of the rows that the caller holds in memory: none."""
        return 0

    def penalty_bounds(self) -> tuple[float, float]:
        """Bounds on the sum of the penalties of all rows, and on the largest of them."""
        largest = self.C
        if self.class_weight is not None:
            largest *= float(self.class_weight.max())
        if self.sample_weight is None:
            return largest * self.store.n_rows, largest
        return largest * float(self.sample_weight.sum()), largest * float(self.sample_weight.max())

    def penalties(self, block: PackedBlock | Block) -> np.ndarray:
        """C of each row of a block."""
        C = np.full(block.ids.size, self.C)
        if self.class_weight is not None:
            C *= self.class_weight[block.labels]
        if self.sample_weight is not None:
            C *= self.sample_weight[block.ids]
        return C

    def labels(self, block: PackedBlock | Block) -> tuple[np.ndarray, np.ndarray]:
        """The labels of the rows of a block among the classes to learn, counted from the first of these.

        Returns
        -------
        counts : ndarray
            How many each row has.
        labels : ndarray
            Those of all rows, one row after the other.
        """
        counts = np.diff(block.label_ptr)
        if self.classes is None:
            return counts, block.labels
        low, high = self.classes
        here = (block.labels >= low) & (block.labels < high)
        rows = np.repeat(np.arange(counts.size), counts)[here]
        return np.bincount(rows, minlength=counts.size), block.labels[here] - block.labels.dtype.type(low)


@dataclass(frozen=True)
class Batch:
    """Blocks that were read to be visited together.

    Attributes
    ----------
    blocks : tuple of int
        Their numbers in the store.
    ids : tuple of ndarray
        Of the rows of each.
    rows : RowBlock
        All their rows, a part for each block.
    """

    blocks: tuple[int, ...]
    ids: tuple[np.ndarray, ...]
    rows: RowBlock


class BlockReader:
    """Reads blocks, some at a time, one batch ahead.

    Parameters
    ----------
    data : StoredRows
    dtype : float32 or float64
        What rows and penalties are used in.
    longest : float
        The squared length that rows may have.
    tail_rows : int
        Features in at most this many rows have lists of weights, not one weight per class.
    """

    def __init__(self, data: StoredRows, dtype: np.dtype, longest: float = np.inf, tail_rows: int = 1):
        self._data, self._dtype, self._longest = data, np.dtype(dtype), longest
        self._smallest = np.finfo(dtype).tiny  # of penalties: rows with less take no part
        self._spares: list[Any] = []  # layouts of batches that were used: the next ones take their memory
        store = data.store
        frequencies = np.append(store.frequencies, store.n_rows) if data.constant else store.frequencies
        self.shape = StreamShape(
            places=core.FeaturePlaces(frequencies, data.constant != 0, tail_rows),
            n_classes=data.n_classes,
            width=store.nnz / max(1, store.n_rows) + (data.constant != 0),
            constant=data.constant,
            n_rows=store.n_rows,
            first_class=data.classes[0] if data.classes else 0,
        )

    def read(self, numbers: tuple[int, ...], batch: int) -> Batch:
        """Read these blocks.

        Raises
        ------
        BlockError
            If one is damaged.
        ValueError
            If a row is too long.
        """
        data = self._data
        entries = [data.store.manifest.blocks[number] for number in numbers]
        rows, nnz = sum(entry.rows for entry in entries), sum(entry.nnz for entry in entries)
        layout = self._spares.pop() if self._spares else native(core, "Layout", self._dtype)()
        layout.begin_rows(self.shape.places, rows, nnz + rows * (data.constant != 0), self._longest)
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
        """Give back the memory of batches that were read."""
        self._spares.clear()

    def _add(self, layout: Any, number: int, part: PackedBlock | Block) -> None:
        features = part.n_features, self._data.constant, self.shape.places
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
        """Raise an error about the longest row of a block."""
        block = self._data.store.read(number)
        rows = block.as_csr(self._data.store.n_features).astype(np.float64)
        with np.errstate(over="ignore"):
            longest = int(np.argmax(rows.multiply(rows).sum(axis=1).A1))
        row = rows[longest]
        place = int(np.argmax(np.abs(row.data)))
        most = min(self._longest, float(np.finfo(self._dtype).max)) ** 0.5
        raise ValueError(
            f"{self._data.store.path}: the row with id {block.ids[longest]} has {row.data[place]:g} at column "
            f"{row.indices[place]}, too large to train in {self._dtype} with these penalties, where rows can have a "
            f"length of at most {most:.3g}; scale the features, lower C, or use float64"
        )

    def batches(self, order: Sequence[int], at_once: int) -> Generator[Batch]:
        """Read these blocks, so many at once. A batch is good until the next one is asked for."""
        groups = [tuple(order[begin : begin + at_once]) for begin in range(0, len(order), at_once)]

        def read(number: int) -> Batch:
            for block in groups[number + 1] if number + 1 < len(groups) else ():
                self._data.store.expect(block)
            return self.read(groups[number], number)

        with closing(one_ahead(read, range(len(groups)), "manyclass-read")) as batches:
            for batch in batches:
                try:
                    yield batch
                finally:  # whoever has used the last one does not ask for more
                    self._spares.append(batch.rows.layout)


def one_ahead(make: Callable[[T], R], items: Iterable[T], thread: str) -> Generator[R]:
    """What `make` gives for each item; the next one is made by another thread while this one is used."""
    with ThreadPoolExecutor(1, thread) as beside:
        ahead: deque[Future[R]] = deque()
        for item in items:
            ahead.append(beside.submit(make, item))
            if len(ahead) > 1:
                yield ahead.popleft().result()
        if ahead:
            yield ahead.popleft().result()


def folds_of(ids: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Which fold each row is in: at random, the same whatever the blocks."""
    return (shuffled(ids, seed + 2) % np.uint64(folds)).astype(np.int64)
