"""A folder of blocks of rows, larger than memory if need be.

| file | what it holds |
|---|---|
| `manifest.json` | which blocks there are, with their checksums; how many rows; the name of the catalogue |
| `block-3-17.safetensors` | block 17 of generation 3: rows, never changed (`block_file.py`) |
| `catalogue-3.safetensors` | classes, in how many rows each feature occurs, removed rows |

The manifest is replaced in one step, after everything that it names has reached the disk: a store is always what one
manifest says, and a folder without a manifest is no store.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError

from .block_file import Block, BlockError, read_block
from .checksums import checksum_of
from .class_names import read_classes
from .streams import open_atomic
from .tensor_file import TensorFile

FORMAT = "manyclass store"
VERSION = 1
MANIFEST = "manifest.json"


class StoreError(ValueError):
    """A folder that cannot be used as a store; the message names it and the reason."""


@dataclass(frozen=True)
class BlockEntry:
    """A block as the manifest knows it.

    Attributes
    ----------
    file : str
        Its name in the folder.
    rows, nnz : int
        What it holds.
    size : int
        Bytes of the file.
    checksum : str
        Of the file.
    """

    file: str
    rows: int
    nnz: int
    size: int
    checksum: str


@dataclass(frozen=True)
class Manifest:
    """What a store is.

    Attributes
    ----------
    generation : int
        Grows with every change.
    rows, nnz, n_features : int
        Of all blocks; removed rows are not counted.
    next_id : int
        What the next row that is added is called.
    index_base : int
        What the features of the text counted from.
    value_bytes : int
        4 for float32, 8 for float64.
    multilabel : bool
        Whether some row has other than one label.
    blocks : tuple of BlockEntry
    catalogue : str
        The name of its file.
    catalogue_checksum : str
    """

    generation: int
    rows: int
    nnz: int
    n_features: int
    next_id: int
    index_base: int
    value_bytes: int
    multilabel: bool
    catalogue: str
    catalogue_checksum: str
    blocks: tuple[BlockEntry, ...] = field(default=())

    def write(self, folder: Path) -> None:
        """Make the folder the store that this describes."""
        content = {"format": FORMAT, "version": VERSION} | asdict(self)
        with open_atomic(folder / MANIFEST) as out:
            out.write(json.dumps(content, indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read it.

        Raises
        ------
        StoreError
            If there is none, or it cannot be used.
        """
        path = folder / MANIFEST
        try:
            content = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(_no_store(folder)) from None
        except ValueError as error:
            raise StoreError(f"{path} is no JSON ({error}); convert the data anew") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise StoreError(f"{path} is not the manifest of a store; name the folder that `convert` has made")
        if content.get("version") != VERSION:
            raise StoreError(f"{path} has version {content.get('version')}, which this manyclass does not read")
        try:
            blocks = tuple(BlockEntry(**entry) for entry in content.pop("blocks"))
            del content["format"], content["version"]
            return cls(**content, blocks=blocks)
        except (KeyError, TypeError) as error:
            raise StoreError(f"{path} is damaged ({error}); convert the data anew") from error


def _no_store(folder: Path) -> str:
    if not folder.exists():
        return f"{folder} does not exist; make a store with `manyclass convert`"
    if not folder.is_dir():
        return f"{folder} is a file; a store is a folder that `manyclass convert` makes"
    if (folder / "conversion.json").exists():
        return f"{folder} is not whole: its conversion was stopped; repeat the command to go on with it"
    return f"{folder} has no {MANIFEST}: it is no store"


class BlockStore:
    """Rows on disk, to be trained on and predicted block by block.

    Parameters
    ----------
    path : str or path-like
        The folder. Its blocks must be there, with the right sizes; `verify` looks at their content.

    Attributes
    ----------
    n_rows, n_features, nnz, n_blocks : int
    classes : ndarray of shape (K,)
        Ascending.
    frequencies : int64 ndarray of shape (n_features,)
        In how many rows each feature occurs, removed ones included.

    Raises
    ------
    StoreError
        Naming what is missing, damaged or from elsewhere.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.manifest = Manifest.read(self.path)
        for entry in self.manifest.blocks:
            _check_size(self.path / entry.file, entry.size)
        catalogue = self._catalogue()
        try:
            self.classes = read_classes(catalogue)
            self.frequencies = catalogue["frequencies"]
            self._class_of_code = catalogue["class_of_code"]
            self._removed = catalogue["removed"]
        except (KeyError, ValueError) as error:
            raise StoreError(f"{self.path / self.manifest.catalogue} is damaged ({error})") from error
        self.n_rows, self.nnz, self.n_features = self.manifest.rows, self.manifest.nnz, self.manifest.n_features
        self.n_blocks = len(self.manifest.blocks)

    def _catalogue(self) -> dict[str, np.ndarray]:
        path = self.path / self.manifest.catalogue
        try:
            if checksum_of(path) != self.manifest.catalogue_checksum:
                raise StoreError(f"{path} is not the file that the manifest names; restore it, or convert anew")
            return TensorFile(path, mmap=False).arrays()
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise error if isinstance(error, StoreError) else StoreError(f"{path}: {error}") from error

    def read(self, number: int) -> Block:
        """The rows of a block that were not removed, with the numbers of their classes as labels.

        Raises
        ------
        BlockError
            If it is damaged.
        """
        entry = self.manifest.blocks[number]
        block = read_block(self.path / entry.file)
        if (block.n_rows, block.indices.size) != (entry.rows, entry.nnz):
            raise BlockError(f"{self.path / entry.file}: not the block that the manifest names")
        if block.labels.size and not 0 <= block.labels.min() <= block.labels.max() < self._class_of_code.size:
            raise BlockError(f"{self.path / entry.file}: it has labels that the store does not know")
        block = replace(block, labels=self._class_of_code[block.labels])
        if not self._removed.size:
            return block
        kept = np.flatnonzero(~np.isin(block.ids, self._removed, assume_unique=True))
        return block if kept.size == block.n_rows else block.take(kept)

    @property
    def reading(self) -> dict[str, Any]:
        """What a model must remember in order to read more rows of the kind."""
        return {"index_base": self.manifest.index_base}

    def labels(self) -> np.ndarray:
        """The labels of all rows in the order of their ids, where each has one."""
        ids, codes = [], []
        for number in range(self.n_blocks):
            block = self.read(number)
            ids.append(block.ids)
            codes.append(block.labels)
        return self.classes[np.concatenate(codes)[np.argsort(np.concatenate(ids))]]

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
            parts.append(
                sp.csr_matrix(
                    (np.ones(known.sum(), np.float32), (rows[known], columns[known])), (block.n_rows, n_classes)
                )
            )
        return sp.vstack(parts, "csr")[np.argsort(np.concatenate(ids))]

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
        found = path.stat().st_size
    except FileNotFoundError:
        raise StoreError(f"{path} is missing; restore it, or convert the data anew") from None
    if found != size:
        raise StoreError(f"{path} has {found} bytes instead of {size}; restore it, or convert the data anew")
