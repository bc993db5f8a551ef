"""Stores and texts to measure: from streams of rows that never are in memory as a whole, or from matrices."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyclass.data import BlockStore
from manyclass.data.conversion import LEAST_MEMORY, Conversion
from manyclass.data.matrix_rows import MatrixRows
from manyclass.data.row_parts import Place, RowPart
from manyclass.data.svmlight import format_blocks

Parts = Iterable[tuple[sp.csr_matrix, np.ndarray]]
MEMORY = 8 * LEAST_MEMORY


class StreamedRows:
    """Rows that are made as they are asked for; see `RowSource`."""

    dtype = np.dtype(np.float32)

    def __init__(self, parts: Parts):
        self._parts = parts
        self.index_base: int | None = 0
        self.min_index, self.max_index = 0, -1
        self.reading: dict[str, Any] = {}
        self.end = Place(1)

    def settings(self) -> dict[str, Any]:
        """What tells whether this is the same source as another: nothing does."""
        return {"files": [{"name": "<stream>"}], "dtype": self.dtype.name}

    def parts(self, begin: Place = Place()) -> Iterator[RowPart]:  # noqa: B008 - it is frozen
        """As they come."""
        rows = 0
        for X, y in self._parts:
            rows += X.shape[0]
            self.max_index = max(self.max_index, X.shape[1] - 1)
            indptr = X.indptr.astype(np.int64)
            yield RowPart(indptr, X.indices, X.data, np.arange(len(y) + 1), y, Place(0, rows=rows), 0)


def store_of_stream(parts: Parts, folder: Path, memory: int) -> BlockStore:
    """A store of rows as they come, made with so many bytes of memory."""
    return Conversion(StreamedRows(parts), folder, memory=memory).run()


def store_of_matrix(X: sp.csr_matrix, y: np.ndarray, folder: Path, blocks: int, **options: Any) -> BlockStore:
    """A store of so many blocks, rows dealt to them at random."""
    return Conversion(MatrixRows(X, y), folder, memory=MEMORY, blocks=blocks, **options).run()


def store_in_order(X: sp.csr_matrix, y: np.ndarray, folder: Path, blocks: int) -> BlockStore:
    """A store whose blocks are consecutive rows, sorted by class: the raw split of Yu et al., at its worst."""
    by_class = np.argsort(y, kind="stable")
    for number, rows in enumerate(np.array_split(by_class, min(blocks, len(y)))):
        part = MatrixRows(X[rows], y[rows])
        Conversion(part, folder, memory=MEMORY, blocks=1, append=number > 0).run()
    return BlockStore(folder)


def write_text(parts: Parts, path: Path, least: float = np.inf) -> int:
    """Write rows as LIBSVM text, until these are as many non-zeros as wanted; tell how many they are."""
    nonzeros = 0
    with path.open("wb") as out:
        for X, y in parts:
            out.writelines(format_blocks(X, y, base=1, mark_empty=True))
            nonzeros += X.nnz
            if nonzeros >= least:
                break
    return nonzeros


def block_bytes(store: BlockStore) -> int:
    """Bytes of the block files."""
    return sum(entry.size for entry in store.manifest.blocks)


def drop_from_cache(folder: Path) -> None:
    """Let the system forget the files of a store, so that the next reading is from the disk."""
    for path in folder.iterdir():
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(file)  # what is not on the disk yet would stay
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)
