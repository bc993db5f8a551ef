"""When a fit leaves a checkpoint, what is in it besides the solver, and whether a fit may go on from one."""

import logging
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from .._native import isa
from ..data.json_content import as_declared
from ..solvers import Peers, Progress, Solver
from .checkpoint import CheckpointError, CheckpointFolder
from .fingerprint import differences

logger = logging.getLogger("manyclass")


@dataclass(frozen=True)
class CheckpointPlan:
    """What a fit should do about checkpoints.

    Attributes
    ----------
    folder : str or path-like
        Where they are.
    every : float
        Seconds from one to the next.
    resume : bool
        Go on from the one that is there.
    """

    folder: str | os.PathLike[str]
    every: float = 600.0
    resume: bool = False


@dataclass(frozen=True)
class Info:
    """What a checkpoint says besides the arrays of the solver."""

    fingerprint: dict[str, Any]
    build: str
    history: list[dict[str, Any]]
    seconds: float
    phases: dict[str, float]


@dataclass(frozen=True)
class Saved:
    """What a fit resumes from.

    Attributes
    ----------
    source : str
        The folder and the generation, for messages.
    parts : list of dict of ndarray
        What the solver of each rank has left.
    info : Info
    """

    source: str
    parts: list[dict[str, np.ndarray]]
    info: Info

    def restore(self, work: Solver) -> Progress:
        """Bring a solver to where it was.

        Raises
        ------
        CheckpointError
            If the arrays are not such as it has written.
        """
        try:
            progress = work.restore(self.parts)
        except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise CheckpointError(
                f"{self.source} does not fit the problem that it is of ({reason}); remove the folder to start again"
            ) from error
        self.parts.clear()  # of files in memory, which may be removed before the fit ends
        return progress


class Recorder:
    """Writes the checkpoints of a fit.

    Parameters
    ----------
    plan : CheckpointPlan
    fingerprint : dict
        Of the fit; a checkpoint with another one is refused.
    peers : Peers
        Each writes its part, the first one the rest.
    """

    def __init__(self, plan: CheckpointPlan, fingerprint: dict[str, Any], peers: Peers):
        self._plan, self._fingerprint, self._peers = plan, fingerprint, peers
        self._folder = CheckpointFolder(plan.folder)
        self._build = f"{isa} of manyclass {version('manyclass')}"
        self._last = time.monotonic()
        self._warned = False

    def start(self) -> Saved | None:
        """Look at the folder before anything is done.

        Returns
        -------
        Saved or None
            What to go on from; None to start at the beginning.

        Raises
        ------
        ValueError
            If there is a checkpoint that was not asked for, of another problem, or that is damaged.
        """
        path = self._folder.path
        if path.exists() and not path.is_dir():
            raise CheckpointError(f"{path} is a file; name a folder for the checkpoints")
        if not self._plan.resume:
            if self._folder.generations():
                raise CheckpointError(
                    f"{path} holds a checkpoint; pass resume=True to go on from it, or remove the folder to start "
                    "again"
                )
            return None
        stored = self._folder.read()
        found = self._peers.gather(stored and stored.generation)
        if len(set(found)) > 1:
            raise CheckpointError(
                f"{path} is not the same folder for all ranks: their last checkpoints are {found}; choose one that "
                "all hosts share"
            )
        if stored is None:
            logger.info("%s holds no checkpoint yet; starting at the beginning", path)
            return None
        source = f"{path}: checkpoint {stored.generation}"
        try:
            info = as_declared(Info, stored.info)
        except ValueError as error:
            raise CheckpointError(f"{source} is damaged ({error}); remove the folder to start again") from error
        differ = differences(info.fingerprint, self._fingerprint)
        if differ:
            raise CheckpointError(
                f"{path} holds the checkpoint of another problem: {', '.join(differ)}; go on with what it was begun "
                "with, or name another folder"
            )
        if info.build != self._build:
            warnings.warn(
                f"{path}: the checkpoint is by {info.build}, this is {self._build}: the fit goes on, but bits may "
                "differ from those of a fit that was not stopped",
                RuntimeWarning,
                stacklevel=2,
            )
        logger.info("going on from checkpoint %d in %s", stored.generation, path)
        return Saved(source, stored.parts, info)

    def due(self) -> bool:
        """Whether it is time for the next one."""
        return time.monotonic() - self._last >= self._plan.every

    def write(self, work: Solver, history: list[dict[str, Any]], seconds: float, phases: dict[str, float]) -> None:
        """Write a checkpoint, or warn if that fails: training goes on in any case."""
        info = asdict(Info(self._fingerprint, self._build, history, seconds, phases))
        generation, *_ = self._peers.gather(self._try(self._folder.next_generation))
        failure = generation if isinstance(generation, OSError) else None
        if failure is None:
            arrays = work.checkpoint()
            part = self._try(self._folder.write_part, generation, self._peers.rank, arrays) if arrays else None
            parts = [part for part in self._peers.gather(part) if part is not None]
            failure = next((part for part in parts if isinstance(part, OSError)), None)
            if self._peers.rank == 0:
                if failure is None:
                    failure = self._try(self._folder.commit, generation, parts, info)
                if failure is not None:
                    self._folder.discard(generation)
        if failure is not None and self._peers.rank == 0:
            self._warn(failure)
        self._last = time.monotonic()

    @staticmethod
    def _try(action: Callable[..., Any], *given: Any) -> Any:
        """What the action gives, or why the system refused it."""
        try:
            return action(*given)
        except OSError as error:
            return error

    def _warn(self, failure: OSError) -> None:
        message = f"no checkpoint could be written to {self._folder.path} ({failure.strerror or failure})"
        if self._warned:
            logger.info("%s", message)
        else:
            warnings.warn(
                f"{message}; training goes on, and tries again every {self._plan.every:g} seconds",
                RuntimeWarning,
                stacklevel=5,
            )
        self._warned = True
