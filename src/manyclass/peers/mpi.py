"""Processes started by mpirun that train one fit together.

All of them run the same program on the same rows and labels; `peers.py` says how solvers use them. mpirun
detects a process that dies, `courier.py` one that is cut off, and `Peers.all_or_none` one that raises.
"""

import math
import os
import pickle
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import numpy as np

from . import courier
from .courier import NUMBERS, SOON, Courier, find_mpirun
from .peers import Peers, as_traceback

# Bytes of a gathered part that are sent along with its size.
SHORT = 4096
# Seconds of busy-waiting before a wait starts to sleep: another process may need the core.
PATIENT = 0.0001
# Take enough numbers at a time to last this many seconds: an answer may take several milliseconds.
WORTH_ASKING = 0.02
# Seconds that mpirun gets to forward the last output before the job ends.
FORWARDED = 1.0
# Seconds to wait for the other processes to raise too.
MOMENT = 3.0


class MPIEngine:
    """Engine that trains on all processes of an MPI communicator.

    Parameters
    ----------
    comm : mpi4py communicator, optional
        Defaults to all processes started by mpirun.
    silence : float, optional
        End the job after this many seconds without a heartbeat from another process. Defaults to the environment
        variable `MANYCLASS_SILENCE`, or 60.
    """

    def __init__(self, comm: Any = None, *, silence: float | None = None):
        self._comm, self._silence = comm, silence
        self._peers: MPIPeers | None = None

    def peers(self) -> "MPIPeers":
        """Return the processes, connecting on the first call."""
        if self._peers is None:
            silence = float(os.environ.get("MANYCLASS_SILENCE", 60)) if self._silence is None else self._silence
            self._peers = MPIPeers(_world() if self._comm is None else self._comm, silence)
        return self._peers

    # Copies of an estimator share its engine. An unpickled engine uses all processes.
    def __copy__(self) -> "MPIEngine":
        return self

    def __deepcopy__(self, memo: Any) -> "MPIEngine":
        return self

    def __reduce__(self) -> Any:
        return MPIEngine, ()

    def __repr__(self) -> str:
        return "MPIEngine()" if self._comm is None else f"MPIEngine({self._comm!r})"


_everyone = MPIEngine()


def peers_of(engine: Any) -> Peers:
    """Return the processes of an engine."""
    if engine == "mpi":
        return _everyone.peers()
    return engine.peers() if isinstance(engine, MPIEngine) else Peers()


def started_by_mpirun() -> bool:
    """Whether mpirun or srun started this process along with others. Does not load MPI."""
    size = told_size()
    return "PMIX_RANK" in os.environ if size is None else size > 1


def told_size() -> int | None:
    """Return the number of processes mpirun started, or None if it does not say. Does not load MPI."""
    return _told("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def told_rank() -> int:
    """Return the rank of this process among those mpirun started. Does not load MPI."""
    return _told("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK") or 0


def _told(*names: str) -> int | None:
    return next((int(os.environ[name]) for name in names if os.environ.get(name)), None)


def _world() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(f'engine="mpi" needs mpi4py and MPI ({error}); pip install "manyclass[mpi]"') from error
    started = told_size()
    if started is not None and started != MPI.COMM_WORLD.size:
        raise ImportError(
            f"mpirun started {started} processes, but MPI sees {MPI.COMM_WORLD.size}: this mpirun does not belong to "
            f"the MPI that mpi4py uses ({MPI.Get_library_version().splitlines()[0]}); use the mpirun of that MPI"
        )
    return MPI.COMM_WORLD


class MPIPeers(Peers):
    """The processes of a communicator; counts the bytes it has sent and the seconds it has waited."""

    def __init__(self, comm: Any, silence: float):
        from mpi4py import MPI

        if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
            raise RuntimeError("engine='mpi' needs an MPI library with MPI_THREAD_MULTIPLE")
        self._all, self._fates = comm.Dup(), comm.Dup()
        self.rank, self.size = comm.rank, comm.size
        cores_of = self._all.allgather((platform.node(), os.sched_getaffinity(0)))
        self.hosts = [host for host, _ in cores_of]
        here = [cores for host, cores in cores_of if host == self.hosts[self.rank]]
        # mpirun may have bound each process to its own cores.
        self.threads = max(1, min(len(cores_of[self.rank][1]), len(set().union(*here)) // len(here)))
        self.bytes_sent = 0
        self.seconds_waiting = 0.0
        self._turn = 0
        self._courier = Courier(comm, self.hosts, silence, self.abort) if self.size > 1 else None

    def gather(self, value: Any) -> list[Any]:
        if self.size == 1:
            return [value]
        mine = np.frombuffer(pickle.dumps(value, protocol=5), np.uint8)
        return [pickle.loads(part.data) for part in self.gather_bytes(mine)]

    def gather_bytes(self, mine: np.ndarray) -> list[np.ndarray]:
        # Send sizes together with the first bytes: most parts are short enough to fit.
        first = np.zeros(8 + SHORT, np.uint8)
        first[:8] = np.array([mine.size], np.int64).view(np.uint8)
        first[8 : 8 + min(SHORT, mine.size)] = mine[:SHORT]
        firsts = np.empty((self.size, first.size), np.uint8)
        self._wait(self._all.Iallgather(first, firsts))
        sizes = firsts[:, :8].copy().view(np.int64)[:, 0]
        parts = [np.empty(size, np.uint8) for size in sizes]
        for part, beginning in zip(parts, firsts, strict=True):
            part[:SHORT] = beginning[8 : 8 + min(SHORT, part.size)]
        at_once = courier.PIECE // self.size
        for begin in range(SHORT, int(sizes.max()), at_once):
            counts = np.clip(sizes - begin, 0, at_once)
            joined = np.empty(counts.sum(), np.uint8)
            self._wait(self._all.Iallgatherv(mine[begin : begin + at_once], (joined, counts)))
            ends = np.cumsum(counts)
            for part, count, end in zip(parts, counts, ends, strict=True):
                part[begin : begin + count] = joined[end - count : end]
        self.bytes_sent += mine.size * (self.size - 1)
        return parts

    def share_out(self, count: int) -> Iterator[int]:
        """Ask rank 0 for more numbers whenever the last batch is used up."""
        self._turn += 1
        return iter(range(count)) if self.size == 1 else self._numbers(self._turn, count)

    def _numbers(self, turn: int, count: int) -> Iterator[int]:
        end, many = 0, 1
        while end < count:
            begin = time.perf_counter()
            first = self._take(turn, many)
            end = first + many
            yield from range(first, min(end, count))
            soon = time.perf_counter() - begin < WORTH_ASKING
            # Never take a large part of what is left: later items may take longer than earlier ones.
            many = max(1, min(2 * many if soon else many // 2, (count - end) // (4 * self.size)))

    def _take(self, turn: int, many: int) -> int:
        assert self._courier is not None
        if self.rank == 0:
            return self._courier.turns.take(0, turn, many)
        self.send(0, NUMBERS, np.array([turn, many], np.int64).view(np.uint8))
        return int(self.receive(0, NUMBERS).view(np.int64)[0])

    def send(self, to: int, tag: int, parcel: np.ndarray) -> None:
        assert self._courier is not None
        self.bytes_sent += parcel.nbytes
        self._courier.post(to, tag, parcel)

    def receive(self, source: int, tag: int) -> np.ndarray:
        assert self._courier is not None
        begin = time.perf_counter()
        try:
            return self._courier.take(source, tag)
        finally:
            self.seconds_waiting += time.perf_counter() - begin

    def watch(self, on: bool) -> None:
        if self._courier is not None:
            self._courier.watch(on)

    def share_fate(self, failed: bool) -> bool:
        """Wait for all ranks (only briefly if this one has failed); return whether all or none have failed."""
        fates = np.zeros(self.size, np.uint8)
        request = self._fates.Iallgather(np.array([failed], np.uint8), fates)
        return self._wait(request, MOMENT if failed else math.inf) and bool((fates == failed).all())

    def _wait(self, request: Any, at_most: float = math.inf) -> bool:
        """Wait for the request at most this many seconds; return whether it is done."""
        begin = time.perf_counter()
        while not (done := request.Test()) and (waited := time.perf_counter() - begin) < at_most:
            if waited > PATIENT:
                time.sleep(SOON)
        self.seconds_waiting += time.perf_counter() - begin
        return done

    @contextmanager
    def all_or_none(self, explained: Callable[[BaseException], tuple[str, int]] = as_traceback) -> Iterator[None]:
        if self.size == 1:
            yield
            return
        self.watch(True)
        try:
            yield
        except BaseException as error:
            if not self.share_fate(failed=True):
                self.abort(*explained(error))
            raise
        else:
            # No process may leave while others still need it.
            if not self.share_fate(failed=False):
                threading.Event().wait()  # another process is about to report the error and end the job
        finally:
            self.watch(False)

    def abort(self, cause: str, code: int = 1, *, cut_off: bool = False) -> NoReturn:
        """End the job, so that mpirun exits with `code`. If other hosts are cut off, end those on this one."""
        sys.stdout.flush()
        message = f"manyclass: rank {self.rank} of {self.size} on {self.hosts[self.rank]} ends the job: {cause}\n"
        with suppress(OSError):
            os.write(2, message.encode())
        time.sleep(FORWARDED)
        if cut_off:
            _end_mpirun()
        else:
            # End at least this process if mpirun does not respond.
            threading.Timer(10.0, os._exit, (code,)).start()
            self._all.Abort(code)
        os._exit(code)


def _end_mpirun() -> None:
    """Kill mpirun on this host. If asked to end, it would wait for daemons on hosts that it cannot reach.

    Ranks whose mpirun is gone end by themselves.
    """
    pid = find_mpirun()
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
