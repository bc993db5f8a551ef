"""Deal rows to random bins, in memory and in spill files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .bad_file import without_name
from .block_file import Block
from .json_content import as_declared, parse_json
from .labels import number_labels
from .manifest import JOURNAL, StoreError
from .matrix import pointers
from .tensor_file import Pieces, Tensor, TensorFile

# Offsets in a spill where the rows, features and labels of each bin begin.
BOUNDS = ("bins.rows", "bins.nnz", "bins.labels")
ROW_ARRAYS = ("ids", "lengths", "label_counts", "indices", "values", "labels")
NEW_LABELS = "new_labels"


def shuffled(ids: np.ndarray, seed: int) -> np.ndarray:
    """Return a pseudo-random number per row, which depends only on its id and the seed."""
    mixed = (ids.astype(np.uint64) + np.uint64(seed & 0xFFFFFFFFFFFFFFFF)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


class Bins:
    """Rows in memory, waiting to be dealt to bins."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []

    @property
    def nbytes(self) -> int:
        """Size of the rows in bytes."""
        return sum(block.nbytes for block in self._blocks)

    def add(self, block: Block) -> None:
        """Add rows."""
        self._blocks.append(block)

    def clear(self) -> None:
        """Remove all rows."""
        self._blocks.clear()

    def tensors(self, count: int, seed: int) -> dict[str, Tensor]:
        """Return the arrays of a spill with `count` bins, sorted by bin."""
        blocks, places = self._blocks, []
        for which, block in enumerate(blocks):  # one at a time and in place, to save memory
            bins = (shuffled(block.ids, seed) % np.uint64(count)).astype(np.int64)
            order = np.argsort(bins, kind="stable")
            bounds = np.searchsorted(bins[order], np.arange(count + 1))
            blocks[which] = block = block.take(order)
            places.append((bounds, block.indptr[bounds], block.label_ptr[bounds]))

        def by_bins(dtype: Any, arrays: Sequence[np.ndarray], which: int) -> Pieces:
            pieces = [
                array[place[which][number] : place[which][number + 1]]
                for number in range(count)
                for array, place in zip(arrays, places, strict=True)
            ]
            return Pieces(dtype, pieces)

        wide = any(block.indices.dtype == np.int64 for block in blocks)
        values = blocks[0].values.dtype if blocks else np.dtype(np.float32)
        tensors: dict[str, Tensor] = {
            "ids": by_bins(np.int64, [block.ids for block in blocks], 0),
            "lengths": by_bins(np.int64, [np.diff(block.indptr) for block in blocks], 0),
            "label_counts": by_bins(np.int64, [np.diff(block.label_ptr) for block in blocks], 0),
            "indices": by_bins(np.int64 if wide else np.int32, [block.indices for block in blocks], 1),
            "values": by_bins(values, [block.values for block in blocks], 1),
            "labels": by_bins(np.int32, [block.labels for block in blocks], 2),
        }
        for which, name in enumerate(BOUNDS):
            tensors[name] = sum((place[which] for place in places), np.zeros(count + 1, np.int64))
        return tensors


class Spill:
    """A file with rows of all bins; StoreError if it is damaged or has another number of bins."""

    def __init__(self, path: Path, bins: int):
        try:
            self._file = TensorFile(path)
            missing = {*BOUNDS, *ROW_ARRAYS, NEW_LABELS} - set(self._file)
            if missing:
                raise ValueError(f"it has no {min(missing)}")
            self._bounds = [self._file[name].tolist() for name in BOUNDS]
            if any(len(bounds) != bins + 1 or bounds != sorted(bounds) for bounds in self._bounds):
                raise ValueError(f"it does not have {bins} bins")
            new_labels = parse_json(self._file[NEW_LABELS].tobytes())
            self.new_labels = as_declared(list[Any], new_labels, "labels")  # not in earlier spills, in code order
        except ValueError as error:
            raise StoreError(f"{path}: {without_name(error, path)}; delete {JOURNAL} to start again") from error
        self._bytes = self._file["indices"].itemsize + self._file["values"].itemsize

    def size(self, first: int, last: int) -> int:
        """Size in bytes of the features of bins [first, last)."""
        nnz = self._bounds[1]
        return (nnz[last] - nnz[first]) * self._bytes

    def read(self, first: int, last: int) -> Block:
        """Read the rows of bins [first, last)."""
        rows, nnz, labels = ((bounds[first], bounds[last]) for bounds in self._bounds)
        indices = self._file.part("indices", *nnz)
        return Block(
            ids=self._file.part("ids", *rows),
            indptr=pointers(self._file.part("lengths", *rows)),
            indices=indices,
            values=self._file.part("values", *nnz),
            label_ptr=pointers(self._file.part("label_counts", *rows)),
            labels=self._file.part("labels", *labels),
            n_features=int(indices.max(initial=-1)) + 1,
        )


class LabelCodes:
    """Assign codes to labels in order of appearance, after the `known` ones; None marks a code not to be reused."""

    def __init__(self, known: Sequence[Any] = ()):
        self.labels = list(known)
        self._codes = {label: code for code, label in enumerate(self.labels) if label is not None}
        self.spilled = len(self.labels)
        self._kind = ""
        for label in self._codes:
            self._check_kind(label)

    def encode(self, labels: np.ndarray) -> np.ndarray:
        """Return the codes of labels, new ones as needed; reject mixtures of numbers, strings and booleans."""
        found, where = number_labels(labels)
        return np.fromiter((self._code(label) for label in found.tolist()), np.int32, found.size)[where]

    def _code(self, label: Any) -> int:
        self._check_kind(label)
        code = self._codes.setdefault(label, len(self.labels))
        if code == len(self.labels):
            self.labels.append(label)
        return code

    def _check_kind(self, label: Any) -> None:
        kind = "string" if isinstance(label, str) else "boolean" if isinstance(label, bool) else "number"
        self._kind = self._kind or kind
        if kind != self._kind:
            raise ValueError(
                f"the label {label!r} is a {kind}, but others are {self._kind}s; use one kind for all labels"
            )
