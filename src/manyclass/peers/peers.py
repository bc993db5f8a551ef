"""How the processes of a fit communicate."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def as_traceback(error: BaseException) -> tuple[str, int]:
    """Return the message and exit code of a job that an error ends."""
    return f"{type(error).__name__}: {error}\n{''.join(traceback.format_exception(error))}".rstrip(), 1


class Peers:
    """The processes of a fit, all running the same program: here a single one, in subclasses several.

    Attributes
    ----------
    rank, size : int
        Number of this process, from 0, and number of processes.
    hosts : list of str
        Host name of each rank.
    threads : int, optional
        Threads for this process if processes on its host share the cores.
    """

    rank = 0
    size = 1
    hosts: list[str]
    threads: int | None = None

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes, by rank. All of them must call it."""
        return [value]

    def gather_bytes(self, mine: np.ndarray) -> list[np.ndarray]:
        """Return the bytes of all processes, by rank, as they are. All of them must call it."""
        return [mine]

    def share_out(self, count: int) -> Iterator[int]:
        """Yield the numbers 0..count-1 in order, each to the process that asks first. All of them must call it."""
        return iter(range(count))

    def send(self, to: int, tag: int, parcel: np.ndarray) -> None:
        """Send bytes to a process without waiting for their arrival."""
        raise RuntimeError("this fit runs in a single process")

    def receive(self, source: int, tag: int) -> np.ndarray:
        """Wait for bytes from a process."""
        raise RuntimeError("this fit runs in a single process")

    def own_range(self, count: int) -> tuple[int, int]:
        """Return which of `count` items are this process's, as `(begin, end)`."""
        return self.rank * count // self.size, (self.rank + 1) * count // self.size

    @contextmanager
    def all_or_none(self, explained: Callable[[BaseException], tuple[str, int]] = as_traceback) -> Iterator[None]:
        """Let either all processes leave this context normally or none.

        An exception raised by all processes propagates. One raised by only some of them ends the job, with the
        message and exit code that `explained` returns for it.
        """
        yield
