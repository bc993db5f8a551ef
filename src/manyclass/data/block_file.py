"""A block of rows in one file: columns of numbers as compressed byte planes, in safetensors.

| array | a number for each | what |
|---|---|---|
| `ids` | row | which row of the store it is, as differences |
| `lengths`, `label_counts` | row | how many features and labels it has |
| `norms` | row | its squared length, float32 |
| `labels` | label of a row | its code |
| `indices` | feature of a row | which one, as differences within the row |
| `values` | feature of a row | float32 or float64 |
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .._native import core
from .bad_file import BadFileError
from .compression import Plane, PlaneWriter, read_numbers, read_planes
from .json_content import Count, as_declared, shown
from .tensor_file import TensorFile

FORMAT = "manyclass block"
VERSION = 1
VALUE_TYPES = {4: np.float32, 8: np.float64}
# What the metadata says in numbers.
LONGEST_COUNT = 20
COUNTS = ("rows", "nnz", "labels", "n_features", "value_bytes", "index_bytes")


# What rows may take in memory whatever their file takes: several times the largest blocks that conversion makes by
# itself.
ALWAYS_FITS = 1 << 27
# And where they take more, how many times the size of the file. No writer of ours goes beyond that.
MOST_EXPANSION = 1 << 10


class BlockError(BadFileError):
    """A block that cannot be used; the message names the file and the reason."""


@dataclass(frozen=True)
class Block:
    """Some rows.

    Attributes
    ----------
    ids : int64 ndarray of shape (n,)
        Ascending.
    indptr, indices, values : ndarray
        The rows in CSR form, indices ascending.
    label_ptr : int64 ndarray of shape (n + 1,)
        Where the labels of each row begin, and the last one's end.
    labels : int32 ndarray
        Codes of labels, as the store numbers them.
    n_features : int
        Larger than any index.
    """

    ids: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    label_ptr: np.ndarray
    labels: np.ndarray
    n_features: int

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.ids.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.ids, self.indptr, self.indices, self.values, self.label_ptr, self.labels)
        return sum(array.nbytes for array in arrays)

    def as_csr(self, n_features: int) -> sp.csr_matrix:
        """The rows as a matrix of so many columns, sharing memory."""
        matrix = sp.csr_matrix((self.n_rows, n_features), dtype=self.values.dtype)
        matrix.data, matrix.indices, matrix.indptr = self.values, self.indices, self.indptr
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix

    def take(self, rows: np.ndarray) -> "Block":
        """Some of the rows, in the order asked for."""
        indptr, (indices, values) = _take(self.indptr, rows, self.indices, self.values)
        label_ptr, (labels,) = _take(self.label_ptr, rows, self.labels)
        return Block(self.ids[rows], indptr, indices, values, label_ptr, labels, self.n_features)


@dataclass(frozen=True)
class PackedBlock:
    """Some rows whose features are still in planes; otherwise as `Block` has them.

    Attributes
    ----------
    index_planes, value_planes : list of Plane
        As the native functions take them.
    value_type : numpy dtype
    """

    ids: np.ndarray
    indptr: np.ndarray
    index_planes: list[Plane]
    value_planes: list[Plane]
    value_type: np.dtype
    label_ptr: np.ndarray
    labels: np.ndarray
    n_features: int

    def unpack(self) -> Block:
        """The rows.

        Raises
        ------
        BlockError
            If indices do not ascend, or are too large.
        """
        try:
            indices = core.indices_of_planes(self.index_planes, self.indptr, self.n_features)
            values = core.join_planes(self.value_planes, int(self.indptr[-1])).view(self.value_type)
        except ValueError as error:
            raise BlockError(str(error)) from error
        return Block(self.ids, self.indptr, indices, values, self.label_ptr, self.labels, self.n_features)


def _take(ptr: np.ndarray, rows: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    counts = ptr[rows + 1] - ptr[rows]
    ends = np.zeros(rows.size + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    where = np.arange(ends[-1]) + np.repeat(ptr[rows] - ends[:-1], counts)
    return ends, [array[where] for array in arrays]


def join_blocks(blocks: Sequence[Block]) -> Block:
    """The rows of several blocks, one after the other."""
    if len(blocks) == 1:
        return blocks[0]

    def pointers(name: str) -> np.ndarray:
        counts = np.concatenate([np.diff(getattr(block, name)) for block in blocks])
        return np.concatenate([[0], np.cumsum(counts)])

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(block, name) for block in blocks])

    return Block(
        ids=joined("ids"),
        indptr=pointers("indptr"),
        indices=joined("indices"),
        values=joined("values"),
        label_ptr=pointers("label_ptr"),
        labels=joined("labels"),
        n_features=max(block.n_features for block in blocks),
    )


def _stored_bytes(tensors: Mapping[str, np.ndarray]) -> int:
    return sum(tensors[name].nbytes for name in tensors)


def _expands_too_far(unpacked: int, stored: int) -> bool:
    """Whether rows take more memory than the size of their file justifies."""
    return unpacked > max(ALWAYS_FITS, MOST_EXPANSION * stored)


# ---- Writing


def block_tensors(block: Block, writer: PlaneWriter) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """What a file of this block holds: arrays and metadata."""
    squares = np.add.reduceat(np.append(np.square(block.values, dtype=np.float64), 0.0), block.indptr[:-1])
    norms = np.where(np.diff(block.indptr) > 0, squares, 0.0)
    norms = np.minimum(norms, np.finfo(np.float32).max).astype(np.float32)
    columns: dict[str, np.ndarray] = {
        "ids": np.diff(block.ids, prepend=0),
        "lengths": np.diff(block.indptr).astype(np.uint32),
        "label_counts": np.diff(block.label_ptr).astype(np.uint32),
        "norms": norms,
        "labels": block.labels.astype(np.int32, copy=False),
        "indices": core.index_differences(block.indptr, block.indices),
        "values": block.values,
    }
    tensors = _split(columns, writer)
    if _expands_too_far(block.nbytes, _stored_bytes(tensors)):  # rows that are all alike: no reader would believe it
        tensors = _split(columns, PlaneWriter("none", shortened=False))
    counts = (
        block.n_rows,
        block.indices.size,
        block.labels.size,
        block.n_features,
        block.values.itemsize,
        block.indices.itemsize,
    )
    metadata = {name: str(count) for name, count in zip(COUNTS, counts, strict=True)}
    return tensors, metadata | {"format": FORMAT, "version": str(VERSION)}


def _split(columns: Mapping[str, np.ndarray], writer: PlaneWriter) -> dict[str, np.ndarray]:
    tensors: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        tensors |= writer.split(name, column)
    return tensors


# ---- Reading


@dataclass(frozen=True)
class BlockCounts:
    """What the metadata of a block says in numbers."""

    rows: Count
    nnz: Count
    labels: Count
    n_features: Count
    value_bytes: Count
    index_bytes: Count

    @property
    def unpacked_bytes(self) -> int:
        """What the arrays of the block take in memory."""
        return 24 * (self.rows + 1) + 4 * self.labels + (self.index_bytes + self.value_bytes) * self.nnz


def _counts_of(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> BlockCounts:
    """The counts of a block, none of which stands for more than its arrays justify."""
    if metadata.get("format") != FORMAT:
        raise BlockError("this is no block of a store")
    if metadata.get("version") != str(VERSION):
        raise BlockError(
            f"version {shown(metadata.get('version'))} of the format, which this manyclass does not read"
        )
    for name in COUNTS:
        written = metadata.get(name, "")
        if not (written.isascii() and written.isdecimal() and len(written) < LONGEST_COUNT):
            raise BlockError(f"its metadata are damaged: {name} is {shown(written)}")
    counts = as_declared(BlockCounts, {name: int(metadata[name]) for name in COUNTS})
    if counts.value_bytes not in VALUE_TYPES or counts.index_bytes not in (4, 8):
        raise BlockError(f"its metadata are damaged: numbers of {counts.value_bytes} and {counts.index_bytes} bytes")
    stored = _stored_bytes(tensors)
    if _expands_too_far(counts.unpacked_bytes, stored):
        raise BlockError(f"{counts.rows} rows with {counts.nnz} values cannot come from {stored} bytes")
    return counts


def packed_block_of(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> PackedBlock:
    """The block of these arrays.

    Raises
    ------
    BlockError
        If they are not those of a block, or damaged.
    """
    try:
        counts = _counts_of(tensors, metadata)
        value_type = np.dtype(VALUE_TYPES[counts.value_bytes])
        return PackedBlock(
            ids=np.cumsum(read_numbers(tensors, "ids", np.int64, counts.rows)),
            indptr=_pointers(tensors, "lengths", counts.rows, counts.nnz),
            index_planes=read_planes(tensors, "indices", counts.index_bytes, counts.nnz),
            value_planes=read_planes(tensors, "values", value_type.itemsize, counts.nnz),
            value_type=value_type,
            label_ptr=_pointers(tensors, "label_counts", counts.rows, counts.labels),
            labels=read_numbers(tensors, "labels", np.int32, counts.labels),
            n_features=counts.n_features,
        )
    except ValueError as error:
        raise BlockError(str(error)) from error


def _pointers(tensors: Mapping[str, np.ndarray], name: str, rows: int, total: int) -> np.ndarray:
    pointers = np.zeros(rows + 1, np.int64)
    np.cumsum(read_numbers(tensors, name, np.uint32, rows), out=pointers[1:])
    if pointers[-1] != total:
        raise BlockError(f"its {name} add up to {pointers[-1]} instead of {total}")
    return pointers


def read_ids(path: str | os.PathLike[str]) -> np.ndarray:
    """The ids of a block's rows, without the rest of it."""
    try:
        file = TensorFile(path)
        return np.cumsum(read_numbers(file, "ids", np.int64, _counts_of(file, file.metadata).rows))
    except ValueError as error:
        raise damaged(path, error) from error


def read_packed(path: str | os.PathLike[str], *, rows: int, nnz: int) -> PackedBlock:
    """Read a block, which has so many rows and features of rows.

    Raises
    ------
    BlockError
        Naming the file and what is wrong with it.
    OSError
        If it cannot be opened.
    """
    try:
        file = TensorFile(path)
        if (file.metadata.get("rows"), file.metadata.get("nnz")) != (str(rows), str(nnz)):
            raise BlockError("not the block that the manifest names")
        return packed_block_of(file, file.metadata)
    except ValueError as error:
        raise damaged(path, error) from error


def read_block(path: str | os.PathLike[str], *, rows: int, nnz: int) -> Block:
    """Do what `read_packed` does, and unpack it."""
    packed = read_packed(path, rows=rows, nnz=nnz)
    try:
        return packed.unpack()
    except BlockError as error:
        raise damaged(path, error) from error


def damaged(path: str | os.PathLike[str], error: Exception) -> BlockError:
    """What to say of a file in which something was found."""
    reason = str(error).removeprefix(f"{os.fspath(path)}: ")
    return BlockError(f"{os.fspath(path)}: {reason}; get it again, or convert the data anew")
