"""A block of rows in a safetensors file, as columns of numbers in compressed byte planes.

| array | one number per | contents |
|---|---|---|
| `ids` | row | id of the row in the store, as differences |
| `lengths`, `label_counts` | row | number of features and of labels |
| `norms` | row | squared length, float32 |
| `labels` | label of a row | label code |
| `indices` | feature of a row | feature number, as differences within the row |
| `values` | feature of a row | float32 or float64 |
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np
import scipy.sparse as sp

from .._native import core
from .bad_file import BadFileError, without_name
from .compression import Plane, PlaneWriter, read_numbers, read_planes
from .json_content import Count, as_declared, shown
from .matrix import csr_of, pointers
from .tensor_file import TensorFile

FORMAT = "manyclass block"
VERSION = 1
VALUE_TYPES = {4: np.float32, 8: np.float64}
# Longest number in the metadata, in digits.
LONGEST_COUNT = 19
# Blocks up to this many bytes in memory are accepted whatever the size of their file. This is several times the
# largest block that a conversion chooses to make.
ALWAYS_FITS = 1 << 27
# Larger blocks may expand to at most this many times the size of their file. Our writers stay below that.
MOST_EXPANSION = 1 << 10


class BlockError(BadFileError):
    """A block cannot be used; the message names the file and the reason."""


@dataclass(frozen=True)
class Block:
    """A block of rows in CSR form, with ascending indices."""

    ids: np.ndarray  # of the rows, ascending
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    label_ptr: np.ndarray  # where the labels of each row begin
    labels: np.ndarray  # label codes of the store, of all rows
    n_features: int  # larger than any index

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.ids.size)

    @property
    def nbytes(self) -> int:
        """Total size of the arrays in bytes."""
        arrays = (self.ids, self.indptr, self.indices, self.values, self.label_ptr, self.labels)
        return sum(array.nbytes for array in arrays)

    def as_csr(self, n_features: int) -> sp.csr_matrix:
        """Return the rows as a matrix with `n_features` columns, without copying."""
        matrix = csr_of(self.indptr, self.indices, self.values, (self.n_rows, n_features))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix

    def take(self, rows: np.ndarray) -> "Block":
        """Return the given rows, in the given order."""
        indptr, (indices, values) = _take(self.indptr, rows, self.indices, self.values)
        label_ptr, (labels,) = _take(self.label_ptr, rows, self.labels)
        return Block(self.ids[rows], indptr, indices, values, label_ptr, labels, self.n_features)


@dataclass(frozen=True)
class PackedBlock:
    """A block whose features are still in planes, as the native functions expect them; otherwise like `Block`."""

    ids: np.ndarray
    indptr: np.ndarray
    index_planes: list[Plane]
    value_planes: list[Plane]
    value_type: np.dtype
    label_ptr: np.ndarray
    labels: np.ndarray
    n_features: int

    def unpack(self) -> Block:
        """Unpack the planes; BlockError if indices are not ascending, or are too large."""
        try:
            indices = core.indices_of_planes(self.index_planes, self.indptr, self.n_features)
            values = core.join_planes(self.value_planes, int(self.indptr[-1])).view(self.value_type)
        except ValueError as error:
            raise BlockError(str(error)) from error
        return Block(self.ids, self.indptr, indices, values, self.label_ptr, self.labels, self.n_features)


def _take(ptr: np.ndarray, rows: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    counts = ptr[rows + 1] - ptr[rows]
    ends = pointers(counts)
    where = np.arange(ends[-1]) + np.repeat(ptr[rows] - ends[:-1], counts)
    return ends, [array[where] for array in arrays]


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Concatenate blocks."""
    if len(blocks) == 1:
        return blocks[0]
    ids, indices, values, labels = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("ids", "indices", "values", "labels")
    )
    indptr, label_ptr = (
        pointers(np.concatenate([np.diff(getattr(block, name)) for block in blocks]))
        for name in ("indptr", "label_ptr")
    )
    return Block(ids, indptr, indices, values, label_ptr, labels, max(block.n_features for block in blocks))


def _stored_bytes(tensors: Mapping[str, np.ndarray]) -> int:
    return sum(tensors[name].nbytes for name in tensors)


def _expands_too_far(unpacked: int, stored: int) -> bool:
    """Whether a block takes implausibly more memory than its file."""
    return unpacked > max(ALWAYS_FITS, MOST_EXPANSION * stored)


@dataclass(frozen=True)
class BlockCounts:
    """The numbers in the metadata of a block."""

    rows: Count
    nnz: Count
    labels: Count
    n_features: Count
    value_bytes: Count
    index_bytes: Count

    @property
    def unpacked_bytes(self) -> int:
        """Size in bytes of the unpacked arrays."""
        return 24 * (self.rows + 1) + 4 * self.labels + (self.index_bytes + self.value_bytes) * self.nnz


COUNTS = tuple(field.name for field in fields(BlockCounts))


# ---- Writing


def block_tensors(block: Block, writer: PlaneWriter) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays and metadata of a block file."""
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
    if _expands_too_far(block.nbytes, _stored_bytes(tensors)):  # all rows alike: readers would reject the file
        tensors = _split(columns, PlaneWriter("none", shortened=False))
    counts = BlockCounts(
        rows=block.n_rows,
        nnz=block.indices.size,
        labels=block.labels.size,
        n_features=block.n_features,
        value_bytes=block.values.itemsize,
        index_bytes=block.indices.itemsize,
    )
    metadata = {name: str(count) for name, count in asdict(counts).items()}
    return tensors, metadata | {"format": FORMAT, "version": str(VERSION)}


def _split(columns: Mapping[str, np.ndarray], writer: PlaneWriter) -> dict[str, np.ndarray]:
    tensors: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        tensors |= writer.split(name, column)
    return tensors


# ---- Reading


def _counts_of(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> BlockCounts:
    """Read the counts of a block, and check that its arrays can hold that much."""
    if metadata.get("format") != FORMAT:
        raise BlockError("this is not a block of a store")
    if metadata.get("version") != str(VERSION):
        raise BlockError(
            f"it has format version {shown(metadata.get('version'))}, which this version of manyclass cannot read"
        )
    for name in COUNTS:
        written = metadata.get(name, "")
        if not (written.isascii() and written.isdecimal() and len(written) <= LONGEST_COUNT):
            raise BlockError(f"its metadata is damaged: {name} is {shown(written)}")
    counts = as_declared(BlockCounts, {name: int(metadata[name]) for name in COUNTS})
    if counts.value_bytes not in VALUE_TYPES or counts.index_bytes not in (4, 8):
        raise BlockError(f"its metadata is damaged: numbers of {counts.value_bytes} and {counts.index_bytes} bytes")
    stored = _stored_bytes(tensors)
    if _expands_too_far(counts.unpacked_bytes, stored):
        raise BlockError(f"{counts.rows} rows with {counts.nnz} values cannot come from {stored} bytes")
    return counts


def packed_block_of(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> PackedBlock:
    """Make a block of the arrays and metadata of a file; BlockError if they do not describe one."""
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
    found = pointers(read_numbers(tensors, name, np.uint32, rows))
    if found[-1] != total:
        raise BlockError(f"its {name} add up to {found[-1]} instead of {total}")
    return found


def read_ids(path: str | os.PathLike[str]) -> np.ndarray:
    """Read only the row ids of a block."""
    try:
        file = TensorFile(path)
        return np.cumsum(read_numbers(file, "ids", np.int64, _counts_of(file, file.metadata).rows))
    except ValueError as error:
        raise damaged(path, error) from error


def read_packed(path: str | os.PathLike[str], *, rows: int, nnz: int) -> PackedBlock:
    """Read a block; BlockError if it is damaged or does not have the expected number of rows and values."""
    try:
        file = TensorFile(path)
        if (file.metadata.get("rows"), file.metadata.get("nnz")) != (str(rows), str(nnz)):
            raise BlockError("this is not the block that the manifest names")
        return packed_block_of(file, file.metadata)
    except ValueError as error:
        raise damaged(path, error) from error


def read_block(path: str | os.PathLike[str], *, rows: int, nnz: int) -> Block:
    """Read and unpack a block; see `read_packed`."""
    packed = read_packed(path, rows=rows, nnz=nnz)
    try:
        return packed.unpack()
    except BlockError as error:
        raise damaged(path, error) from error


def damaged(path: str | os.PathLike[str], error: Exception) -> BlockError:
    """Return the error for a damaged file."""
    return BlockError(f"{os.fspath(path)}: {without_name(error, path)}; restore it, or convert the data again")
