"""Allow one writer of a store at a time, and delete what interrupted writers have left."""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from .manifest import JOURNAL, MANIFEST, OWN_FILES, StoreError

LOCK = ".lock"


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold the write lock of a folder, which the system releases when the process ends.

    StoreError if another process holds the lock. Errors of the body name the folder if they name no file.
    """
    with _lock_file(folder / LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{folder} is being written by another process; wait until it finishes") from None
        try:
            yield
        except OSError as error:  # "No space left on device" names no file
            raise error if error.filename else OSError(error.errno, error.strerror, str(folder)) from error


def _lock_file(path: Path) -> BinaryIO:
    """Open the lock file, without following a link out of the folder."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise StoreError(f"{path} is not a regular file; remove it") from error
        raise
    lock = os.fdopen(handle, "rb", buffering=0)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        lock.close()
        raise StoreError(f"{path} is not a regular file; remove it")
    return cast(BinaryIO, lock)


def sweep(folder: Path, keep: Collection[str]) -> None:
    """Delete the files of a store that are not in `keep`, and temporary files."""
    # Delete the journal last, because it records whether the conversion is complete.
    for name in sorted(os.listdir(folder), key=lambda name: name == JOURNAL):
        begun = name.startswith(".") and (OWN_FILES.match(name[1:]) or name[1:].startswith((MANIFEST, JOURNAL)))
        if begun or (name not in keep and (OWN_FILES.fullmatch(name) or name == JOURNAL)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(folder / name)
