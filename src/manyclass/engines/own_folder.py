"""A folder for what a fit puts aside, gone when the fit is; the next fit removes what a killed one has left.

Whoever has such a folder holds a lock on it, which the system takes away when the process ends, however it ends.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = ".variables-"


class OwnFolder:
    """A folder with a name of its own.

    Parameters
    ----------
    beside : path
        The folder that it is made in.
    """

    def __init__(self, beside: Path):
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside))
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with suppress(OSError):  # a file system without locks, where nobody else can tell that it is in use
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            if self.path.exists():
                return
            os.close(self._lock)  # taken for abandoned before it was locked

    def remove(self) -> None:
        """Remove it and what is in it."""
        with suppress(OSError):
            shutil.rmtree(self.path)
        with suppress(OSError):
            os.close(self._lock)


def remove_abandoned(beside: Path) -> None:
    """Remove the folders of processes that have ended without doing so themselves."""
    with suppress(OSError):
        for path in beside.glob(f"{PREFIX}*"):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            except OSError:  # somebody has it
                continue
            finally:
                os.close(lock)
