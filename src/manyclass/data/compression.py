"""Byte planes, each compressed if that makes it smaller; see `native/planes.hpp`."""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._native import core
from .streams import zstandard_package

# A plane is compressed if that saves this share of it: reading a compressed one takes longer.
WORTH_IT = 1 / 8
WORDS = {4: np.uint32, 8: np.uint64}
# How a plane is stored: as it is, not at all, or compressed.
AS_IT_IS, ZERO = "raw", "zero"


class PlaneError(ValueError):
    """A plane that cannot be read back."""


def _unzstd(package: Any) -> Callable[[Any, int], bytes]:
    def decompress(packed: Any, size: int) -> bytes:
        return package.ZstdDecompressor().decompress(packed, max_output_size=size)

    return decompress


def _unzlib(packed: Any, size: int) -> bytes:
    # One byte more than wanted: a longer plane is noticed, and never fills the memory.
    return zlib.decompressobj().decompress(packed, size + 1)


# Writers by name, with the level of compression that they use if none is asked for.
COMPRESSIONS: dict[str, int] = {"zstd": 1, "zlib": 1, "none": 0}


class PlaneWriter:
    """Splits arrays into planes.

    Parameters
    ----------
    compression : str
        "zstd"; "zlib", as in Yu et al.; or "none".
    level : int, optional
        As the compressor counts.
    """

    def __init__(self, compression: str = "zstd", level: int | None = None):
        if compression not in COMPRESSIONS:
            raise ValueError(f"compression must be one of {', '.join(COMPRESSIONS)}, got {compression!r}")
        self.compression = compression
        level = COMPRESSIONS[compression] if level is None else level
        self._compress: Callable[[Any], bytes] | None = None
        if compression == "zstd":
            self._compress = zstandard_package().ZstdCompressor(level=level).compress
        elif compression == "zlib":
            self._compress = lambda plane: zlib.compress(plane, level)

    def split(self, name: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The planes of an array of 4 or 8 bytes a number, lowest first: `name.0.raw` and so on."""
        words = np.ascontiguousarray(numbers).view(WORDS[numbers.itemsize])
        planes = core.split_planes(words).reshape(numbers.itemsize, -1)
        return dict(self._pack(f"{name}.{place}", plane) for place, plane in enumerate(planes))

    def _pack(self, name: str, plane: np.ndarray) -> tuple[str, np.ndarray]:
        if not plane.any():
            return f"{name}.{ZERO}", plane[:0]
        if self._compress is not None:
            packed = self._compress(plane.data)
            if len(packed) <= (1 - WORTH_IT) * plane.size:
                return f"{name}.{self.compression}", np.frombuffer(packed, np.uint8)
        return f"{name}.{AS_IT_IS}", plane


def read_planes(tensors: Mapping[str, np.ndarray], name: str, itemsize: int, count: int) -> list[np.ndarray | None]:
    """The planes of an array of `count` numbers, as the native functions take them.

    Raises
    ------
    PlaneError
        If one is missing, damaged, or not as long as it should be.
    """
    planes: list[np.ndarray | None] = []
    for place in range(itemsize):
        plane = f"{name}.{place}"
        stored = [how for how in (AS_IT_IS, ZERO, "zstd", "zlib") if f"{plane}.{how}" in tensors]
        if len(stored) != 1:
            raise PlaneError(f"plane {plane} is there {len(stored)} times")
        planes.append(_unpack(plane, stored[0], tensors[f"{plane}.{stored[0]}"], count))
    return planes


def _unpack(name: str, how: str, packed: np.ndarray, count: int) -> np.ndarray | None:
    if how == ZERO:
        return None
    plane = packed
    if how != AS_IT_IS:
        decompress = _unzlib if how == "zlib" else _unzstd(zstandard_package())
        try:
            plane = np.frombuffer(decompress(packed.data, count), np.uint8)
        except Exception as error:  # each library has exceptions of its own
            raise PlaneError(f"plane {name} is damaged ({error})") from error
    if plane.size != count:
        raise PlaneError(f"plane {name} has {plane.size} bytes instead of {count}")
    return plane


def read_numbers(tensors: Mapping[str, np.ndarray], name: str, dtype: Any, count: int) -> np.ndarray:
    """An array that `PlaneWriter.split` has split."""
    numbers = np.empty(count, dtype)
    core.join_planes(read_planes(tensors, name, numbers.itemsize, count), numbers.view(WORDS[numbers.itemsize]))
    return numbers
