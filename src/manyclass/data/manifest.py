"""The manifest of a store, and the catalogue that it names."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from .bad_file import BadFileError, without_name
from .checksums import checksum_of, write_checked
from .class_names import class_tensors, read_classes
from .frequencies import Frequencies
from .json_content import LARGEST, Count, as_declared, parse_object, shown
from .labels import as_labels, number_labels
from .steps import Chain, StoredStep
from .streams import open_atomic
from .tensor_file import TensorFile, tensor_file_content

FORMAT = "manyclass store"
# Normalized rows need a new version, because readers of version 1 would treat them as unscaled.
VERSION, NORMALIZED = 1, 2
MANIFEST = "manifest.json"
JOURNAL = "conversion.json"  # of a conversion in progress; see `conversion.py`
OWN_FILES = re.compile(r"(block-\d{1,19}-\d{1,19}|catalogue-\d{1,19}|spill-\d{1,19})\.safetensors", re.ASCII)


class StoreError(BadFileError):
    """A folder cannot be used as a store; the message names the folder and the reason."""


def check_names(names: Iterable[str]) -> None:
    """Check that these are names of files that a store may have; a forged name could lead out of the folder."""
    for name in names:
        if not OWN_FILES.fullmatch(name):
            raise ValueError(f"{shown(name)} is not a file of a store")


@dataclass(frozen=True)
class BlockEntry:
    """Manifest entry of a block; `rows` and `nnz` include removed rows, `size` is that of the file in bytes."""

    file: str
    rows: Count
    nnz: Count
    size: Count
    checksum: str


@dataclass(frozen=True)
class Manifest:
    """Description of a store."""

    generation: Count  # increases with every change
    rows: Count  # without removed ones, like `nnz`
    nnz: Count
    n_features: Count
    next_id: Count  # id of the next row to be added
    reading: dict[str, Any]  # how the rows were read, so that more can be read the same way; see `Reading`
    value_bytes: Count  # 4 for float32, 8 for float64
    multilabel: bool  # whether some row does not have exactly one label
    catalogue: str
    catalogue_checksum: str
    blocks: tuple[BlockEntry, ...] = field(default=())

    @property
    def index_base(self) -> int:
        """The number that indices in the files count from."""
        return self.reading.get("index_base", 0)

    @property
    def files(self) -> set[str]:
        """The files that the manifest names."""
        return {self.catalogue, *(entry.file for entry in self.blocks)}

    @property
    def chain(self) -> Chain:
        """The preprocessing steps applied to the rows."""
        stored = [StoredStep("HashedText", self.reading["text"])] if "text" in self.reading else []
        return Chain.restore([*stored, *([StoredStep("UnitRows", {})] if "normalize" in self.reading else [])])

    def write(self, folder: Path) -> None:
        """Write the manifest to the folder, which commits the change."""
        version = NORMALIZED if "normalize" in self.reading else VERSION
        content = {"format": FORMAT, "version": version} | asdict(self)
        with open_atomic(folder / MANIFEST) as out:
            out.write(json.dumps(content, indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of a store; StoreError if it is missing or damaged, or has an unknown version."""
        path = folder / MANIFEST
        try:
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(_no_store(folder)) from None
        try:
            content = parse_object(text)
        except ValueError as error:
            raise StoreError(f"{path} is not JSON ({error}); convert the data again") from error
        if content.pop("format", None) != FORMAT:
            raise StoreError(f"{path} is not the manifest of a store; pass a folder made by `convert`")
        version = content.pop("version", None)
        if version not in (VERSION, NORMALIZED):
            raise StoreError(f"{path} has version {shown(version)}, which this version of manyclass cannot read")
        try:
            manifest = as_declared(cls, content)
            manifest._check()
            return manifest
        except (ValueError, TypeError) as error:  # TypeError: a step with unknown parameters
            raise StoreError(f"{path} is damaged ({error}); convert the data again") from error

    def _check(self) -> None:
        if self.value_bytes not in (4, 8):
            raise ValueError(f"value_bytes is {self.value_bytes}")
        as_declared(Reading, {name: self.reading[name] for name in self.reading if name in READING}, "reading")
        if self.reading.get("normalize", "l2") != "l2" or self.index_base not in (0, 1):
            raise ValueError(f"reading is {shown(self.reading)}")
        if "text" in self.reading and not {"text_column", "label_column"} <= set(self.reading):
            raise ValueError("reading has text, but not text_column and label_column")
        self.chain.check_features(self.n_features)
        check_names(self.files)
        if len({entry.file for entry in self.blocks}) != len(self.blocks):
            raise ValueError("a block appears twice")
        stored = sum(entry.rows for entry in self.blocks)
        if not 0 < self.rows <= stored <= self.next_id or self.nnz > sum(entry.nnz for entry in self.blocks):
            raise ValueError(
                f"rows is {self.rows}, nnz {self.nnz} and next_id {self.next_id}, but the blocks have {stored} rows"
            )


@dataclass(frozen=True)
class Reading:
    """The known entries of `Manifest.reading` and their types. Other entries are ignored."""

    index_base: Count = 0  # the number that indices in the files count from
    text: dict[str, Any] = field(default_factory=dict)  # for texts, the parameters of `HashedText`
    text_column: str = ""
    label_column: str = ""
    normalize: str = "l2"  # present only if the rows were scaled to unit length
    format: str = ""


READING = {about.name for about in fields(Reading)}


def _no_store(folder: Path) -> str:
    if not folder.exists():
        return f"{folder} does not exist; create a store with `manyclass convert`"
    if not folder.is_dir():
        return f"{folder} is a file; a store is a folder made by `manyclass convert`"
    if (folder / JOURNAL).exists():
        return f"{folder} is incomplete because its conversion was interrupted; repeat the command to resume it"
    return f"{folder} is not a store: it has no {MANIFEST}"


# Arrays of a catalogue, besides those of its classes and frequencies.
ARRAYS = ("class_of_code", "rows_of_code", "removed")


@dataclass(frozen=True)
class Catalogue:
    """Information shared by all blocks."""

    classes: np.ndarray  # ascending
    class_of_code: np.ndarray  # class index of each label code; -1 if no row has it any more
    rows_of_code: np.ndarray
    removed: np.ndarray  # ids of removed rows that are still in block files, ascending
    frequencies: Frequencies

    @classmethod
    def of_labels(cls, labels: Sequence[Any], rows_of_code: np.ndarray, **others: Any) -> "Catalogue":
        """Create a catalogue from labels in code order."""
        used = np.flatnonzero(rows_of_code)
        class_of_code = np.full(len(labels), -1, np.int32)
        classes, numbers = number_labels(as_labels([labels[code] for code in used.tolist()]))
        class_of_code[used] = numbers
        return cls(classes, class_of_code, rows_of_code, **others)

    @property
    def labels(self) -> list[Any]:
        """The labels in code order; None for those that no row has."""
        classes = [*self.classes.tolist(), None]
        return [classes[number] for number in self.class_of_code.tolist()]

    def write(self, folder: Path, generation: int) -> dict[str, Any]:
        """Write the catalogue of a generation; return its entries in the manifest."""
        tensors = {name: getattr(self, name) for name in ARRAYS} | self.frequencies.tensors
        tensors |= class_tensors(self.classes)
        name = f"catalogue-{generation}.safetensors"
        with open_atomic(folder / name) as out:
            checksum = write_checked(out, tensor_file_content(tensors, {}))[1]
        return {"catalogue": name, "catalogue_checksum": checksum}

    @classmethod
    def read(cls, path: Path, manifest: Manifest) -> "Catalogue":
        """Read a catalogue; StoreError if it is damaged, or is not the one that the manifest names."""
        try:
            if checksum_of(path) != manifest.catalogue_checksum:
                raise ValueError("this is not the file that the manifest names")
            tensors = dict(TensorFile(path, mmap=False))
            missing = [name for name in (*ARRAYS, "frequencies") if name not in tensors]
            if missing:
                raise ValueError(f"it has no {missing[0]}")
            frequencies = Frequencies(manifest.n_features, tensors["frequencies"], tensors.get("features"))
            arrays = {name: tensors[name] for name in ARRAYS}
            found = cls(read_classes(tensors), frequencies=frequencies, **arrays)
            found._check(manifest)
            return found
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else without_name(error, path)
            raise StoreError(f"{path}: {reason}; restore it, or convert the data again") from error

    def _check(self, manifest: Manifest) -> None:
        codes, listed = self.class_of_code.size, self.frequencies.features
        counts = manifest.n_features if listed is None else listed.size
        # The type, size and range of each array.
        wanted = {
            "class_of_code": ("int32", codes, -1, self.classes.size),
            "rows_of_code": ("int64", codes, 0, LARGEST),
            "frequencies": ("int64", counts, 0, manifest.rows + 1),
            "features": ("int64", counts, 0, manifest.n_features),
            "removed": ("int64", self.removed.size, 0, manifest.next_id),
        }
        arrays = {name: getattr(self, name) for name in ARRAYS} | {"frequencies": self.frequencies.counts}
        arrays |= {} if listed is None else {"features": listed}
        for name, array in arrays.items():
            dtype, size, low, limit = wanted[name]
            if array.dtype != dtype or array.shape != (size,):
                raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not {dtype} of shape ({size},)")
            if array.size and not low <= array.min() <= array.max() < limit:
                raise ValueError(f"{name} has numbers outside {low} to {limit - 1}")
        for name in arrays.keys() & {"removed", "features"}:
            if (arrays[name][1:] <= arrays[name][:-1]).any():
                raise ValueError(f"{name} is not ascending")
        if not np.array_equal(np.unique(self.class_of_code[self.class_of_code >= 0]), np.arange(self.classes.size)):
            raise ValueError("class_of_code does not name every class")
        if sum(entry.rows for entry in manifest.blocks) - self.removed.size != manifest.rows:
            raise ValueError(f"removed has {self.removed.size} rows, but the manifest says {manifest.rows} are left")
