"""Memory limits for single processes, using a control group that also counts the page cache."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environments import UnavailableError


@dataclass(frozen=True)
class Hierarchy:
    """Where control groups are created, and the names of their files.

    `without_swap` is written to the file `swap`, which limits memory and swap together, or swap alone. A system
    without swap may not have this file.
    """

    root: Path
    sign: str  # a file that exists if groups of this kind are available
    limit: str
    swap: str
    without_swap: str
    peak: str
    events: str


FIRST = Hierarchy(
    root=Path("/sys/fs/cgroup/memory"),
    sign="memory.limit_in_bytes",
    limit="memory.limit_in_bytes",
    swap="memory.memsw.limit_in_bytes",
    without_swap="{limit}",
    peak="memory.max_usage_in_bytes",
    events="memory.oom_control",
)
SECOND = Hierarchy(
    root=Path("/sys/fs/cgroup"),
    sign="cgroup.subtree_control",
    limit="memory.max",
    swap="memory.swap.max",
    without_swap="0",
    peak="memory.peak",
    events="memory.events",
)


@dataclass(frozen=True)
class MemoryLimit:
    """A control group for one process and its children."""

    folder: Path
    hierarchy: Hierarchy

    def enter(self) -> None:
        """Move this process into the group."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def peak(self) -> int | None:
        """Peak bytes used by its processes and the files they read, if the system reports it."""
        path = self.folder / self.hierarchy.peak
        return int(path.read_text()) if path.exists() else None

    @property
    def kills(self) -> int:
        """Number of its processes killed by the system because of the limit."""
        words = [line.split() for line in (self.folder / self.hierarchy.events).read_text().splitlines()]
        return next((int(value) for name, value in words if name == "oom_kill"), 0)


@contextmanager
def memory_limit(limit: int) -> Iterator[MemoryLimit]:
    """Create a group that may use at most `limit` bytes and no swap, for the duration of a `with` block.

    Raises
    ------
    UnavailableError
        If this process is not allowed to create one.
    """
    hierarchy = FIRST if (FIRST.root / FIRST.sign).exists() else SECOND
    folder = hierarchy.root / f"manyclass-bench-{uuid.uuid4().hex}"
    try:
        if hierarchy is SECOND:
            (hierarchy.root / hierarchy.sign).write_text("+memory")
        folder.mkdir()
    except OSError as error:
        raise UnavailableError(
            f"a memory limit needs a control group, which cannot be created here: {error}"
        ) from None
    try:
        _set(folder, hierarchy, limit)
        yield MemoryLimit(folder, hierarchy)
    finally:
        _remove(folder)


def _set(folder: Path, hierarchy: Hierarchy, limit: int) -> None:
    try:
        (folder / hierarchy.limit).write_text(str(limit))
        if (folder / hierarchy.swap).exists():
            (folder / hierarchy.swap).write_text(hierarchy.without_swap.format(limit=limit))
    except OSError as error:
        raise UnavailableError(f"a memory limit of {limit} bytes cannot be set here: {error}") from None


def _remove(folder: Path) -> None:
    for _ in range(50):  # the group may still count a process that has just ended
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.1)
    folder.rmdir()
