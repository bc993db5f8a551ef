"""Named arrays in one file: safetensors, written in a fixed order, read where they lie.

Equal arrays give equal bytes: safetensors' own writer is not used because it shuffles the metadata, and because it
copies every array once.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from mmap import ACCESS_READ
from mmap import mmap as Mapped  # noqa: N812
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from safetensors import safe_open

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
NAMES: dict[np.dtype[Any], str] = {np.dtype(dtype): name for name, dtype in TYPES.items()}


class Pieces:
    """A vector that is to be written and lies in memory piece by piece."""

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
    tensors: Mapping[str, Tensor], metadata: dict[str, str], aligned: tuple[str, ...] = ()
) -> Iterator[bytes | memoryview]:
    """What a file of these arrays holds, piece by piece and without copying them.

    Parameters
    ----------
    tensors : mapping of str to ndarray or Pieces
        Contiguous arrays.
    metadata : dict of str to str
        What else the file should say.
    aligned : tuple of str
        Names of which one is there: that array starts at a multiple of 64 bytes.

    Yields
    ------
    bytes-like
    """
    # There are no holes between tensors, and each must start at a multiple of its type: wide types first. Of
    # their type the aligned ones, so that aligning them leaves the wider ones aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name not in aligned, name))
    yield _header(tensors, names, metadata, aligned)
    for name in names:
        tensor = tensors[name]
        for piece in tensor if isinstance(tensor, Pieces) else (tensor,):
            yield piece.reshape(-1).view(np.uint8).data


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
    # Spaces at its end are part of the format.
    text += b" " * (-(8 + len(text) + aligned_begin) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


class TensorFile(Mapping[str, np.ndarray]):
    """A file of arrays by name, its header checked.

    An array is looked at when it is asked for: KeyError and ValueError then tell of a type that NumPy does not have,
    or a shape that does not fit.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool
        Map the file into memory, so that arrays are read when they are used; False reads all of it.
    checked : bool
        Whether the arrays have to fill the file to its end without holes and overlaps. False is for many small files
        of which each array is checked when it is used: it may then be shorter than it says, and what is wrong with
        the header raises whatever it does.

    Attributes
    ----------
    metadata : dict of str to str

    Raises
    ------
    safetensors.SafetensorError
        If the file is no safetensors, or cut short.
    """

    def __init__(self, path: str | os.PathLike[str], *, mmap: bool = True, checked: bool = True):
        with open(path, "rb") as file:  # unlike safetensors, the system names what it cannot open
            if checked:
                with safe_open(path, framework="numpy"):
                    pass
            if mmap:
                content = np.frombuffer(Mapped(file.fileno(), 0, access=ACCESS_READ), np.uint8)
            else:
                content = np.fromfile(file, np.uint8)
        size = 8 + int.from_bytes(content[:8].tobytes(), "little")
        self._entries: dict[str, Any] = json.loads(content[8:size].tobytes())
        self._content = content[size:]
        self._path, self._begin = path, size
        self.metadata: dict[str, str] = self._entries.pop("__metadata__", {})

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._entries[name]
        begin, end = entry["data_offsets"]
        array = self._content[begin:end].view(TYPES[entry["dtype"]]).reshape(entry["shape"])
        # Other writers may lay a file out otherwise; what the kernels read must be aligned.
        return array if array.flags.aligned else array.copy()

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def part(self, name: str, begin: int, end: int) -> np.ndarray:
        """Some numbers of a vector, read from the file: a mapped one would be held in memory as far as it was used.

        Raises
        ------
        OSError
            If the file has become shorter.
        """
        entry = self._entries[name]
        dtype = np.dtype(TYPES[entry["dtype"]])
        offset = self._begin + entry["data_offsets"][0] + begin * dtype.itemsize
        found = np.fromfile(self._path, dtype, end - begin, offset=offset)
        if found.size != end - begin:
            raise OSError(f"{os.fspath(self._path)} is cut short")
        return found
