"""Checksums of files."""

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from .streams import CHUNK


def checksum_of(path: str | os.PathLike[str]) -> str:
    """The checksum of a file that is there."""
    digest = hashlib.blake2b()
    with open(path, "rb") as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def write_checked(out: BinaryIO, pieces: Iterable[bytes | memoryview]) -> tuple[int, str]:
    """Write pieces that stay as they are; give their size and checksum, which is computed at the same time."""
    digest, size = hashlib.blake2b(), 0
    with ThreadPoolExecutor(1) as beside:
        digesting = []
        for piece in pieces:
            digesting.append(beside.submit(digest.update, piece))
            size += out.write(piece)
        for done in digesting:
            done.result()
    return size, digest.hexdigest()
