"""Split arrays into byte planes, and compress each plane if that is worthwhile; see `native/formats/planes.hpp`."""

import threading
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._native import core
from .streams import zstandard_package

# Compress a plane if that saves at least this fraction. A plane that saves a third is unpacked at 1.3 GB/s, and so
# saves reading 0.4 GB per second, which is slower than just reading it from disk.
WORTH_IT = 3 / 8
WORDS = {4: np.uint32, 8: np.uint64}
# How a plane is stored, besides compressed: unchanged, or omitted because it is all zeros.
AS_IT_IS, ZERO = "raw", "zero"
PALETTE = "palette"
LARGEST_PALETTE = 16
# Limit on the zstd window.
LARGEST_WINDOW = 1 << 27
# The bytes of a plane, packed or not, and its palette, as the native functions expect them.
Plane = tuple[np.ndarray | None, np.ndarray | None]


class PlaneError(ValueError):
    """A plane cannot be read."""


_of_thread = threading.local()  # a decompressor must not be used by two threads at the same time


def _unzstd(packed: Any, size: int) -> bytes:
    zstandard = zstandard_package()
    # If a frame declares its content size, zstandard allocates that size regardless of max_output_size.
    if zstandard.frame_content_size(packed) > size:
        raise PlaneError("it is longer than it should be")
    if not hasattr(_of_thread, "zstd"):
        _of_thread.zstd = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    return _of_thread.zstd.decompress(packed, max_output_size=size)


def decompress(how: str, packed: Any, size: int) -> bytes:
    """Decompress to exactly the expected size, without using more memory than that."""
    try:
        content = READERS[how](packed, size)
    except Exception as error:  # each library has its own exceptions
        raise PlaneError(f"damaged ({error})") from error
    if len(content) != size:
        raise PlaneError(f"{len(content)} bytes instead of {size}")
    return content


READERS: dict[str, Callable[[Any, int], bytes]] = {
    "zstd": _unzstd,
    # Ask for one byte more than expected, to detect a longer plane without filling the memory.
    "zlib": lambda packed, size: zlib.decompressobj().decompress(packed, size + 1),
}
# Compression methods and their default levels.
COMPRESSIONS: dict[str, int] = {"zstd": 1, "zlib": 1, "none": 0}


class PlaneWriter:
    """Split arrays into planes.

    Parameters
    ----------
    compression
        "zstd", "zlib" (as in Yu et al.) or "none".
    level
        On the scale of the compressor.
    shortened
        Omit planes of zeros, and pack planes with few distinct bytes with a palette.
    """

    def __init__(self, compression: str = "zstd", level: int | None = None, *, shortened: bool = True):
        if compression not in COMPRESSIONS:
            raise ValueError(f"compression must be one of {', '.join(COMPRESSIONS)}, got {compression!r}")
        self.compression, self._shortened = compression, shortened
        level = COMPRESSIONS[compression] if level is None else level
        self._compress: Callable[[Any], bytes] | None = None
        if compression == "zstd":
            self._compress = zstandard_package().ZstdCompressor(level=level).compress
        elif compression == "zlib":
            self._compress = lambda plane: zlib.compress(plane, level)

    def split(self, name: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Split an array of 4- or 8-byte numbers into planes, lowest byte first: `name.0.raw` and so on."""
        words = np.ascontiguousarray(numbers).view(WORDS[numbers.itemsize])
        planes = core.split_planes(words).reshape(numbers.itemsize, -1)
        tensors: dict[str, np.ndarray] = {}
        for place, plane in enumerate(planes):
            tensors |= self._pack(f"{name}.{place}", plane)
        return tensors

    def _pack(self, name: str, plane: np.ndarray) -> dict[str, np.ndarray]:
        if not self._shortened:
            return self._compressed(name, plane)
        if not plane.any():
            return {f"{name}.{ZERO}": plane[:0]}
        palette = core.palette_of(plane)
        if not palette.size:
            return self._compressed(name, plane)
        return self._compressed(name, core.pack_plane(plane, palette)) | {f"{name}.{PALETTE}": palette}

    def _compressed(self, name: str, plane: np.ndarray) -> dict[str, np.ndarray]:
        if self._compress is not None:
            packed = self._compress(plane.data)
            if len(packed) <= (1 - WORTH_IT) * plane.size:
                return {f"{name}.{self.compression}": np.frombuffer(packed, np.uint8)}
        return {f"{name}.{AS_IT_IS}": plane}


def read_planes(tensors: Mapping[str, np.ndarray], name: str, itemsize: int, count: int) -> list[Plane]:
    """Read the planes of an array of `count` numbers."""
    return [_read_plane(tensors, f"{name}.{place}", count) for place in range(itemsize)]


def _read_plane(tensors: Mapping[str, np.ndarray], name: str, count: int) -> Plane:
    stored = [how for how in (AS_IT_IS, ZERO, *READERS) if f"{name}.{how}" in tensors]
    if len(stored) != 1:
        raise PlaneError(f"plane {name} is stored {len(stored)} times")
    how = stored[0]
    if how == ZERO:
        return None, None
    bytes_, palette = tensors[f"{name}.{how}"], tensors.get(f"{name}.{PALETTE}")
    if any(array.dtype != np.uint8 or array.ndim != 1 for array in (bytes_, palette) if array is not None):
        raise PlaneError(f"plane {name} is not a vector of bytes")
    if palette is not None and palette.size > LARGEST_PALETTE:
        raise PlaneError(f"plane {name} has a palette of {palette.size} bytes, which is too large")
    bits = 8 if palette is None else 1 if palette.size <= 2 else 2 if palette.size <= 4 else 4
    size = (count * bits + 7) // 8
    if how == AS_IT_IS:
        if bytes_.size != size:
            raise PlaneError(f"plane {name}: {bytes_.size} bytes instead of {size}")
        return bytes_, palette
    try:
        return np.frombuffer(decompress(how, bytes_.data, size), np.uint8), palette
    except PlaneError as error:
        raise PlaneError(f"plane {name}: {error}") from error


def read_numbers(tensors: Mapping[str, np.ndarray], name: str, dtype: Any, count: int) -> np.ndarray:
    """Read an array split by `PlaneWriter.split`."""
    dtype = np.dtype(dtype)
    return core.join_planes(read_planes(tensors, name, dtype.itemsize, count), count).view(dtype)
