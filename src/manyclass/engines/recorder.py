"""When a fit leaves a checkpoint, what is in it besides the solver, and whether a fit may go on from one."""

import logging
import os
import time
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from .._native import isa
from ..solvers import Solver
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
class Saved:
    """What a fit goes on from."""

    arrays: dict[str, np.ndarray]
    history: list[dict[str, Any]]
    seconds: float
    phases: dict[str, float]


class Recorder:
    """Writes the checkpoints of a fit.

    Parameters
    ----------
    plan : CheckpointPlan
    fingerprint : dict
        Of the fit; a checkpoint with another one is refused.
    """

    def __init__(self, plan: CheckpointPlan, fingerprint: dict[str, Any]):
        self._plan, self._fingerprint = plan, fingerprint
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
        if stored is None:
            logger.info("%s holds no checkpoint yet; starting at the beginning", path)
            return None
        info = stored.info
        differ = differences(info["fingerprint"], self._fingerprint)
        if differ:
            raise CheckpointError(
                f"{path} holds the checkpoint of another problem: {', '.join(differ)}; go on with what it was begun "
                "with, or name another folder"
            )
        if info["build"] != self._build:
            warnings.warn(
                f"{path}: the checkpoint is by {info['build']}, this is {self._build}: the fit goes on, but bits may "
                "differ from those of a fit that was not stopped",
                RuntimeWarning,
                stacklevel=2,
            )
        [arrays] = stored.parts
        logger.info("going on from checkpoint %d in %s", stored.generation, path)
        return Saved(arrays, info["history"], info["seconds"], info["phases"])

    def due(self) -> bool:
        """Whether it is time for the next one."""
        return time.monotonic() - self._last >= self._plan.every

    def write(self, work: Solver, history: list[dict[str, Any]], seconds: float, phases: dict[str, float]) -> None:
        """Write a checkpoint, or warn if that fails: training goes on in any case."""
        info = {
            "fingerprint": self._fingerprint,
            "build": self._build,
            "history": history,
            "seconds": seconds,
            "phases": phases,
        }
        generation = None
        try:
            generation = self._folder.next_generation()
            part = self._folder.write_part(generation, 0, work.checkpoint())
            self._folder.commit(generation, [part], info)
        except OSError as error:
            if generation is not None:
                self._folder.discard(generation)
            message = f"no checkpoint could be written to {self._folder.path} ({error.strerror or error})"
            if self._warned:
                logger.info("%s", message)
            else:
                warnings.warn(
                    f"{message}; training goes on, and tries again every {self._plan.every:g} seconds",
                    RuntimeWarning,
                    stacklevel=3,
                )
            self._warned = True
        self._last = time.monotonic()
