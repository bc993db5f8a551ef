"""Create stores and texts to measure, from matrices or from streams that do not fit in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyclass.data import BlockStore
from manyclass.data.conversion import LEAST_MEMORY, Conversion
from manyclass.data.matrix_rows import MatrixRows
from manyclass.data.svmlight import format_blocks

Parts = Iterable[tuple[sp.csr_matrix, np.ndarray]]
MEMORY = 8 * LEAST_MEMORY


def store_of_stream(parts: Parts, folder: Path, memory: int) -> BlockStore:
    """Create a store from a stream of rows with a given memory budget in bytes."""
    return BlockStore.create(folder, parts, memory=memory)


def store_of_matrix(X: sp.csr_matrix, y: np.ndarray, folder: Path, blocks: int, **options: Any) -> BlockStore:
    """Create a store with a given number of blocks and rows assigned at random."""
    return BlockStore.create(folder, X, y, blocks=blocks, **options)


def store_in_order(X: sp.csr_matrix, y: np.ndarray, folder: Path, blocks: int) -> BlockStore:
    """Create a store whose blocks are consecutive rows sorted by class: the worst raw split of Yu et al."""
    by_class = np.argsort(y, kind="stable")
    for number, rows in enumerate(np.array_split(by_class, min(blocks, len(y)))):
        part = MatrixRows(X[rows], y[rows])
        Conversion(part, folder, memory=MEMORY, blocks=1, append=number > 0).run()
    return BlockStore(folder)


def write_text(parts: Parts, path: Path, least: float = np.inf) -> int:
    """Write rows as LIBSVM text until they have at least `least` non-zeros; return the number of non-zeros."""
    nonzeros = 0
    with path.open("wb") as out:
        for X, y in parts:
            out.writelines(format_blocks(X, y, base=1, mark_empty=True))
            nonzeros += X.nnz
            if nonzeros >= least:
                break
    return nonzeros


def block_bytes(store: BlockStore) -> int:
    """Return the total size of the block files in bytes."""
    return sum(entry.size for entry in store.manifest.blocks)


def drop_from_cache(folder: Path) -> None:
    """Evict the files of a store from the page cache, so that the next read comes from disk."""
    for path in folder.iterdir():
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(file)  # pages that are not on disk yet would stay
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)
