"""A block store: a folder with blocks of rows, which may be larger than memory.

| file | contents |
|---|---|
| `manifest.json` | the blocks with their checksums, the number of rows, the name of the catalogue |
| `block-3-17.safetensors` | block 17 of generation 3: rows, never changed (`block_file.py`) |
| `catalogue-3.safetensors` | classes, number of rows per feature, removed rows |

The manifest is replaced atomically, after every file it names has reached the disk, so a store is always in the state
that one manifest describes. A folder without a manifest is not a store. Files that the manifest does not name are
ignored, and deleted by the next writer.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from .block_file import VALUE_TYPES, Block, BlockError, PackedBlock, damaged, read_packed
from .checksums import checksum_of, wrong_size
from .manifest import Catalogue, Manifest, StoreError
from .matrix import csr_of, index_type
from .steps import Chain


class BlockStore:
    """Rows on disk, for training and prediction block by block.

    Parameters
    ----------
    path : str or path-like
        The folder. Opening it checks that all blocks exist with the right sizes; `verify` checks their contents.

    Attributes
    ----------
    n_rows, n_features, nnz, n_blocks : int
        Size of the store, without removed rows.
    classes : ndarray of shape (K,)
        The classes of the rows, ascending.
    frequencies : int64 ndarray of shape (n_features,)
        Number of rows in which each feature occurs.

    Raises
    ------
    StoreError
        If a file is missing, damaged or does not belong to the store; the message names it.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._open()

    def _open(self) -> None:
        self.manifest = manifest = Manifest.read(self.path)
        for entry in manifest.blocks:
            if reason := wrong_size(self.path / entry.file, entry.size):
                raise StoreError(f"{self.path / entry.file} {reason}; restore it, or convert the data again")
        self.catalogue = Catalogue.read(self.path / manifest.catalogue, manifest)
        self.classes = self.catalogue.classes
        self.n_rows, self.nnz, self.n_features = manifest.rows, manifest.nnz, manifest.n_features
        self.n_blocks = len(manifest.blocks)

    @property
    def frequencies(self) -> np.ndarray:
        """Number of rows in which each feature occurs."""
        return self.catalogue.frequencies.of_all

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return np.dtype(VALUE_TYPES[self.manifest.value_bytes])

    @property
    def chain(self) -> Chain:
        """The preprocessing steps applied to the rows."""
        return self.manifest.chain

    @property
    def reading_settings(self) -> dict[str, Any]:
        """How the rows were read, apart from the steps; a model trained on the store keeps these settings."""
        return {name: value for name, value in self.manifest.reading.items() if name not in ("text", "normalize")}

    def read(self, number: int) -> Block:
        """Read the rows of a block, without removed ones. The labels are class indices."""
        block = self.read_packed(number)
        return self._unpack(number, block) if isinstance(block, PackedBlock) else block

    def read_packed(self, number: int) -> PackedBlock | Block:
        """Like `read`, but leave the features packed in planes if no row of the block was removed."""
        packed, removed = self._read(number), self.catalogue.removed
        gone = np.isin(packed.ids, removed, assume_unique=True) if removed.size else np.zeros(1, bool)
        block = self._unpack(number, packed).take(np.flatnonzero(~gone)) if gone.any() else packed
        labels = self.catalogue.class_of_code[block.labels]
        if (labels < 0).any():
            raise self.damage(number, BlockError("it has labels that the catalogue lists as unused"))
        return replace(block, labels=labels)

    def expect(self, number: int) -> None:
        """Hint to the operating system that a block will be read soon."""
        with suppress(OSError):
            file = os.open(self.path / self.manifest.blocks[number].file, os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(file)

    def read_with_removed(self, number: int) -> Block:
        """Read all rows of a block as written, including removed ones. The labels are label codes."""
        return self._unpack(number, self._read(number))

    def _unpack(self, number: int, packed: PackedBlock) -> Block:
        try:
            return packed.unpack()
        except BlockError as error:
            raise self.damage(number, error) from error

    def _read(self, number: int) -> PackedBlock:
        entry = self.manifest.blocks[number]
        path = self.path / entry.file
        try:
            block = read_packed(path, rows=entry.rows, nnz=entry.nnz)
        except FileNotFoundError:
            raise BlockError(f"{path} is gone; if it was removed from the store, reopen the store") from None
        bounds = np.concatenate([[-1], block.ids, [self.manifest.next_id]])
        if (bounds[1:] <= bounds[:-1]).any():
            raise BlockError(f"{path}: it has rows that the store does not know")
        if block.n_features > self.n_features:
            raise BlockError(f"{path}: it has features that the store does not know")
        if block.value_type != self.dtype:
            raise BlockError(f"{path}: its values are {block.value_type}, but those of the store are {self.dtype}")
        if not self.manifest.multilabel and (np.diff(block.label_ptr) != 1).any():
            raise BlockError(f"{path}: a row does not have exactly one label")
        codes = self.catalogue.class_of_code.size
        if block.labels.size and not 0 <= block.labels.min() <= block.labels.max() < codes:
            raise BlockError(f"{path}: it has labels that the store does not know")
        return block

    def damage(self, number: int, error: Exception) -> BlockError:
        """Return the error for a block whose planes turned out to be damaged."""
        return damaged(self.path / self.manifest.blocks[number].file, error)

    def labels(self) -> np.ndarray:
        """Return the labels of all rows in id order (single-label stores only)."""
        parts = [(block.ids, block.labels) for block in map(self.read, range(self.n_blocks))]
        ids, codes = map(np.concatenate, zip(*parts, strict=True))
        return self.classes[codes[np.argsort(ids)]]

    def label_counts(self) -> np.ndarray:
        """Return the number of rows per class."""
        counts = np.zeros(self.classes.size, np.int64)
        for block in map(self.read_packed, range(self.n_blocks)):
            counts += np.bincount(block.labels, minlength=counts.size)
        return counts

    def label_matrix(self, code_of: np.ndarray, n_classes: int) -> sp.csr_matrix:
        """Return the labels of all rows, in id order, as ones in the columns of their `code_of` (-1 for none)."""
        ids, parts = [], []
        for block in map(self.read, range(self.n_blocks)):
            rows = np.repeat(np.arange(block.n_rows), np.diff(block.label_ptr))
            columns = code_of[block.labels]
            known = columns >= 0
            ids.append(block.ids)
            ones = np.ones(np.count_nonzero(known), np.float32)
            parts.append(sp.csr_matrix((ones, (rows[known], columns[known])), (block.n_rows, n_classes)))
        return sp.vstack(parts, "csr")[np.argsort(np.concatenate(ids))]

    def load(self) -> tuple[sp.csr_matrix, Any]:
        """Load all rows into memory, in id order.

        Returns
        -------
        X : csr_matrix of shape (n, d)
        y : ndarray of shape (n,), or csr_matrix of shape (n, K)
            The labels; in a multilabel store, an indicator with one column per entry of `classes`.
        """
        # Sort instead of indexing by id, because ids can be far larger than the number of rows.
        rows = [(block.ids, np.diff(block.indptr)) for block in map(self.read_packed, range(self.n_blocks))]
        ids, lengths = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        order = np.argsort(ids)
        ends = np.empty_like(lengths)
        ends[order] = np.cumsum(lengths[order])  # where each row, in reading order, ends in X
        indptr = np.concatenate([[0], ends[order]])
        indices, values = np.empty(indptr[-1], index_type(self.n_features)), np.empty(indptr[-1], self.dtype)
        X = csr_of(indptr, indices, values, (self.n_rows, self.n_features))
        first = 0
        for block in map(self.read, range(self.n_blocks)):
            its_ends = ends[first : first + block.n_rows]
            place = np.repeat(its_ends - block.indptr[1:], np.diff(block.indptr)) + np.arange(block.indptr[-1])
            X.data[place], X.indices[place] = block.values, block.indices
            first += block.n_rows
        if self.manifest.multilabel:
            return X, self.label_matrix(np.arange(self.classes.size), self.classes.size)
        return X, self.labels()

    # ---- Creating and changing

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        rows: Any,
        y: Any = None,
        *,
        dtype: DTypeLike = np.float32,
        memory: int | str = "512MB",
        blocks: int | None = None,
        compression: str = "zstd",
        seed: int = 0,
    ) -> "BlockStore":
        """Create a store.

        Parameters
        ----------
        path : str or path-like
            A new or empty folder.
        rows : matrix, iterable of pairs, path, sequence of paths, or RowSource
            A sparse or dense matrix whose labels are `y`, an iterable of `(X, y)` pairs, or svmlight files.
        y : labels, or sparse indicator
            The labels, if `rows` is a matrix.
        dtype : float32 or float64
            Type of the stored values.
        memory : int or str
            Maximum bytes to use, such as "512MB". The block size suits a fit with the same memory.
        blocks : int, optional
            Number of blocks. Default: chosen from the memory.
        compression : "zstd", "zlib" or "none"
            Compression of the blocks.
        seed : int
            Seed for the random assignment of rows to blocks.

        Returns
        -------
        BlockStore

        Raises
        ------
        StoreError
            If the folder holds something else.
        """
        from .store_changes import create_store  # imported here to avoid a cycle

        how: dict[str, Any] = {"memory": memory, "blocks": blocks, "compression": compression, "seed": seed}
        return create_store(path, rows, y, dtype=dtype, **how)

    def append(
        self, rows: Any, y: Any = None, *, memory: int | str = "512MB", compression: str = "zstd", seed: int = 0
    ) -> "BlockStore":
        """Append rows as new blocks: all of them, or none if anything fails.

        Values are converted to the type of the store. The rows may bring new features and new classes. Their ids
        continue after those of all earlier rows, including removed ones.

        Parameters
        ----------
        rows : matrix, iterable of pairs, path, sequence of paths, or RowSource
            As for `create`. Files must be of the kind that the store was created from.
        y : labels, or sparse indicator
            The labels, if `rows` is a matrix.
        memory, compression, seed : as for `create`

        Returns
        -------
        BlockStore
            This store, with the new rows.

        Raises
        ------
        StoreError
            If another process is changing the store.
        """
        from .store_changes import append_rows  # imported here to avoid a cycle

        append_rows(self.path, rows, y, memory=memory, compression=compression, seed=seed)
        self._open()
        return self

    def remove(self, rows: Iterable[int] = (), *, blocks: Iterable[int] = ()) -> "BlockStore":
        """Remove rows or whole blocks.

        The files of whole blocks are deleted. Single rows stay in their files and are skipped when reading. Classes
        without remaining rows disappear; features keep their numbers.

        Parameters
        ----------
        rows : iterable of int
            Ids of the rows. Rows are numbered in input order.
        blocks : iterable of int
            Block numbers, as for `read`. Later blocks move up.

        Returns
        -------
        BlockStore
            This store, without these rows.

        Raises
        ------
        StoreError
            If a row or block does not exist or was already removed, if nothing would be left, or if another process
            is changing the store. Nothing is removed in that case.
        """
        from .store_changes import remove_rows  # imported here to avoid a cycle

        remove_rows(self.path, rows, blocks)
        self._open()
        return self

    # ---- Checking

    def verify(self) -> Iterator[str]:
        """Read every block and yield a message for each one that is damaged or has changed."""
        for number, entry in enumerate(self.manifest.blocks):
            path = self.path / entry.file
            try:
                if checksum_of(path) != entry.checksum:
                    yield f"{path}: its content has changed since it was written"
                else:
                    self.read(number)
            except (OSError, BlockError) as error:
                yield str(error)
