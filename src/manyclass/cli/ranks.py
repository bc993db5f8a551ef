"""A command under mpirun: all ranks do the work, and the first one speaks."""

import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import typer

from ..engines import share_rows
from ..estimators.predictor import put_together
from ..model import LinearModel
from ..peers import Alone, Peers, peers_of, share, started_by_mpirun, together, told_rank, told_size
from .output import InputError, explained

Command = TypeVar("Command", bound=Callable[..., None])
Rows = TypeVar("Rows")
# In the name of a file, each rank puts its number here.
PLACE = "{rank}"
# Seconds in which the first rank says what is wrong and leaves, and mpirun ends the others.
PATIENCE = 10.0
# Of click, which typer imports or brings along.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_peers: Peers = Alone()


class Engine(str, Enum):
    """Who trains."""

    auto = "auto"
    memory = "memory"
    disk = "disk"
    joblib = "joblib"
    mpi = "mpi"


def as_one(command: Command) -> Command:
    """Let the ranks that mpirun has started carry out a command together; one of them prints."""

    @functools.wraps(command)
    def everywhere(*args: Any, **kwargs: Any) -> None:
        global _peers
        engine = kwargs.get("engine", Engine.auto)
        by_mpi = engine is Engine.mpi or (engine is Engine.auto and started_by_mpirun())
        with first_speaks():
            _peers = peers_of("mpi") if by_mpi else Alone()
        if _peers.rank > 0:
            be_silent()
        with together(_peers, explained):
            command(*args, **kwargs)

    return everywhere  # type: ignore[return-value]


def alone(command: Command) -> Command:
    """Refuse to carry out a command as often as there are ranks."""

    @functools.wraps(command)
    def once(*args: Any, **kwargs: Any) -> None:
        started = told_size() or 1
        if started > 1:
            with first_speaks():
                raise InputError(
                    f"mpirun has started {started} ranks, and each would do all of {command.__name__}: only train, "
                    f"evaluate and predict divide their work; start {command.__name__} without mpirun"
                )
        command(*args, **kwargs)

    return once  # type: ignore[return-value]


def be_silent() -> None:
    """Print nothing from now on."""
    sys.stdout = sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


@contextmanager
def first_speaks() -> Iterator[None]:
    """Let the first rank say what is wrong for all, before they have met.

    The others wait for their end, and speak if it does not come: they may be the only ones with something to say.
    """
    try:
        yield
    except (UsageError, InputError, ImportError):
        if told_rank() > 0 and _peers.size == 1:
            time.sleep(PATIENCE)
        raise


def peers() -> Peers:
    """The ranks that carry out the command."""
    return _peers


def threads(jobs: int | None) -> int | None:
    """How many threads this rank has: what was asked for, or its part of the cores."""
    return getattr(_peers, "threads", None) if jobs is None else jobs


def own_file(path: str) -> str:
    """The file that this rank reads: the same for all, or with `{rank}` in its name one each."""
    if _peers.size == 1:
        return path
    if path == "-":
        raise InputError("standard input reaches the first rank only; pass a file that all ranks can read")
    beyond = path.replace(PLACE, str(_peers.size))
    if PLACE in path and Path(beyond).exists():
        raise InputError(f"{beyond} has no rank to read it; start as many ranks as there are files")
    return path.replace(PLACE, str(_peers.rank))


def one_each(path: str) -> bool:
    """Whether the ranks read different files."""
    return _peers.size > 1 and PLACE in path


def read_rows(read: Callable[[], Rows], *, divided: bool) -> Rows:
    """What this rank reads itself if files are divided, and else the first one on its host for all there."""
    return read() if divided else share_rows(read, _peers)


def topk(model: LinearModel, X: Any, k: int, *, jobs: int | None) -> np.ndarray:
    """The classes with the largest scores of rows that all ranks have: each scores some of them."""
    (best,) = in_shares(lambda part: model.topk(part, k, n_jobs=jobs)[:1], X)
    return best


def in_shares(find: Callable[[Any], tuple[Any, ...]], X: Any) -> tuple[Any, ...]:
    """What `find` gives for rows that all ranks have: each asks for some of them."""
    first, last = share(X.shape[0], _peers)
    return gathered(find(X[first:last]))


def gathered(mine: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arrays of all ranks, those of the first one first."""
    return tuple(put_together(column) for column in zip(*_peers.gather(mine), strict=True))
