"""Sizes and checksums of files."""

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from .streams import CHUNK


def wrong_size(path: Path, size: int) -> str | None:
    """Say what is wrong with a file that should have this many bytes, if anything."""
    if not path.exists():
        return "is missing"
    if not path.is_file():
        return "is not a file"
    found = path.stat().st_size
    return None if found == size else f"has {found} bytes instead of {size}"


def checksum_of(path: str | os.PathLike[str]) -> str:
    """Return the checksum of a file."""
    digest = hashlib.blake2b()
    with open(path, "rb") as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def write_checked(out: BinaryIO, pieces: Iterable[bytes | memoryview]) -> tuple[int, str]:
    """Write pieces and return their size and checksum, computed in parallel. The pieces must not change meanwhile."""
    digest, size = hashlib.blake2b(), 0
    with ThreadPoolExecutor(1) as beside:
        digesting = []
        for piece in pieces:
            digesting.append(beside.submit(digest.update, piece))
            size += out.write(piece)
        for done in digesting:
            done.result()
    return size, digest.hexdigest()
