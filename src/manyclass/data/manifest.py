"""What a store says of itself: the manifest, and the catalogue that it names."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from .checksums import checksum_of, write_checked
from .class_names import class_tensors, read_classes
from .labels import as_labels, number_labels
from .steps import Chain, StoredStep
from .streams import open_atomic
from .tensor_file import TensorFile, tensor_file_content

FORMAT = "manyclass store"
# Readers of version 1 would take normalized rows for rows as they were written.
VERSION, NORMALIZED = 1, 2
MANIFEST = "manifest.json"
JOURNAL = "conversion.json"  # of a conversion under way; see `conversion.py`
OWN_FILES = re.compile(r"(block-\d+-\d+|catalogue-\d+|spill-\d+)\.safetensors")


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
        What it holds, removed rows included.
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
    reading : dict
        How the rows came about, for those who want to read more of the kind: `index_base`, what the features of the
        text counted from; of texts `text_column`, `label_column`, and as `text` what `HashedText` takes; `normalize`,
        "l2", if rows were scaled to length 1.
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
    reading: dict[str, Any]
    value_bytes: int
    multilabel: bool
    catalogue: str
    catalogue_checksum: str
    blocks: tuple[BlockEntry, ...] = field(default=())

    @property
    def index_base(self) -> int:
        """What the features of the text counted from."""
        return self.reading.get("index_base", 0)

    @property
    def chain(self) -> Chain:
        """The steps that the rows have gone through."""
        stored = [StoredStep("HashedText", self.reading["text"])] if "text" in self.reading else []
        return Chain.restore([*stored, *([StoredStep("UnitRows", {})] if "normalize" in self.reading else [])])

    def write(self, folder: Path) -> None:
        """Make the folder the store that this describes."""
        version = NORMALIZED if "normalize" in self.reading else VERSION
        content = {"format": FORMAT, "version": version} | asdict(self)
        _sync(folder)
        with open_atomic(folder / MANIFEST) as out:
            out.write(json.dumps(content, indent=1).encode())
        _sync(folder)

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
        if content.get("version") not in (VERSION, NORMALIZED):
            raise StoreError(f"{path} has version {content.get('version')}, which this manyclass does not read")
        try:
            blocks = tuple(BlockEntry(**entry) for entry in content.pop("blocks"))
            del content["format"], content["version"]
            manifest = cls(**content, blocks=blocks)
            manifest._check()
            return manifest
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{path} is damaged ({error}); convert the data anew") from error

    def _check(self) -> None:
        things: list[Manifest | BlockEntry] = [self, *self.blocks]
        for thing in things:
            for about in fields(thing):
                value = getattr(thing, about.name)
                if about.type is int and (type(value) is not int or value < 0):
                    raise ValueError(f"{about.name} is {value!r}")
        if self.value_bytes not in (4, 8):
            raise ValueError(f"value_bytes is {self.value_bytes}")
        if not isinstance(self.reading, dict):
            raise ValueError(f"reading is {self.reading!r}")
        if not isinstance(self.reading.get("text", {}), dict) or self.reading.get("normalize", "l2") != "l2":
            raise ValueError(f"reading is {self.reading!r}")
        self.chain.check_features(self.n_features)
        for name in (self.catalogue, *(entry.file for entry in self.blocks)):
            if not isinstance(name, str) or not OWN_FILES.fullmatch(name):
                raise ValueError(f"{name!r} is no file of a store")


def _sync(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _no_store(folder: Path) -> str:
    if not folder.exists():
        return f"{folder} does not exist; make a store with `manyclass convert`"
    if not folder.is_dir():
        return f"{folder} is a file; a store is a folder that `manyclass convert` makes"
    if (folder / JOURNAL).exists():
        return f"{folder} is not whole: its conversion was stopped; repeat the command to go on with it"
    return f"{folder} has no {MANIFEST}: it is no store"


@dataclass(frozen=True)
class Catalogue:
    """What all blocks have in common.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        Ascending.
    class_of_code : int32 ndarray
        Which class each code in a block is; -1 if no row has it any more.
    rows_of_code : int64 ndarray
        How many rows have the code.
    frequencies : int64 ndarray of shape (n_features,)
        In how many rows each feature occurs.
    removed : int64 ndarray
        Ids of the rows that are in blocks and were removed, ascending.
    """

    classes: np.ndarray
    class_of_code: np.ndarray
    rows_of_code: np.ndarray
    frequencies: np.ndarray
    removed: np.ndarray

    @classmethod
    def of_labels(cls, labels: Sequence[Any], rows_of_code: np.ndarray, **others: np.ndarray) -> "Catalogue":
        """That of these labels by their codes."""
        used = np.flatnonzero(rows_of_code)
        class_of_code = np.full(len(labels), -1, np.int32)
        classes, numbers = number_labels(as_labels([labels[code] for code in used.tolist()]))
        class_of_code[used] = numbers
        return cls(classes, class_of_code, rows_of_code, **others)

    @property
    def labels(self) -> list[Any]:
        """By their codes; None for those that no row has."""
        classes = [*self.classes.tolist(), None]
        return [classes[number] for number in self.class_of_code.tolist()]

    def write(self, path: Path) -> str:
        """Write it, and give its checksum."""
        tensors = {about.name: getattr(self, about.name) for about in fields(self)[1:]} | class_tensors(self.classes)
        with open_atomic(path) as out:
            return write_checked(out, tensor_file_content(tensors, {}))[1]

    @classmethod
    def read(cls, path: Path, manifest: Manifest) -> "Catalogue":
        """Read it.

        Raises
        ------
        StoreError
            If it is not the one that the manifest names, or cannot be used.
        """
        try:
            if checksum_of(path) != manifest.catalogue_checksum:
                raise StoreError(f"{path} is not the file that the manifest names; restore it, or convert anew")
            tensors = dict(TensorFile(path, mmap=False))
            found = cls(read_classes(tensors), *(tensors[about.name] for about in fields(cls)[1:]))
            if found.class_of_code.max(initial=-1) >= found.classes.size:
                raise ValueError("it has codes of unknown classes")
            if found.frequencies.shape != (manifest.n_features,):
                raise ValueError(f"it has {found.frequencies.size} features instead of {manifest.n_features}")
            return found
        except StoreError:
            raise
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise StoreError(f"{path}: {error}; restore it, or convert the data anew") from error
