"""Read and write safetensors files: named arrays, written in a fixed order and memory-mapped for reading.

Equal arrays give equal files. The writer of the safetensors package is not used, because it shuffles the metadata and
copies every array once.
"""

import functools
import json
import math
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from mmap import ACCESS_READ
from mmap import mmap as Mapped  # noqa: N812
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .bad_file import BadFileError
from .json_content import LARGEST, Count, as_declared, parse_object, shown

# The kernels read whole cache lines.
ALIGNMENT = 64
TYPES = {
    "BOOL": np.bool_,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
}
# Metadata keys: the CRC-32 of each array, and that of the header, computed with zeros in its own place.
CHECKSUMS, HEADER_CHECKSUM = "checksums", "header_checksum"
NO_CHECKSUM = "0" * 8
# The limit of the safetensors format.
LONGEST_HEADER = 100_000_000
MOST_DIMENSIONS = 8
NAMES: dict[np.dtype[Any], str] = {np.dtype(dtype): name for name, dtype in TYPES.items()}


class Pieces:
    """A vector to be written that is scattered over several arrays."""

    def __init__(self, dtype: DTypeLike, pieces: Sequence[np.ndarray]):
        self.dtype = np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self.shape = (sum(piece.size for piece in pieces),)
        self.nbytes = self.shape[0] * self.itemsize
        self._pieces = pieces

    def __iter__(self) -> Iterator[np.ndarray]:
        return (np.ascontiguousarray(piece, self.dtype) for piece in self._pieces)


Tensor = np.ndarray | Pieces


def tensor_file_content(
    tensors: Mapping[str, Tensor], metadata: dict[str, str], aligned: tuple[str, ...] = (), *, checked: bool = False
) -> Iterator[bytes | memoryview]:
    """Yield the contents of a file with these contiguous arrays, without copying them.

    Parameters
    ----------
    aligned
        Array names, of which `tensors` has one. That array starts at a multiple of 64 bytes.
    checked
        Add checksums; see `TensorFile.verify`.
    """
    # Arrays follow each other without gaps and must be aligned to their type, so the wide types come first. Within a
    # type, the `aligned` array comes first, so that aligning it keeps the wider ones aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name not in aligned, name))
    if checked:
        sums = {name: _checksum(_bytes_of(tensors[name])) for name in names}
        metadata = metadata | {CHECKSUMS: json.dumps(sums, sort_keys=True), HEADER_CHECKSUM: NO_CHECKSUM}
    header = _header(tensors, names, metadata, aligned)
    yield _with_checksum(header, _checksum([header])) if checked else header
    for name in names:
        yield from _bytes_of(tensors[name])


def _bytes_of(tensor: Tensor) -> Iterator[memoryview]:
    for piece in tensor if isinstance(tensor, Pieces) else (tensor,):
        yield piece.reshape(-1).view(np.uint8).data


def _checksum(pieces: Iterable[bytes | memoryview]) -> str:
    return f"{functools.reduce(lambda found, piece: zlib.crc32(piece, found), pieces, 0):08x}"


def _with_checksum(header: bytes, checksum: str) -> bytes:
    """Return the header with its own checksum replaced."""
    before, mark, rest = header.partition(f'"{HEADER_CHECKSUM}":"'.encode())
    return before + mark + checksum.encode() + rest[len(checksum) :]


def _header(
    tensors: Mapping[str, Tensor], names: list[str], metadata: dict[str, str], aligned: tuple[str, ...]
) -> bytes:
    entries: dict[str, Any] = {"__metadata__": metadata}
    end = aligned_begin = 0
    for name in names:
        array = tensors[name]
        begin, end = end, end + array.nbytes
        entries[name] = {"dtype": NAMES[array.dtype], "shape": array.shape, "data_offsets": [begin, end]}
        if name in aligned:
            aligned_begin = begin
    text = json.dumps(entries, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    # The format allows trailing spaces.
    text += b" " * (-(8 + len(text) + aligned_begin) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


class TensorFileError(BadFileError):
    """A file is not a safetensors file, or is damaged."""


@dataclass(frozen=True)
class _Entry:
    """The header entry of an array."""

    dtype: str
    shape: list[Count]
    data_offsets: list[Count]


class TensorFile(Mapping[str, np.ndarray]):
    """A safetensors file as a mapping from names to arrays; TensorFileError if it is not one, or is truncated.

    The header is checked: the arrays must fill the file to its end, without gaps or overlaps.

    Parameters
    ----------
    mmap
        Map the file into memory, so that arrays are read when used. False reads the whole file.
    verified
        Also compare the arrays with their checksums, if the file has any. The header checksum is always compared.
    """

    def __init__(self, path: str | os.PathLike[str], *, mmap: bool = True, verified: bool = False):
        self._path = path
        content = _content(path, mmap)
        try:
            self._begin, header = _parse_header(content)
            self.metadata: dict[str, str] = as_declared(
                dict[str, str], header.pop("__metadata__", {}), "__metadata__"
            )
            self._entries = {name: as_declared(_Entry, entry, name) for name, entry in header.items()}
            _check_layout(self._entries, content.size - self._begin)
            self.has_checksums = _check_header(content[: self._begin].tobytes(), self.metadata)
        except ValueError as error:
            raise TensorFileError(f"{os.fspath(path)}: not a file of arrays, or a damaged one: {error}") from error
        self._content = content[self._begin :]
        if verified:
            self.verify()

    def verify(self, without: str = "") -> None:
        """Compare arrays with their checksums, if the file has any, except those whose names start with `without`."""
        if not self.has_checksums:
            return
        try:
            wanted = as_declared(dict[str, str], parse_object(self.metadata[CHECKSUMS]), CHECKSUMS)
            if set(wanted) != set(self._entries):
                raise ValueError("the checksums do not match the names of the arrays")
            for name, entry in self._entries.items():
                if without and name.startswith(without):
                    continue
                if _checksum([self._content[slice(*entry.data_offsets)].data]) != wanted[name]:
                    raise ValueError(f"{name} has changed since it was written")
        except ValueError as error:
            raise TensorFileError(f"{os.fspath(self._path)}: {error}") from error

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._entries[name]
        begin, end = entry.data_offsets
        if entry.dtype not in TYPES:
            raise TensorFileError(f"{os.fspath(self._path)}: {name} has the unknown type {entry.dtype}")
        array: np.ndarray = self._content[begin:end].view(TYPES[entry.dtype]).reshape(entry.shape)
        # Files from other writers may be laid out differently, but the kernels need aligned arrays.
        return array if array.flags.aligned else array.copy()

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def part(self, name: str, begin: int, end: int) -> np.ndarray:
        """Read part of a vector from the file, bypassing the memory map, which would keep the pages in memory."""
        entry = self._entries[name]
        dtype = np.dtype(TYPES[entry.dtype])
        if not 0 <= begin <= end <= math.prod(entry.shape):
            raise TensorFileError(f"{os.fspath(self._path)}: {name} has no entries {begin} to {end}")
        offset = self._begin + entry.data_offsets[0] + begin * dtype.itemsize
        found = np.fromfile(self._path, dtype, end - begin, offset=offset)
        if found.size != end - begin:
            raise OSError(f"{os.fspath(self._path)} is truncated")
        return found


def _content(path: str | os.PathLike[str], mmap: bool) -> np.ndarray:
    if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):  # open() refuses folders
        raise TensorFileError(f"{os.fspath(path)}: this is a pipe or a device, not a file")
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return np.empty(0, np.uint8)
        if mmap:
            return np.frombuffer(Mapped(file.fileno(), 0, access=ACCESS_READ), np.uint8)
        return np.fromfile(file, np.uint8)


def _parse_header(content: np.ndarray) -> tuple[int, dict[str, Any]]:
    """Return the offset of the arrays and the parsed header."""
    if content.size < 8:
        raise ValueError(f"it has {content.size} bytes")
    length = int.from_bytes(content[:8].tobytes(), "little")
    if length > min(LONGEST_HEADER, content.size - 8):
        raise ValueError(f"its header would have {length} bytes, but the file has {content.size}")
    return 8 + length, parse_object(content[8 : 8 + length].tobytes())


def _check_header(header: bytes, metadata: Mapping[str, str]) -> bool:
    """Compare a header with its checksum. Return False if it has none."""
    there = [name for name in (CHECKSUMS, HEADER_CHECKSUM) if name in metadata]
    if not there:
        return False
    found = _checksum([_with_checksum(header, NO_CHECKSUM)])
    if len(there) < 2 or metadata[HEADER_CHECKSUM] != found:
        raise ValueError("the header has changed since it was written")
    return True


def _check_layout(entries: Mapping[str, _Entry], size: int) -> None:
    reached = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        if len(entry.data_offsets) != 2:
            raise ValueError(f"{name}.data_offsets is {entry.data_offsets}")
        begin, end = entry.data_offsets
        if begin != reached or end < begin:
            raise ValueError(f"{name} is at {begin} to {end}, but should begin at {reached}")
        if len(entry.shape) > MOST_DIMENSIONS or math.prod(max(1, n) for n in entry.shape) > LARGEST:
            raise ValueError(f"{name}.shape is {shown(entry.shape)}")
        if entry.dtype in TYPES and math.prod(entry.shape) * np.dtype(TYPES[entry.dtype]).itemsize != end - begin:
            raise ValueError(
                f"{name} of shape {entry.shape} and type {entry.dtype} does not have {end - begin} bytes"
            )
        reached = end
    if reached != size:
        raise ValueError(f"the arrays need {reached} bytes, but the file has {size} for them")
