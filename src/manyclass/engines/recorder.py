"""Writing checkpoints of a fit, and checking whether a fit can resume from one."""

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
from ..peers import Peers
from ..solvers import Progress, Solver
from .checkpoint import CheckpointError, CheckpointFolder
from .fingerprint import differences

logger = logging.getLogger("manyclass")


@dataclass(frozen=True)
class CheckpointPlan:
    """Where to write checkpoints, the seconds between them, and whether to resume from the one in the folder."""

    folder: str | os.PathLike[str]
    every: float = 600.0
    resume: bool = False


@dataclass(frozen=True)
class Info:
    """Contents of a checkpoint other than the solver's arrays."""

    fingerprint: dict[str, Any]
    build: str
    history: list[dict[str, Any]]
    seconds: float
    phases: dict[str, float]


@dataclass(frozen=True)
class Saved:
    """A checkpoint to resume from."""

    source: str  # folder and generation, for messages
    parts: list[dict[str, np.ndarray]]  # the solver's arrays of each rank
    info: Info

    def restore(self, work: Solver) -> Progress:
        """Restore the solver from the checkpoint; raise CheckpointError if the arrays do not fit the problem."""
        try:
            progress = work.restore(self.parts)
        except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise CheckpointError(
                f"{self.source} does not fit the problem it was written for ({reason}); remove the folder to "
                "start again"
            ) from error
        self.parts.clear()  # release the mapped files, which may be removed before the fit ends
        return progress


class Recorder:
    """Write the checkpoints of a fit: each process its own part, and rank 0 the manifest.

    A checkpoint with another fingerprint is rejected.
    """

    def __init__(self, plan: CheckpointPlan, fingerprint: dict[str, Any], peers: Peers):
        self._plan, self._fingerprint, self._peers = plan, fingerprint, peers
        self._folder = CheckpointFolder(plan.folder)
        self._build = f"{isa} of manyclass {version('manyclass')}"
        self._last = time.monotonic()
        self._warned = False

    def start(self) -> Saved | None:
        """Return the checkpoint to resume from, or None to start from the beginning.

        Raise CheckpointError if the folder holds a checkpoint and `resume` is false, or if the checkpoint is damaged
        or belongs to another problem.
        """
        path = self._folder.path
        if path.exists() and not path.is_dir():
            raise CheckpointError(f"{path} is a file; choose a folder for the checkpoints")
        if not self._plan.resume:
            if self._folder.generations():
                raise CheckpointError(
                    f"{path} holds a checkpoint; pass resume=True to resume from it, or remove the folder to start "
                    "again"
                )
            return None
        stored = self._folder.read()
        found = self._peers.gather(stored and stored.generation)
        if len(set(found)) > 1:
            raise CheckpointError(
                f"{path} is not the same folder on all ranks: their last checkpoints are {found}; choose a folder "
                "that all hosts share"
            )
        if stored is None:
            logger.info("%s holds no checkpoint yet; starting from the beginning", path)
            return None
        source = f"{path}: checkpoint {stored.generation}"
        try:
            info = as_declared(Info, stored.info)
        except ValueError as error:
            raise CheckpointError(f"{source} is damaged ({error}); remove the folder to start again") from error
        differ = differences(info.fingerprint, self._fingerprint)
        if differ:
            raise CheckpointError(
                f"{path} holds the checkpoint of another problem: {', '.join(differ)}; resume with the original "
                "data and parameters, or choose another folder"
            )
        if info.build != self._build:
            warnings.warn(
                f"{path}: the checkpoint was written by {info.build}, this is {self._build}: the fit resumes, but "
                "its last bits may differ from those of an uninterrupted fit",
                RuntimeWarning,
                stacklevel=2,
            )
        logger.info("resuming from checkpoint %d in %s", stored.generation, path)
        return Saved(source, stored.parts, info)

    def due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return time.monotonic() - self._last >= self._plan.every

    def write(self, work: Solver, history: list[dict[str, Any]], seconds: float, phases: dict[str, float]) -> None:
        """Write a checkpoint. If that fails, warn and let training continue."""
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
        """Return the action's result, or the OSError it raised."""
        try:
            return action(*given)
        except OSError as error:
            return error

    def _warn(self, failure: OSError) -> None:
        message = f"could not write a checkpoint to {self._folder.path} ({failure.strerror or failure})"
        if self._warned:
            logger.info("%s", message)
        else:
            warnings.warn(
                f"{message}; training continues and retries every {self._plan.every:g} seconds",
                RuntimeWarning,
                stacklevel=5,
            )
        self._warned = True
