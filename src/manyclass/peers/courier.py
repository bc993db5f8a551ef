"""A thread that carries parcels between processes, so that they travel while matches are played.

It also sends a heartbeat to the next rank every second, and ends the job if the previous rank has been silent for too
long, so that a cut cable is an error rather than an endless wait. In rank 0 it also answers requests for numbers of
shared work, whatever that rank is doing itself.
"""

import atexit
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

# Messages are cut into pieces of at most this size: MPI counts bytes with 31 bits.
PIECE = 1 << 30
# Seconds between two polls, while this process waits for a parcel and while it does not.
SOON, LATER = 0.0002, 0.002
HEARTBEAT = 1.0
# Tags besides those of leagues: requests for numbers and their answers, and rows. MPI may not allow larger tags.
NUMBERS, ROWS = 32766, 32767
# Names of mpirun's processes on the hosts of a job.
MPIRUN = ("mpirun", "prterun", "prted")


def find_mpirun() -> int | None:
    """Return the id of the mpirun process that this one descends from, if it is visible."""
    pid = os.getppid()
    with suppress(OSError):
        while pid > 1:
            told = dict(line.partition(":\t")[::2] for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            if told["Name"] in MPIRUN:
                return pid
            pid = int(told["PPid"])
    return None


class Turns:
    """Assigns numbers of shared work to ranks, turn after turn; used by rank 0.

    A turn is dropped when all ranks have reached a later one.
    """

    def __init__(self, ranks: int):
        self._seen = [0] * ranks  # last turn of each rank
        self._next: dict[int, int] = {}  # first unassigned number of each turn
        self._taking = threading.Lock()

    def take(self, rank: int, turn: int, many: int) -> int:
        """Assign this many consecutive numbers to a rank, and return the first of them."""
        with self._taking:
            self._seen[rank] = turn
            first = self._next.get(turn, 0)
            self._next[turn] = first + many
            self._next = {later: first for later, first in self._next.items() if later >= min(self._seen)}
            return first


class Courier(threading.Thread):
    """Carries parcels, and ends the job with `abort` after `silence` seconds without a heartbeat."""

    def __init__(self, comm: Any, hosts: list[str], silence: float, abort: Callable[..., None]):
        super().__init__(daemon=True, name="manyclass courier")
        self._hosts, self._silence, self._abort = hosts, silence, abort
        self._parcels, self._heartbeats = comm.Dup(), comm.Dup()
        self._mpirun = find_mpirun()
        self._outbox: deque[tuple[int, int, np.ndarray]] = deque()
        self._wake = threading.Event()
        self._inbox: dict[tuple[int, int], deque[np.ndarray]] = defaultdict(deque)
        # Parcels with pieces still to be announced, and those with all pieces announced; requests for the pieces.
        self._coming: dict[tuple[int, int], tuple[np.ndarray, list[Any]]] = {}
        self._arriving: list[tuple[tuple[int, int], np.ndarray, list[Any]]] = []
        self._arrived = threading.Condition()
        self._wanted = False
        self._watching = 0
        self._ended = False
        self.turns = Turns(comm.size)
        self._under_way: list[tuple[Any, Any]] = []  # requests, with the arrays that they send
        self._heard = self._said = time.monotonic()
        self.start()
        atexit.register(self._end)  # before MPI ends

    def watch(self, on: bool) -> None:
        """Start or stop expecting heartbeats. Calls nest."""
        self._heard = time.monotonic()
        self._watching += 1 if on else -1

    def post(self, to: int, tag: int, parcel: np.ndarray) -> None:
        """Send a parcel without waiting."""
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
        """Exchange messages until the process ends."""
        try:
            while not self._ended:
                self._wake.clear()
                while self._outbox:
                    self._send(*self._outbox.popleft())
                while self._fetch():
                    pass
                self._deliver()
                self._under_way = [(request, kept) for request, kept in self._under_way if not request.Test()]
                self._exchange_heartbeats()
                self._wake.wait(SOON if self._wanted else LATER)
        except BaseException as error:
            self._abort(f"exchanging messages failed: {type(error).__name__}: {error}")

    def _end(self) -> None:
        self._ended = True
        self._wake.set()
        self.join()

    def _send(self, to: int, tag: int, parcel: np.ndarray) -> None:
        size = np.array([parcel.nbytes], np.int64)
        pieces = [size] + [parcel[begin : begin + PIECE] for begin in range(0, parcel.nbytes, PIECE)]
        self._under_way += [(self._parcels.Isend(piece, to, tag), piece) for piece in pieces]

    def _fetch(self) -> bool:
        """Receive a message, if there is one: first the size of a parcel, then its pieces."""
        from mpi4py import MPI

        status = MPI.Status()
        message = self._parcels.Improbe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        if message is None:
            return False
        sender = status.source, status.tag
        if sender not in self._coming:
            size = np.zeros(1, np.int64)
            message.Recv(size)
            self._coming[sender] = np.empty(int(size[0]), np.uint8), []
        else:
            parcel, requests = self._coming[sender]
            # Do not wait for it: the cable may be cut while it travels.
            requests.append(message.Irecv(parcel[len(requests) * PIECE : (len(requests) + 1) * PIECE]))
        parcel, requests = self._coming[sender]
        if len(requests) == -(-parcel.nbytes // PIECE):
            self._arriving.append((sender, *self._coming.pop(sender)))
        return True

    def _deliver(self) -> None:
        """Hand over complete parcels; those with the same source and tag in the order they were sent."""
        late = []
        awaited = set()
        for sender, parcel, requests in self._arriving:
            if sender in awaited or not all(request.Test() for request in requests):
                late.append((sender, parcel, requests))
                awaited.add(sender)
                continue
            if sender[1] == NUMBERS and self._parcels.rank == 0:
                self._answer(sender[0], parcel)
                continue
            with self._arrived:
                self._inbox[sender].append(parcel)
                self._arrived.notify_all()
        self._arriving = late

    def _answer(self, rank: int, question: np.ndarray) -> None:
        turn, many = question.view(np.int64).tolist()
        first = self.turns.take(rank, turn, many)
        self.post(rank, NUMBERS, np.array([first], np.int64).view(np.uint8))

    def _exchange_heartbeats(self) -> None:
        from mpi4py import MPI

        rank, size, now = self._heartbeats.rank, self._heartbeats.size, time.monotonic()
        if now - self._said >= HEARTBEAT:
            self._said = now
            beat = np.zeros(1, np.uint8)
            self._under_way.append((self._heartbeats.Isend(beat, (rank + 1) % size), beat))
            if find_mpirun() != self._mpirun:
                self._abort("mpirun is gone", cut_off=True)
        before = (rank - 1) % size
        while (message := self._heartbeats.Improbe(before, MPI.ANY_TAG)) is not None:
            message.Recv(np.zeros(1, np.uint8))
            self._heard = now
        if self._watching and now - self._heard > self._silence:
            self._abort(
                f"rank {before} on {self._hosts[before]} has not been heard from for {self._silence:g} seconds; "
                "it has stopped, or the network is down",
                cut_off=True,
            )
