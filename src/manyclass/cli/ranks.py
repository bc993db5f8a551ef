"""Commands under mpirun: all ranks do the work, and the first one prints."""

import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import typer

from ..engines import share_rows
from ..estimators.predictor import put_together
from ..model import LinearModel
from ..peers import Peers, peers_of, started_by_mpirun, told_rank, told_size
from .output import InputError, explained, log_to_stderr

Command = TypeVar("Command", bound=Callable[..., None])
Rows = TypeVar("Rows")
# Placeholder for the rank in the name of a file.
PLACE = "{rank}"
# Seconds for the first rank to report an error and exit, whereupon mpirun ends the others.
PATIENCE = 10.0
# Defined by click, which typer imports or includes.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_peers: Peers = Peers()


def as_one(command: Command) -> Command:
    """Run a command on all ranks of mpirun together; only the first prints."""

    @functools.wraps(command)
    def everywhere(*args: Any, **kwargs: Any) -> None:
        global _peers
        engine = kwargs.get("engine", "auto")
        by_mpi = engine == "mpi" or (engine == "auto" and started_by_mpirun())
        with first_speaks():
            _peers = peers_of("mpi") if by_mpi else Peers()
        if _peers.rank > 0:
            be_silent()
        log_to_stderr(quiet=kwargs.get("quiet", True))
        with _peers.all_or_none(explained):
            command(*args, **kwargs)

    return everywhere  # type: ignore[return-value]


def alone(command: Command) -> Command:
    """Reject running a command on several ranks."""

    @functools.wraps(command)
    def once(*args: Any, **kwargs: Any) -> None:
        started = told_size() or 1
        if started > 1:
            with first_speaks():
                raise InputError(
                    f"mpirun has started {started} ranks, and each would do all of {command.__name__}; only train, "
                    f"evaluate and predict divide their work. Start {command.__name__} without mpirun"
                )
        log_to_stderr(quiet=kwargs.get("quiet", True))
        command(*args, **kwargs)

    return once  # type: ignore[return-value]


def be_silent() -> None:
    """Print nothing from now on."""
    sys.stdout = sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


@contextmanager
def first_speaks() -> Iterator[None]:
    """Let only the first rank report an error that occurs before the ranks are connected.

    The others wait to be ended. If that does not happen, they report the error, which may be theirs alone.
    """
    try:
        yield
    except (UsageError, InputError, ImportError):
        if told_rank() > 0 and _peers.size == 1:
            time.sleep(PATIENCE)
        raise


def peers() -> Peers:
    """Return the ranks that run the command."""
    return _peers


def threads(jobs: int | None) -> int | None:
    """Return the number of threads of this rank: what was asked for, or its share of the cores."""
    return _peers.threads if jobs is None else jobs


def own_file(path: str) -> str:
    """Return the file that this rank reads: its own if the name contains `{rank}`, else the same for all."""
    if _peers.size == 1:
        return path
    if path == "-":
        raise InputError("standard input reaches only the first rank; pass a file that all ranks can read")
    beyond = path.replace(PLACE, str(_peers.size))
    if PLACE in path and Path(beyond).exists():
        raise InputError(f"{beyond} has no rank to read it; start as many ranks as there are files")
    return path.replace(PLACE, str(_peers.rank))


def one_each(path: str) -> bool:
    """Whether the ranks read different files."""
    return _peers.size > 1 and PLACE in path


def read_rows(read: Callable[[], Rows], *, divided: bool) -> Rows:
    """Read the file of this rank if files are divided; else let one rank per host read for all there."""
    return read() if divided else share_rows(read, _peers)


def topk(model: LinearModel, X: Any, k: int, *, jobs: int | None) -> np.ndarray:
    """Find the k best classes of rows that all ranks have; each rank scores some of them."""
    (best,) = in_shares(lambda part: model.topk(part, k, n_jobs=jobs)[:1], X)
    return best


def in_shares(find: Callable[[Any], tuple[Any, ...]], X: Any) -> tuple[Any, ...]:
    """Return what `find` returns for rows that all ranks have; each rank calls it for some of them."""
    first, last = _peers.own_range(X.shape[0])
    return gathered(find(X[first:last]))


def gathered(mine: tuple[Any, ...]) -> tuple[Any, ...]:
    """Join the arrays of all ranks, in the order of the ranks."""
    return tuple(put_together(column) for column in zip(*_peers.gather(mine), strict=True))
