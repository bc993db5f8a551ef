"""How the processes of a fit communicate."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np


class Peers(Protocol):
    """The processes of a fit, numbered from 0. All run the same program, each on its own share of the work."""

    @property
    def rank(self) -> int:
        """Number of this process."""
        ...

    @property
    def size(self) -> int:
        """Number of processes."""
        ...

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes, by rank. All of them must call it."""
        ...

    def gather_bytes(self, mine: np.ndarray) -> list[np.ndarray]:
        """Return the bytes of all processes, by rank, as they are. All of them must call it."""
        ...

    def share_out(self, count: int) -> Iterator[int]:
        """Yield the numbers 0..count-1 in order, each to the process that asks first. All of them must call it."""
        ...

    def send(self, to: int, tag: int, parcel: np.ndarray) -> None:
        """Send bytes to a process without waiting for their arrival."""
        ...

    def receive(self, source: int, tag: int) -> np.ndarray:
        """Wait for bytes from a process."""
        ...


class Alone:
    """A fit in a single process."""

    rank = 0
    size = 1

    def gather(self, value: Any) -> list[Any]:
        """Return the value of this process."""
        return [value]

    def gather_bytes(self, mine: np.ndarray) -> list[np.ndarray]:
        """Return the bytes of this process."""
        return [mine]

    def share_out(self, count: int) -> Iterator[int]:
        """Yield all numbers."""
        return iter(range(count))

    def send(self, to: int, tag: int, parcel: np.ndarray) -> None:
        """Raise an error, since there is no other process."""
        raise RuntimeError("this fit runs in a single process")

    def receive(self, source: int, tag: int) -> np.ndarray:
        """Raise an error, since there is no other process."""
        raise RuntimeError("this fit runs in a single process")


def share(count: int, peers: Peers, rank: int | None = None) -> tuple[int, int]:
    """Return a process's share of `count` items as `(begin, end)`."""
    rank = peers.rank if rank is None else rank
    return rank * count // peers.size, (rank + 1) * count // peers.size
