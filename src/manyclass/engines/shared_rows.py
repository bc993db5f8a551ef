"""Rows shared by the processes on a host: the first one reads them, the others map its memory.

The memory is an anonymous file (memfd), which the others open through /proc. It disappears with its last process,
however that ends, and is not limited by the size of /dev/shm.

| offset | contents |
|---|---|
| 0 | int64: number of pieces, and size of each |
| next multiple of 64 | first piece: a pickle without its arrays |
| each following multiple of 64 | other pieces: the arrays |
"""

import ctypes
import logging
import mmap
import os
import pickle
import secrets
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..peers import Peers
from ..peers.courier import ROWS

logger = logging.getLogger("manyclass")

Part = TypeVar("Part")
Rows = TypeVar("Rows")
ALIGNED = 64
MFD_CLOEXEC = 1


def share_rows(read: Callable[[], Rows], peers: Peers) -> Rows:
    """Read once per host, and return the result to all processes there, with its arrays in shared memory.

    All processes must call this. If memory cannot be shared, they get copies, and a warning is logged.

    Parameters
    ----------
    read : callable
        Called by the first process on each host. Returns anything that can be pickled: matrices, labels, tuples of
        them.
    peers : Peers

    Returns
    -------
    object
        The result of `read`. Its arrays are read-only unless the process is alone on its host.

    Raises
    ------
    Exception
        Whatever `read` raises, in all processes on its host.
    """
    if peers.size == 1:
        return read()
    first, *others = [rank for rank, host in enumerate(peers.hosts) if host == peers.hosts[peers.rank]]
    rows: Any = None
    if peers.rank == first:
        try:
            rows = read()
        except Exception as error:
            peers.gather(error)
            raise
    failure = peers.gather(None)[first]
    if failure is not None:
        raise failure
    memory, lacking = _in_common(rows, first, bool(others), peers)
    if memory is not None:
        rows = _unpacked(memory)
    if lacking:
        if peers.rank == first:
            _send(rows, lacking.keys() & others, peers)
        if peers.rank in lacking:
            rows = _unpacked(peers.receive(first, ROWS))
        peers.gather(None)  # no process may end while others still receive
    return rows


def join_rows(part: Part, join: Callable[[Sequence[Part]], Rows], peers: Peers) -> Rows:
    """Join the parts that the processes have read, once per host, and share the result as `share_rows` does.

    `join` takes the parts of all processes, by rank.
    """
    if peers.size == 1:
        return join([part])
    _send(part, {peers.hosts.index(host) for host in peers.hosts} - {peers.rank}, peers)

    def joined() -> Rows:
        ranks = range(peers.size)
        return join([part if rank == peers.rank else _unpacked(peers.receive(rank, ROWS)) for rank in ranks])

    return share_rows(joined, peers)


# ---- Memory


class Offer(NamedTuple):
    """Memory of another process: process id, file descriptor and name."""

    pid: int
    fd: int
    name: str


def _in_common(rows: Any, first: int, wanted: bool, peers: Peers) -> tuple[np.ndarray | None, dict[int, str]]:
    """Map the rows of the first process on this host; also return why other ranks could not, by rank."""
    offer: Offer | OSError | None = None
    memory = reason = None
    with ExitStack() as offers:  # until all have mapped it
        if wanted and peers.rank == first:
            try:
                offer = offers.enter_context(_offered(rows))
            except OSError as error:
                offer = error
        offer = peers.gather(offer)[first]
        try:
            memory = None if offer is None else _mapped(offer)
        except OSError as error:
            reason = None if peers.rank == first else str(error)
        reasons = peers.gather(reason)
    lacking = {rank: why for rank, why in enumerate(reasons) if why is not None}
    if lacking and peers.rank == 0:
        ranks, whys = ", ".join(map(str, lacking)), "; ".join(dict.fromkeys(lacking.values()))
        logger.warning("rows are copied to rank %s, because memory cannot be shared (%s)", ranks, whys)
    return memory, lacking


@contextmanager
def _offered(rows: Any) -> Iterator[Offer]:
    name = f"manyclass-{secrets.token_hex(8)}"
    with os.fdopen(_memfd(name), "wb") as file:
        for piece in _pieces(rows):
            file.write(piece)
        file.flush()
        yield Offer(os.getpid(), file.fileno(), name)


def _memfd(name: str) -> int:
    # os lacks memfd_create if Python was built for an old C library, as those of conda and uv are.
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "memfd_create"):
        raise OSError("the C library has no memfd_create")
    fd = libc.memfd_create(name.encode(), MFD_CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


def _mapped(offer: Offer | OSError) -> np.ndarray:
    if isinstance(offer, OSError):
        raise offer
    path = f"/proc/{offer.pid}/fd/{offer.fd}"
    # In another container, the ids belong to other processes, or to none.
    if not os.path.lexists(path) or offer.name not in os.readlink(path):
        raise OSError(f"process {offer.pid} is not visible in /proc; do several containers share a host name?")
    with open(path, "rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


# ---- Rows as bytes


def _pieces(rows: Any) -> Iterator[Any]:
    """Yield the pieces and the padding between them."""
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(rows, protocol=5, buffer_callback=arrays.append)
    pieces = [memoryview(head), *(array.raw() for array in arrays)]
    sizes = np.array([len(pieces), *(piece.nbytes for piece in pieces)], np.int64)
    for piece in (sizes.view(np.uint8).data, *pieces):
        yield piece
        yield bytes(-piece.nbytes % ALIGNED)


def _send(rows: Any, to: Set[int], peers: Peers) -> None:
    if to:
        parcel = np.frombuffer(b"".join(_pieces(rows)), np.uint8)
        for rank in to:
            peers.send(rank, ROWS, parcel)


def _unpacked(memory: np.ndarray) -> Any:
    """Return rows whose arrays are views of the memory."""
    count = int(memory[:8].view(np.int64)[0])
    sizes = [8 * (count + 1), *memory[8 : 8 * (count + 1)].view(np.int64).tolist()]
    ends = np.cumsum([size + -size % ALIGNED for size in sizes]).tolist()
    head, *arrays = (memory[begin : begin + size] for begin, size in zip(ends, sizes[1:], strict=False))
    return pickle.loads(head.data, buffers=arrays)
