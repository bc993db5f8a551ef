"""Who else works on a fit: the few ways in which processes that run the same fit side by side talk to each other."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np


class Peers(Protocol):
    """The processes of a fit, numbered from 0. All run the same program, each on its own share."""

    @property
    def rank(self) -> int:
        """The number of this one."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def gather(self, value: Any) -> list[Any]:
        """Give everyone everyone's value, by rank. All must call it."""
        ...

    def share_out(self, count: int) -> Iterator[int]:
        """The numbers 0..count-1 in their order, each for the process that asks first. All must call it."""
        ...

    def send(self, to: int, tag: int, parcel: np.ndarray) -> None:
        """Send bytes to one of them, without waiting until they have arrived."""
        ...

    def receive(self, source: int, tag: int) -> np.ndarray:
        """Wait for the bytes that one of them sends."""
        ...


class Alone:
    """Nobody else."""

    rank = 0
    size = 1

    def gather(self, value: Any) -> list[Any]:
        """Give back what was given."""
        return [value]

    def share_out(self, count: int) -> Iterator[int]:
        """All of the numbers."""
        return iter(range(count))

    def send(self, to: int, tag: int, parcel: np.ndarray) -> None:
        """There is nobody to send to."""
        raise RuntimeError("there is nobody else in this fit")

    def receive(self, source: int, tag: int) -> np.ndarray:
        """There is nobody to hear from."""
        raise RuntimeError("there is nobody else in this fit")


def share(count: int, peers: Peers, rank: int | None = None) -> tuple[int, int]:
    """The part of `count` things that a process has: from the first to before the last."""
    rank = peers.rank if rank is None else rank
    return rank * count // peers.size, (rank + 1) * count // peers.size
