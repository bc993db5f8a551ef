"""One writer of a store at a time, who clears away what others have left unfinished."""

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
    """Be the only one who writes to a folder; the system ends it if the process ends.

    Raises
    ------
    StoreError
        If someone else does.
    OSError
        Of what is done there, with the folder if no file is named.
    """
    with _lock_file(folder / LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{folder} is being written by another process; wait for its end") from None
        try:
            yield
        except OSError as error:  # a full disk does not say which
            raise error if error.filename else OSError(error.errno, error.strerror, str(folder)) from error


def _lock_file(path: Path) -> BinaryIO:
    """Open the lock, which is a file in the folder and not a way out of it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise StoreError(f"{path} is no plain file; remove it") from error
        raise
    lock = os.fdopen(handle, "rb", buffering=0)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        lock.close()
        raise StoreError(f"{path} is no plain file; remove it")
    return cast(BinaryIO, lock)


def sweep(folder: Path, keep: Collection[str]) -> None:
    """Delete the files of a store that are not to be kept, and what was being written under another name."""
    # The journal goes last: while it is there, it tells whether the rest has been done.
    for name in sorted(os.listdir(folder), key=lambda name: name == JOURNAL):
        begun = name.startswith(".") and (OWN_FILES.match(name[1:]) or name[1:].startswith((MANIFEST, JOURNAL)))
        if begun or (name not in keep and (OWN_FILES.fullmatch(name) or name == JOURNAL)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(folder / name)
