"""The rows of a store as solvers want them, a block at a time, the next one read while this one is solved."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._native import core
from ..data.block_file import Block
from ..data.block_store import BlockStore
from ..data.conversion import shuffled
from ..solvers import RowBlock, StreamShape
from ..solvers.solver import native


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
    """

    store: BlockStore
    C: float
    class_weight: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    constant: float = 0.0

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.store.classes.size)

    @property
    def nbytes(self) -> int:
        """Of the rows that the caller holds in memory: none."""
        return 0

    def penalties(self, block: Block) -> np.ndarray:
        """C of each row of a block."""
        C = np.full(block.n_rows, self.C)
        if self.class_weight is not None:
            C *= self.class_weight[block.labels]
        if self.sample_weight is not None:
            C *= self.sample_weight[block.ids]
        return C


@dataclass(frozen=True)
class LaidOutBlock:
    """A block that was read.

    Attributes
    ----------
    ids : ndarray
        Of its rows.
    rows : RowBlock
    codes : RowBlock labels as they are in the store
    """

    ids: np.ndarray
    rows: RowBlock


@dataclass
class BlockReader:
    """Reads blocks, one ahead.

    Attributes
    ----------
    data : StoredRows
    dtype : numpy dtype
        Of weights and penalties.
    seconds_waited, seconds_read : float
        For blocks that were not there yet, and for reading them.
    """

    data: StoredRows
    dtype: np.dtype
    seconds_waited: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        store = self.data.store
        frequencies = store.frequencies
        if self.data.constant:
            frequencies = np.append(frequencies, store.n_rows)
        self.shape = StreamShape(
            places=core.FeaturePlaces(frequencies, self.data.constant != 0),
            n_classes=self.data.n_classes,
            width=store.nnz / max(1, store.n_rows) + (self.data.constant != 0),
            constant=self.data.constant,
        )

    def read(self, number: int) -> LaidOutBlock:
        """Read a block.

        Raises
        ------
        BlockError
            If it is damaged.
        """
        block = self.data.store.read(number)
        layout = native(core, "Layout", self.dtype)(
            block.indptr, block.indices, block.values, self.data.store.n_features, self.data.constant, self.shape.places
        )
        C = self.data.penalties(block).astype(self.dtype)
        return LaidOutBlock(block.ids, RowBlock(layout, block.label_ptr, block.labels, C, number))

    def blocks(self, order: Sequence[int]) -> Iterator[LaidOutBlock]:
        """Read these, one after the other."""
        with ThreadPoolExecutor(1, "manyclass-read") as beside:
            ahead = beside.submit(self.read, order[0])
            for following in order[1:]:
                block = ahead.result()
                ahead = beside.submit(self.read, following)
                yield block
                del block
            yield ahead.result()


def folds_of(ids: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Which fold each row is in: at random, the same whatever the blocks."""
    return (shuffled(ids, seed + 2) % np.uint64(folds)).astype(np.int64)
