"""Temporary folder of a fit, removed when the fit ends; the next fit removes the folder of one that was killed.

The owner holds a lock on the folder. The operating system releases the lock when the process ends for any reason.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = ".variables-"


class OwnFolder:
    """Temporary folder with a unique name in the folder `beside`."""

    def __init__(self, beside: Path):
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside))
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with suppress(OSError):  # no locks on this file system, so no other process can lock it either
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            if self.path.exists():
                return
            os.close(self._lock)  # another process removed it before it was locked

    def remove(self) -> None:
        """Remove the folder and its contents."""
        with suppress(OSError):
            shutil.rmtree(self.path)
        with suppress(OSError):
            os.close(self._lock)


def remove_abandoned(beside: Path) -> None:
    """Remove folders left behind by processes that no longer run."""
    with suppress(OSError):
        for path in beside.glob(f"{PREFIX}*"):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            except OSError:  # in use
                continue
            finally:
                os.close(lock)
