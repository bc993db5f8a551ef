"""Processes that mpirun has started, each with its share of a fit.

All of them run the same program on the same rows and labels; `solvers/peers.py` says how solvers use them. Parcels
(the weights of a league, say) are carried by a thread of their own, so that they travel while matches are played. The
same thread sends a sign of life to the next rank once a second, and ends the job if the rank before has been silent
for long: a cut cable is an error then, not a wait without end. A process that dies is noticed by mpirun.
"""

import logging
import os
import pickle
import platform
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from ..solvers import Peers

logger = logging.getLogger("manyclass")

# Messages are cut into pieces of at most this size: MPI counts bytes with 31 bits.
PIECE = 1 << 30
# Bytes of a gathered value that travel with its size.
SHORT = 4096
# Seconds for which a wait keeps a core busy: others may need it.
PATIENT = 0.0001
# Seconds between two looks at what has come: while somebody waits for it, and while nobody does.
SOON, LATER = 0.0002, 0.002
HEARTBEAT = 1.0


class MPIEngine:
    """The processes of an MPI communicator train together.

    Parameters
    ----------
    comm : mpi4py communicator, optional
        By default all processes that mpirun has started.
    silence : float
        Seconds without a sign of life from another process after which the job is ended.
    """

    def __init__(self, comm: Any = None, *, silence: float = 60.0):
        self._comm, self._silence = comm, silence
        self._peers: MPIPeers | None = None

    def peers(self) -> "MPIPeers":
        """The processes, ready to talk."""
        if self._peers is None:
            self._peers = MPIPeers(_world() if self._comm is None else self._comm, self._silence)
        return self._peers

    # Estimators are copied with their engine: it stays the same one; stored ones mean all processes.
    def __copy__(self) -> "MPIEngine":
        return self

    def __deepcopy__(self, memo: Any) -> "MPIEngine":
        return self

    def __reduce__(self) -> Any:
        return MPIEngine, ()

    def __repr__(self) -> str:
        return "MPIEngine()" if self._comm is None else f"MPIEngine({self._comm!r})"


def _world() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(f'engine="mpi" needs mpi4py and MPI ({error}); pip install "manyclass[mpi]"') from error
    return MPI.COMM_WORLD


class MPIPeers:
    """The processes of a communicator, as solvers see them.

    Attributes
    ----------
    bytes_sent : int
        Of parcels and of what was gathered, by this process.
    seconds_waiting : float
        How long this process has waited for others.
    """

    def __init__(self, comm: Any, silence: float):
        from mpi4py import MPI

        if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
            raise RuntimeError("engine='mpi' needs an MPI that threads may call (MPI_THREAD_MULTIPLE)")
        self._all = comm.Dup()
        self.rank, self.size = comm.rank, comm.size
        self.hosts: list[str] = self._all.allgather(platform.node())
        self.bytes_sent = 0
        self.seconds_waiting = 0.0
        self._courier = _Courier(self, comm, silence) if self.size > 1 else None

    def gather(self, value: Any) -> list[Any]:
        """Give everyone everyone's value, by rank."""
        if self.size == 1:
            return [value]
        mine = np.frombuffer(pickle.dumps(value, protocol=5), np.uint8)
        # Sizes, and the beginning of each value: most are not longer.
        first = np.zeros(8 + SHORT, np.uint8)
        first[:8] = np.array([mine.size], np.int64).view(np.uint8)
        first[8 : 8 + min(SHORT, mine.size)] = mine[:SHORT]
        firsts = np.empty((self.size, first.size), np.uint8)
        self._wait(self._all.Iallgather(first, firsts))
        sizes = firsts[:, :8].copy().view(np.int64)[:, 0]
        parts = [np.empty(size, np.uint8) for size in sizes]
        for part, beginning in zip(parts, firsts, strict=True):
            part[:SHORT] = beginning[8 : 8 + min(SHORT, part.size)]
        at_once = PIECE // self.size
        for begin in range(SHORT, int(sizes.max()), at_once):
            counts = np.clip(sizes - begin, 0, at_once)
            together = np.empty(counts.sum(), np.uint8)
            self._wait(self._all.Iallgatherv(mine[begin : begin + at_once], (together, counts)))
            ends = np.cumsum(counts)
            for part, count, end in zip(parts, counts, ends, strict=True):
                part[begin : begin + count] = together[end - count : end]
        self.bytes_sent += mine.size * (self.size - 1)
        return [pickle.loads(part.data) for part in parts]

    def send(self, to: int, tag: int, parcel: np.ndarray) -> None:
        """Hand a parcel to the courier."""
        assert self._courier is not None
        self.bytes_sent += parcel.nbytes
        self._courier.post(to, tag, parcel)

    def receive(self, source: int, tag: int) -> np.ndarray:
        """Wait for a parcel."""
        assert self._courier is not None
        begin = time.perf_counter()
        try:
            return self._courier.take(source, tag)
        finally:
            self.seconds_waiting += time.perf_counter() - begin

    def watch(self, on: bool) -> None:
        """Begin or end to expect signs of life of the others."""
        if self._courier is not None:
            self._courier.watch(on)

    def _wait(self, request: Any) -> None:
        begin = time.perf_counter()
        while not request.Test():
            if time.perf_counter() - begin > PATIENT:
                time.sleep(SOON)
        self.seconds_waiting += time.perf_counter() - begin

    def abort(self, cause: str) -> None:
        """End the job."""
        sys.stdout.flush()
        message = f"manyclass: rank {self.rank} of {self.size} on {self.hosts[self.rank]} ends the job: {cause}\n"
        with suppress(OSError):
            os.write(2, message.encode())
        # Where mpirun cannot be reached any more, this process at least ends by itself.
        threading.Timer(10.0, os._exit, (1,)).start()
        self._all.Abort(1)
        os._exit(1)


@contextmanager
def together(peers: Peers) -> Iterator[None]:
    """Let no process of a fit go on alone: what one of them raises ends the job, and says who and why."""
    if not isinstance(peers, MPIPeers) or peers.size == 1:
        yield
        return
    peers.watch(True)
    try:
        yield
        peers.gather(None)  # nobody leaves before all have what they need
    except BaseException as error:
        peers.abort(f"{type(error).__name__}: {error}")
    finally:
        peers.watch(False)


class _Courier(threading.Thread):
    """Carries parcels, and listens whether the others are alive."""

    def __init__(self, peers: MPIPeers, comm: Any, silence: float):
        super().__init__(daemon=True, name="manyclass courier")
        self._peers, self._silence = peers, silence
        self._parcels, self._signs = comm.Dup(), comm.Dup()
        self._outbox: deque[tuple[int, int, np.ndarray]] = deque()
        self._wake = threading.Event()
        self._inbox: dict[tuple[int, int], deque[np.ndarray]] = defaultdict(deque)
        self._coming: dict[tuple[int, int], tuple[np.ndarray, int]] = {}  # the parcel, and how much of it is here
        self._arrived = threading.Condition()
        self._wanted = False
        self._watching = False
        self._under_way: list[tuple[Any, Any]] = []  # requests, with what they send
        self._heard = self._said = time.monotonic()
        self.start()

    def watch(self, on: bool) -> None:
        """Begin or end to expect signs of life."""
        self._heard = time.monotonic()
        self._watching = on

    def post(self, to: int, tag: int, parcel: np.ndarray) -> None:
        """Send a parcel off."""
        self._outbox.append((to, tag, parcel))
        self._wake.set()

    def take(self, source: int, tag: int) -> np.ndarray:
        """Wait for a parcel."""
        with self._arrived:
            self._wanted = True
            self._wake.set()
            while not self._inbox[source, tag]:
                self._arrived.wait()
            self._wanted = False
            return self._inbox[source, tag].popleft()

    def run(self) -> None:
        """Go on until the process ends."""
        try:
            while True:
                self._wake.clear()
                while self._outbox:
                    self._send(*self._outbox.popleft())
                while self._fetch():
                    pass
                self._under_way = [(request, kept) for request, kept in self._under_way if not request.Test()]
                self._signs_of_life()
                self._wake.wait(SOON if self._wanted else LATER)
        except BaseException as error:
            self._peers.abort(f"the exchange failed: {type(error).__name__}: {error}")

    def _send(self, to: int, tag: int, parcel: np.ndarray) -> None:
        size = np.array([parcel.nbytes], np.int64)
        pieces = [size] + [parcel[begin : begin + PIECE] for begin in range(0, parcel.nbytes, PIECE)]
        self._under_way += [(self._parcels.Isend(piece, to, tag), piece) for piece in pieces]

    def _fetch(self) -> bool:
        """Take in a message, if there is one: first the size of a parcel, then its pieces."""
        from mpi4py import MPI

        status = MPI.Status()
        message = self._parcels.Improbe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        if message is None:
            return False
        place = status.source, status.tag
        if place not in self._coming:
            size = np.zeros(1, np.int64)
            message.Recv(size)
            self._coming[place] = np.empty(int(size[0]), np.uint8), 0
        else:
            parcel, done = self._coming[place]
            piece = parcel[done : done + PIECE]
            message.Recv(piece)
            self._coming[place] = parcel, done + piece.nbytes
        parcel, done = self._coming[place]
        if done == parcel.nbytes:
            del self._coming[place]
            with self._arrived:
                self._inbox[place].append(parcel)
                self._arrived.notify_all()
        return True

    def _signs_of_life(self) -> None:
        from mpi4py import MPI

        peers, now = self._peers, time.monotonic()
        if now - self._said >= HEARTBEAT:
            self._said = now
            sign = np.zeros(1, np.uint8)
            self._under_way.append((self._signs.Isend(sign, (peers.rank + 1) % peers.size), sign))
        before = (peers.rank - 1) % peers.size
        while (message := self._signs.Improbe(before, MPI.ANY_TAG)) is not None:
            message.Recv(np.zeros(1, np.uint8))
            self._heard = now
        if self._watching and now - self._heard > self._silence:
            peers.abort(
                f"rank {before} on {peers.hosts[before]} has not been heard of for {self._silence:g} seconds; "
                "it has stopped, or the network between the two has"
            )
