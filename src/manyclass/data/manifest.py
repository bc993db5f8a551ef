"""What a store says of itself: the manifest, and the catalogue that it names."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from .bad_file import BadFileError
from .checksums import checksum_of, write_checked
from .class_names import class_tensors, read_classes
from .json_content import LARGEST, Count, as_declared, parse_object, shown
from .labels import as_labels, number_labels
from .steps import Chain, StoredStep
from .streams import open_atomic
from .tensor_file import TensorFile, tensor_file_content

FORMAT = "manyclass store"
# Readers of version 1 would take normalized rows for rows as they were written.
VERSION, NORMALIZED = 1, 2
MANIFEST = "manifest.json"
JOURNAL = "conversion.json"  # of a conversion under way; see `conversion.py`
OWN_FILES = re.compile(r"(block-\d{1,19}-\d{1,19}|catalogue-\d{1,19}|spill-\d{1,19})\.safetensors", re.ASCII)


class StoreError(BadFileError):
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
    rows: Count
    nnz: Count
    size: Count
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

    generation: Count
    rows: Count
    nnz: Count
    n_features: Count
    next_id: Count
    reading: dict[str, Any]
    value_bytes: Count
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
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(_no_store(folder)) from None
        try:
            content = parse_object(text)
        except ValueError as error:
            raise StoreError(f"{path} is no JSON ({error}); convert the data anew") from error
        if content.pop("format", None) != FORMAT:
            raise StoreError(f"{path} is not the manifest of a store; name the folder that `convert` has made")
        version = content.pop("version", None)
        if version not in (VERSION, NORMALIZED):
            raise StoreError(f"{path} has version {shown(version)}, which this manyclass does not read")
        try:
            manifest = as_declared(cls, content)
            manifest._check()
            return manifest
        except (ValueError, TypeError) as error:  # the latter from a step with other parameters
            raise StoreError(f"{path} is damaged ({error}); convert the data anew") from error

    def _check(self) -> None:
        if self.value_bytes not in (4, 8):
            raise ValueError(f"value_bytes is {self.value_bytes}")
        as_declared(Reading, {name: self.reading[name] for name in self.reading if name in READING}, "reading")
        if self.reading.get("normalize", "l2") != "l2" or self.index_base not in (0, 1):
            raise ValueError(f"reading is {shown(self.reading)}")
        if "text" in self.reading and not {"text_column", "label_column"} <= set(self.reading):
            raise ValueError("reading has text, but not the columns that it came from")
        self.chain.check_features(self.n_features)
        for name in (self.catalogue, *(entry.file for entry in self.blocks)):
            if not OWN_FILES.fullmatch(name):
                raise ValueError(f"{shown(name)} is no file of a store")
        if len({entry.file for entry in self.blocks}) != len(self.blocks):
            raise ValueError("a block is there twice")
        stored = sum(entry.rows for entry in self.blocks)
        if not 0 < self.rows <= stored <= self.next_id or self.nnz > sum(entry.nnz for entry in self.blocks):
            raise ValueError(
                f"rows is {self.rows}, nnz {self.nnz} and next_id {self.next_id}, for {stored} in blocks"
            )


@dataclass(frozen=True)
class Reading:
    """What `Manifest.reading` may say, and of which type it is; it may say other things, which nobody reads."""

    index_base: Count = 0
    text: dict[str, Any] = field(default_factory=dict)
    text_column: str = ""
    label_column: str = ""
    normalize: str = "l2"
    format: str = ""


READING = {about.name for about in fields(Reading)}


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
            missing = [about.name for about in fields(cls)[1:] if about.name not in tensors]
            if missing:
                raise ValueError(f"no {missing[0]}")
            found = cls(read_classes(tensors), *(tensors[about.name] for about in fields(cls)[1:]))
            found._check(manifest)
            return found
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}; restore it, or convert the data anew") from error
        except ValueError as error:
            if isinstance(error, StoreError):
                raise
            reason = str(error).removeprefix(f"{path}: ")
            raise StoreError(f"{path}: {reason}; restore it, or convert the data anew") from error

    def _check(self, manifest: Manifest) -> None:
        codes = self.class_of_code.size
        wanted: Mapping[str, tuple[type, int]] = {
            "class_of_code": (np.int32, codes),
            "rows_of_code": (np.int64, codes),
            "frequencies": (np.int64, manifest.n_features),
            "removed": (np.int64, self.removed.size),
        }
        for name, (dtype, size) in wanted.items():
            array = getattr(self, name)
            if array.dtype != dtype or array.shape != (size,):
                raise ValueError(
                    f"{name} is {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} of shape ({size},)"
                )
        _check_range("class_of_code", self.class_of_code, -1, self.classes.size)
        _check_range("rows_of_code", self.rows_of_code, 0, LARGEST)
        _check_range("frequencies", self.frequencies, 0, manifest.rows + 1)
        _check_range("removed", self.removed, 0, manifest.next_id)
        if (self.removed[1:] <= self.removed[:-1]).any():
            raise ValueError("removed does not ascend")
        if not np.array_equal(np.unique(self.class_of_code[self.class_of_code >= 0]), np.arange(self.classes.size)):
            raise ValueError("class_of_code does not name every class")
        if sum(entry.rows for entry in manifest.blocks) - self.removed.size != manifest.rows:
            raise ValueError(f"removed has {self.removed.size} rows, and the manifest {manifest.rows} that are left")


def _check_range(name: str, numbers: np.ndarray, low: int, limit: int) -> None:
    if numbers.size and not low <= numbers.min() <= numbers.max() < limit:
        raise ValueError(f"{name} has numbers outside {low} to {limit - 1}")
