"""A folder of blocks of rows, larger than memory if need be.

| file | what it holds |
|---|---|
| `manifest.json` | which blocks there are, with their checksums; how many rows; the name of the catalogue |
| `block-3-17.safetensors` | block 17 of generation 3: rows, never changed (`block_file.py`) |
| `catalogue-3.safetensors` | classes, in how many rows each feature occurs, removed rows |

The manifest is replaced in one step, after everything that it names has reached the disk: a store is always what one
manifest says, and a folder without a manifest is no store. What it does not name is ignored, and swept away by the
next who writes.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from .block_file import VALUE_TYPES, Block, BlockError, PackedBlock, damaged, read_packed
from .checksums import checksum_of
from .manifest import MANIFEST, BlockEntry, Catalogue, Manifest, StoreError
from .steps import Chain

__all__ = ["MANIFEST", "BlockEntry", "BlockStore", "Manifest", "StoreError"]


class BlockStore:
    """Rows on disk, to be trained on and predicted block by block.

    Parameters
    ----------
    path : str or path-like
        The folder. Its blocks must be there, with the right sizes; `verify` looks at their content.

    Attributes
    ----------
    n_rows, n_features, nnz, n_blocks : int
        Without the rows that were removed.
    classes : ndarray of shape (K,)
        Those that rows have, ascending.
    frequencies : int64 ndarray of shape (n_features,)
        In how many rows each feature occurs.

    Raises
    ------
    StoreError
        Naming what is missing, damaged or from elsewhere.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._open()

    def _open(self) -> None:
        self.manifest = manifest = Manifest.read(self.path)
        for entry in manifest.blocks:
            _check_size(self.path / entry.file, entry.size)
        self.catalogue = Catalogue.read(self.path / manifest.catalogue, manifest)
        self.classes, self.frequencies = self.catalogue.classes, self.catalogue.frequencies
        self.n_rows, self.nnz, self.n_features = manifest.rows, manifest.nnz, manifest.n_features
        self.n_blocks = len(manifest.blocks)

    @property
    def dtype(self) -> np.dtype:
        """Of the values."""
        return np.dtype(VALUE_TYPES[self.manifest.value_bytes])

    @property
    def chain(self) -> Chain:
        """The steps that its rows have gone through."""
        return self.manifest.chain

    @property
    def reading_settings(self) -> dict[str, Any]:
        """What a model that is trained on it remembers of how its rows were read, besides the steps."""
        return {name: value for name, value in self.manifest.reading.items() if name not in ("text", "normalize")}

    def read(self, number: int) -> Block:
        """The rows of a block that were not removed, with the numbers of their classes as labels.

        Raises
        ------
        BlockError
            If it is damaged.
        """
        block = self.read_packed(number)
        return self._unpack(number, block) if isinstance(block, PackedBlock) else block

    def read_packed(self, number: int) -> PackedBlock | Block:
        """The same, with features still in planes if no row was removed.

        Raises
        ------
        BlockError
            If it is damaged, as far as can be seen without the planes.
        """
        packed, removed = self._read(number), self.catalogue.removed
        gone = np.isin(packed.ids, removed, assume_unique=True) if removed.size else np.zeros(1, bool)
        block = self._unpack(number, packed).take(np.flatnonzero(~gone)) if gone.any() else packed
        labels = self.catalogue.class_of_code[block.labels]
        if (labels < 0).any():
            raise self.damage(number, BlockError("it has labels that no row should have"))
        return replace(block, labels=labels)

    def expect(self, number: int) -> None:
        """Tell the system that a block will be read soon: a wish, on which nothing depends."""
        with suppress(OSError):
            file = os.open(self.path / self.manifest.blocks[number].file, os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(file)

    def read_with_removed(self, number: int) -> Block:
        """All rows of a block as they were written, with the codes of their labels."""
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
            raise BlockError(f"{path} is gone; if it was removed from the store, open that again") from None
        bounds = np.concatenate([[-1], block.ids, [self.manifest.next_id]])
        if (bounds[1:] <= bounds[:-1]).any():
            raise BlockError(f"{path}: it has rows that the store does not know")
        if block.n_features > self.n_features:
            raise BlockError(f"{path}: it has features that the store does not know")
        if block.value_type != self.dtype:
            raise BlockError(f"{path}: its values are {block.value_type}, those of the store {self.dtype}")
        if not self.manifest.multilabel and (np.diff(block.label_ptr) != 1).any():
            raise BlockError(f"{path}: a row has other than one label")
        codes = self.catalogue.class_of_code.size
        if block.labels.size and not 0 <= block.labels.min() <= block.labels.max() < codes:
            raise BlockError(f"{path}: it has labels that the store does not know")
        return block

    def damage(self, number: int, error: Exception) -> BlockError:
        """What to say of a block in whose planes something was found."""
        return damaged(self.path / self.manifest.blocks[number].file, error)

    def labels(self) -> np.ndarray:
        """The labels of all rows in the order of their ids, where each has one."""
        ids, codes = [], []
        for number in range(self.n_blocks):
            block = self.read(number)
            ids.append(block.ids)
            codes.append(block.labels)
        return self.classes[np.concatenate(codes)[np.argsort(np.concatenate(ids))]]

    def label_counts(self) -> np.ndarray:
        """How many rows have each of the classes."""
        counts = np.zeros(self.classes.size, np.int64)
        for number in range(self.n_blocks):
            counts += np.bincount(self.read_packed(number).labels, minlength=counts.size)
        return counts

    def label_matrix(self, code_of: np.ndarray, n_classes: int) -> sp.csr_matrix:
        """Ones for the labels of all rows in the order of their ids.

        Parameters
        ----------
        code_of : ndarray of shape (K,)
            The column of each class, or -1 for none.
        n_classes : int
            How many columns there are.
        """
        ids, parts = [], []
        for number in range(self.n_blocks):
            block = self.read(number)
            rows = np.repeat(np.arange(block.n_rows), np.diff(block.label_ptr))
            columns = code_of[block.labels]
            known = columns >= 0
            ids.append(block.ids)
            ones = np.ones(np.count_nonzero(known), np.float32)
            parts.append(sp.csr_matrix((ones, (rows[known], columns[known])), (block.n_rows, n_classes)))
        return sp.vstack(parts, "csr")[np.argsort(np.concatenate(ids))]

    def load(self) -> tuple[sp.csr_matrix, Any]:
        """All rows in the order of their ids, in memory.

        Returns
        -------
        X : csr_matrix of shape (n, d)
        y : ndarray of shape (n,), or csr_matrix of shape (n, K)
            Labels; ones for them by the order of `classes`, where rows have other than one each.
        """
        # By the rows that there are: ids may be far beyond their number.
        rows = [(block.ids, np.diff(block.indptr)) for block in map(self.read_packed, range(self.n_blocks))]
        ids, lengths = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        order = np.argsort(ids)
        ends = np.empty_like(lengths)
        ends[order] = np.cumsum(lengths[order])  # of each row as it was read, where it is to end
        X = sp.csr_matrix((self.n_rows, self.n_features), dtype=self.dtype)
        X.indptr = np.concatenate([[0], ends[order]])
        index_type = np.int32 if self.n_features <= np.iinfo(np.int32).max else np.int64
        X.data, X.indices = np.empty(X.indptr[-1], self.dtype), np.empty(X.indptr[-1], index_type)
        first = 0
        for block in map(self.read, range(self.n_blocks)):
            its_ends = ends[first : first + block.n_rows]
            place = np.repeat(its_ends - block.indptr[1:], np.diff(block.indptr)) + np.arange(block.indptr[-1])
            X.data[place], X.indices[place] = block.values, block.indices
            first += block.n_rows
        if self.manifest.multilabel:
            return X, self.label_matrix(np.arange(self.classes.size), self.classes.size)
        return X, self.labels()

    # ---- Making and changing it

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
        """Make a store.

        Parameters
        ----------
        path : str or path-like
            A folder that is not there yet, or empty.
        rows : matrix, iterable of pairs, path, sequence of paths, or RowSource
            A sparse or dense matrix, with `y`; such matrices with their labels one after the other, `(X, y)`; or
            svmlight files.
        y : labels, or sparse indicator
            Of a matrix.
        dtype : float32 or float64
            Of the values.
        memory : int or str
            Bytes that may be used, such as "512MB"; a fit that is given as much finds blocks of the right size.
        blocks : int, optional
            How many blocks are wanted, if not as many as follow from the memory.
        compression : str
            As `PlaneWriter` has it.
        seed : int
            Of the dealing of rows to blocks.

        Returns
        -------
        BlockStore

        Raises
        ------
        StoreError
            If the folder holds something else.
        """
        from .store_changes import create_store  # which needs this file

        options: dict[str, Any] = {"blocks": blocks, "compression": compression, "seed": seed}
        return create_store(path, rows, y, dtype=dtype, memory=memory, **options)

    def append(
        self, rows: Any, y: Any = None, *, memory: int | str = "512MB", compression: str = "zstd", seed: int = 0
    ) -> "BlockStore":
        """Add rows, in blocks of their own: all of them, or none if anything fails.

        Values are stored in the store's type. More features than before, and other classes, are welcome. The new rows
        are called by the numbers that follow on those of all rows before, removed ones included.

        Parameters
        ----------
        rows : matrix, iterable of pairs, path, sequence of paths, or RowSource
            As for `create`; files of the kind that the store was made of.
        y : labels, or sparse indicator
            Of a matrix.
        memory : int or str
            Bytes that may be used, such as "512MB".
        compression : str
            As `PlaneWriter` has it.
        seed : int
            Of the dealing of rows to blocks.

        Returns
        -------
        BlockStore
            This one, as it is now.

        Raises
        ------
        StoreError
            If someone else is changing the store.
        """
        from .store_changes import append_rows  # which needs this file

        append_rows(self.path, rows, y, memory=memory, compression=compression, seed=seed)
        self._open()
        return self

    def remove(self, rows: Iterable[int] = (), *, blocks: Iterable[int] = ()) -> "BlockStore":
        """Remove rows, or whole blocks.

        Files of whole blocks are deleted; other rows stay in theirs and are passed over. Classes that no row has any
        more are gone, too. Features keep their numbers.

        Parameters
        ----------
        rows : iterable of int
            Their ids, as blocks have them: rows are numbered in the order of the text.
        blocks : iterable of int
            As `read` takes them. Later blocks move up.

        Returns
        -------
        BlockStore
            This one, as it is now.

        Raises
        ------
        StoreError
            If a row or block is not there, or was removed before; if nothing would be left; if someone else is
            changing the store. Nothing is removed then.
        """
        from .store_changes import remove_rows

        remove_rows(self.path, rows, blocks)
        self._open()
        return self

    # ---- Checking it

    def verify(self) -> Iterator[str]:
        """Read all of it, and say of each block that is not as it was written what is wrong."""
        for number, entry in enumerate(self.manifest.blocks):
            path = self.path / entry.file
            try:
                if checksum_of(path) != entry.checksum:
                    yield f"{path}: its content has changed since it was written"
                else:
                    self.read(number)
            except (OSError, BlockError) as error:
                yield str(error)


def _check_size(path: Path, size: int) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        raise StoreError(f"{path} is missing; restore it, or convert the data anew") from None
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is no file; restore it, or convert the data anew")
    if found.st_size != size:
        raise StoreError(f"{path} has {found.st_size} bytes instead of {size}; restore it, or convert the data anew")
