"""The thread that carries parcels between processes, so that they travel while matches are played.

It also sends a sign of life to the next rank once a second, and ends the job if the rank before has been silent for
long: a cut cable is an error then, not a wait without end. And in the first rank it answers who asks for numbers of
what is shared out, whatever that rank is busy with itself.
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
# Seconds between two looks at what has come: while somebody waits for it, and while nobody does.
SOON, LATER = 0.0002, 0.002
HEARTBEAT = 1.0
# Tags that are not those of leagues: of parcels that ask the first rank for numbers and of those with the answer, and
# of rows. MPI may have none above.
NUMBERS, ROWS = 32766, 32767
# Processes of mpirun on the hosts of a job.
MPIRUN = ("mpirun", "prterun", "prted")


def find_mpirun() -> int | None:
    """The process of mpirun that this one descends from, if it can be seen."""
    pid = os.getppid()
    with suppress(OSError):
        while pid > 1:
            told = dict(line.partition(":\t")[::2] for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            if told["Name"] in MPIRUN:
                return pid
            pid = int(told["PPid"])
    return None


class Turns:
    """Who gets which numbers of what is shared out, turn after turn: in the first rank.

    Parameters
    ----------
    ranks : int
        That take part. A turn is forgotten when all of them have come to a later one.
    """

    def __init__(self, ranks: int):
        self._seen = [0] * ranks  # the last turn of each
        self._next: dict[int, int] = {}  # by turn: the first number that nobody has
        self._taking = threading.Lock()

    def take(self, rank: int, turn: int, many: int) -> int:
        """Give so many numbers to a rank: the first of them."""
        with self._taking:
            self._seen[rank] = turn
            first = self._next.get(turn, 0)
            self._next[turn] = first + many
            self._next = {later: first for later, first in self._next.items() if later >= min(self._seen)}
            return first


class Courier(threading.Thread):
    """Carries parcels, and listens whether the others are alive.

    Parameters
    ----------
    comm : mpi4py communicator
    hosts : list of str
        Of the processes, by rank.
    silence : float
        Seconds without a sign of life after which the job is ended.
    abort : callable
        Ends the job; it is told why, and whether other hosts cannot be reached.
    """

    def __init__(self, comm: Any, hosts: list[str], silence: float, abort: Callable[..., None]):
        super().__init__(daemon=True, name="manyclass courier")
        self._hosts, self._silence, self._abort = hosts, silence, abort
        self._parcels, self._signs = comm.Dup(), comm.Dup()
        self._mpirun = find_mpirun()
        self._outbox: deque[tuple[int, int, np.ndarray]] = deque()
        self._wake = threading.Event()
        self._inbox: dict[tuple[int, int], deque[np.ndarray]] = defaultdict(deque)
        # Parcels of which not all pieces were announced yet, and those of which all were; requests for the pieces.
        self._coming: dict[tuple[int, int], tuple[np.ndarray, list[Any]]] = {}
        self._arriving: list[tuple[tuple[int, int], np.ndarray, list[Any]]] = []
        self._arrived = threading.Condition()
        self._wanted = False
        self._watching = 0
        self._ended = False
        self.turns = Turns(comm.size)
        self._under_way: list[tuple[Any, Any]] = []  # requests, with what they send
        self._heard = self._said = time.monotonic()
        self.start()
        atexit.register(self._end)  # before MPI does

    def watch(self, on: bool) -> None:
        """Begin to expect signs of life, or end as often as it was begun."""
        self._heard = time.monotonic()
        self._watching += 1 if on else -1

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
            while not self._ended:
                self._wake.clear()
                while self._outbox:
                    self._send(*self._outbox.popleft())
                while self._fetch():
                    pass
                self._deliver()
                self._under_way = [(request, kept) for request, kept in self._under_way if not request.Test()]
                self._signs_of_life()
                self._wake.wait(SOON if self._wanted else LATER)
        except BaseException as error:
            self._abort(f"the exchange failed: {type(error).__name__}: {error}")

    def _end(self) -> None:
        self._ended = True
        self._wake.set()
        self.join()

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
            self._coming[place] = np.empty(int(size[0]), np.uint8), []
        else:
            parcel, requests = self._coming[place]
            # Without waiting for it: a cable may be cut while it travels.
            requests.append(message.Irecv(parcel[len(requests) * PIECE : (len(requests) + 1) * PIECE]))
        parcel, requests = self._coming[place]
        if len(requests) == -(-parcel.nbytes // PIECE):
            self._arriving.append((place, *self._coming.pop(place)))
        return True

    def _deliver(self) -> None:
        """Hand over the parcels that are here; those from one place in the order they were sent."""
        late = []
        places = set()
        for place, parcel, requests in self._arriving:
            if place in places or not all(request.Test() for request in requests):
                late.append((place, parcel, requests))
                places.add(place)
                continue
            if place[1] == NUMBERS and self._parcels.rank == 0:
                self._answer(place[0], parcel)
                continue
            with self._arrived:
                self._inbox[place].append(parcel)
                self._arrived.notify_all()
        self._arriving = late

    def _answer(self, rank: int, question: np.ndarray) -> None:
        turn, many = question.view(np.int64).tolist()
        first = self.turns.take(rank, turn, many)
        self.post(rank, NUMBERS, np.array([first], np.int64).view(np.uint8))

    def _signs_of_life(self) -> None:
        from mpi4py import MPI

        rank, size, now = self._signs.rank, self._signs.size, time.monotonic()
        if now - self._said >= HEARTBEAT:
            self._said = now
            sign = np.zeros(1, np.uint8)
            self._under_way.append((self._signs.Isend(sign, (rank + 1) % size), sign))
            if find_mpirun() != self._mpirun:
                self._abort("mpirun has gone", cut_off=True)
        before = (rank - 1) % size
        while (message := self._signs.Improbe(before, MPI.ANY_TAG)) is not None:
            message.Recv(np.zeros(1, np.uint8))
            self._heard = now
        if self._watching and now - self._heard > self._silence:
            self._abort(
                f"rank {before} on {self._hosts[before]} has not been heard of for {self._silence:g} seconds; "
                "it has stopped, or the network between the two has",
                cut_off=True,
            )
