"""Where train writes its model, and what it resumes from."""

import itertools
import logging
import os
from enum import Enum
from pathlib import Path

import typer

from ..engines import holds_checkpoint
from ..model import LinearModel, save_model
from ..model.shards import holds_shards
from ..problems import LOSSES
from . import ranks
from .fitting import trains_in_batches
from .output import InputError
from .replacing import Former, check_model_file, former, refuse_inputs
from .train_options import Checkpoints, Cluster, Objective

logger = logging.getLogger("manyclass.cli")


class Writing(Enum):
    """How a model is written."""

    WHOLE = "a file, written by the first rank"
    BY_RANKS = "a folder with one shard per rank, written after training"
    WHILE_TRAINED = "a folder of shards, written during training"


def way_of_writing(objective: Objective, checkpoints: Checkpoints, cluster: Cluster) -> Writing:
    """Return what `--shards` means for a loss; reject options that it cannot be combined with."""
    if not cluster.shards:
        return Writing.WHOLE
    if not objective.trains_in_batches():
        if ranks.peers().size == 1:
            able = [loss for loss in LOSSES if trains_in_batches(loss, None)]
            raise typer.BadParameter(
                f"--loss {objective.loss} cannot write shards during training, so --shards needs several ranks of "
                f"mpirun; only {', '.join(able)}, and squared_hinge with --drop, write them during training",
                param_hint="--shards",
            )
        return Writing.BY_RANKS
    if checkpoints.checkpoint is not None:
        why = "the shards of a stopped fit remain, and --resume continues from them; omit --checkpoint or --shards"
        raise typer.BadParameter(why, param_hint="--checkpoint")
    if objective.calibrate != "none":
        why = "probabilities are fitted after training, when the shards are already written"
        raise typer.BadParameter(f"{why}; omit --calibrate or --shards", param_hint="--calibrate")
    if cluster.engine == "joblib":
        why = "the workers of joblib do not write shards; omit --engine, or use mpirun"
        raise typer.BadParameter(why, param_hint="--engine")
    return Writing.WHILE_TRAINED


class Destination:
    """Where train writes its model.

    An existing model is replaced if the new fit has converged, if the existing one is unfinished and the new fit was
    resumed from a checkpoint, or with `--force`. Otherwise it is kept, and the new one is written next to it. `path`,
    `replaced` and `kept` say what happened, once the model is saved.
    """

    def __init__(self, target: Path, writing: Writing, data: str, *, resumed: bool, force: bool):
        self.path = self._target = target
        self.writing, self._resumed, self._force = writing, resumed, force
        self.replaced: Former | None = None
        self.kept: Former | None = None
        self._settled = writing is Writing.WHILE_TRAINED
        if ranks.peers().rank == 0:
            refuse_inputs(target, [data], "--model")
            _check_place(target, writing, force)
        if self._settled and force and (there := former(target)) is not None and there.certificate is not None:
            self.replaced = there

    def save(self, model: LinearModel) -> None:
        """Write what is not yet written: the first rank writes the whole model, or each rank its shard."""
        if not self._settled:
            choice = self._choose(model.certificate["exit_reason"] == "converged")
            self.path, self.replaced, self.kept = ranks.peers().gather(choice)[0]
            self._settled = True
        if self.writing is Writing.BY_RANKS:
            save_model(model, self.path, engine="mpi")
        elif self.writing is Writing.WHOLE and ranks.peers().rank == 0:
            save_model(model, self.path)

    def _choose(self, converged: bool) -> tuple[Path, Former | None, Former | None]:
        there = former(self._target)
        if there is None or self._force:
            return self._target, there, None
        is_model = there.certificate is not None
        if is_model and (converged or (self._resumed and not there.converged)):
            return self._target, there, None
        return beside(self._target, "new" if converged else "unfinished"), None, there


def beside(target: Path, what: str = "unfinished") -> Path:
    """Return an unused path next to `target`."""
    marks = itertools.chain([what], (f"{what}-{number}" for number in itertools.count(2)))
    paths = (target.with_name(f"{target.stem}.{mark}{target.suffix}") for mark in marks)
    return next(path for path in paths if not os.path.lexists(path))


def _check_place(target: Path, writing: Writing, force: bool) -> None:
    """Reject, before the fit, a place that cannot be written to or that holds something other than a model."""
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"{target}: there is no folder {folder}; create it first")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{target}: cannot be written; choose another path with --model")
    if writing is Writing.WHOLE:
        check_model_file(target, force=force, option="--model")
    elif target.exists() and not holds_shards(target):
        # A killed process may leave hidden files behind.
        if target.is_dir() and all(path.name.startswith(".") for path in target.iterdir()):
            return
        what = "holds files other than shards" if target.is_dir() else "is a file"
        raise InputError(f"{target} {what}; choose another folder for the shards with --model")


def check_shards(folder: Path, *, resume: bool, force: bool) -> None:
    """Reject existing shards without `--resume` or `--force`, and report what the fit resumes from."""
    there = holds_shards(folder)
    if there and not (resume or force):
        raise InputError(f"{folder} holds shards; resume from them with --resume, or replace them with --force")
    if resume:
        _say_what_is_there(folder, "shards", there)


def check_checkpoint(checkpoints: Checkpoints, writing: Writing) -> bool:
    """Reject a folder that cannot be used, and return whether the fit is resumed from a checkpoint in it."""
    folder, resume = checkpoints.checkpoint, checkpoints.resume
    if folder is None:
        if checkpoints.every is not None:
            raise typer.BadParameter("it needs a folder given by --checkpoint", param_hint="--every")
        if resume and writing is not Writing.WHILE_TRAINED:
            raise typer.BadParameter(
                "it needs a folder given by --checkpoint, or --shards with a loss that writes them during training",
                param_hint="--resume",
            )
        return False
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; pass a folder to --checkpoint")
    there = holds_checkpoint(folder)
    if there and not resume:
        raise InputError(f"{folder} holds a checkpoint; resume from it with --resume, or remove it to start again")
    if resume:
        _say_what_is_there(folder, "checkpoint", there)
    return there and resume


def _say_what_is_there(folder: Path, what: str, there: bool) -> None:
    if there:
        logger.info("resuming from %s", folder)
    else:
        logger.info("%s holds no %s yet; starting from the beginning", folder, what)
