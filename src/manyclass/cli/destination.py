"""Where train writes a model, and what it goes on from."""

import logging
import os
from enum import Enum
from pathlib import Path

import typer

from ..engines import holds_checkpoint
from ..model import LinearModel, save_model
from ..model.shards import holds_shards
from . import ranks
from .fitting import Loss, trains_in_batches
from .options import Calibrate
from .output import InputError
from .ranks import Engine

logger = logging.getLogger("manyclass.cli")


class Writing(Enum):
    """How a model is written."""

    WHOLE = "a file, by the first rank"
    BY_RANKS = "a folder, in which each rank writes a shard when the model is trained"
    WHILE_TRAINED = "a folder, shard by shard while the model is trained"


def way_of_writing(
    shards: bool,
    loss: Loss,
    drop: float | None,
    *,
    checkpoint: Path | None,
    calibrate: Calibrate,
    engine: Engine,
) -> Writing:
    """What `--shards` means for a loss; refuse what does not go with it."""
    if not shards:
        return Writing.WHOLE
    if not trains_in_batches(loss, drop):
        if ranks.peers().size == 1:
            able = [one.value for one in Loss if trains_in_batches(one, None)]
            raise typer.BadParameter(
                f"--loss {loss.value} is trained as a whole, and written in shards only by several ranks of mpirun; "
                f"{', '.join(able)} and squared_hinge with --drop are written while they are trained",
                param_hint="--shards",
            )
        return Writing.BY_RANKS
    if checkpoint is not None:
        raise typer.BadParameter(
            f"shards of --loss {loss.value} stay when it is stopped, and --resume goes on from them; leave out one "
            "of --checkpoint and --shards",
            param_hint="--checkpoint",
        )
    if calibrate is not Calibrate.none:
        raise typer.BadParameter(
            "probabilities come after the fit, when shards are written already; leave out one of --calibrate and "
            "--shards",
            param_hint="--calibrate",
        )
    if engine is Engine.joblib:
        raise typer.BadParameter(
            "the workers of joblib write no shards; leave it out, or use mpirun", param_hint="--engine"
        )
    return Writing.WHILE_TRAINED


def check_target(target: Path, writing: Writing, resume: bool) -> None:
    """Refuse a place that cannot be written to, and say which shards the fit goes on from."""
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"{target}: there is no folder {folder}; make it first")
    if (target.is_dir() and writing is Writing.WHOLE) or not os.access(folder, os.W_OK):
        raise InputError(f"{target}: cannot be written; choose another place with --model")
    if writing is Writing.WHILE_TRAINED:
        _check_shards(target, resume)


def _check_shards(folder: Path, resume: bool) -> None:
    there = holds_shards(folder)
    if folder.exists() and not there and (not folder.is_dir() or _holds_files(folder)):
        what = "holds other things than shards" if folder.is_dir() else "is a file"
        raise InputError(f"{folder} {what}; choose another folder for the shards with --model")
    if there and not resume:
        raise InputError(f"{folder} holds shards; go on from them with --resume, or remove it to start again")
    if resume:
        _say_what_is_there(folder, "shards", there)


def _holds_files(folder: Path) -> bool:
    """Whether there is anything but hidden files, which a process that was killed may have left half written."""
    return any(not path.name.startswith(".") for path in folder.iterdir())


def check_checkpoint(folder: Path | None, every: float | None, resume: bool, writing: Writing) -> None:
    """Refuse a folder that cannot be meant, and say which checkpoint the fit goes on from."""
    if folder is None:
        if every is not None:
            raise typer.BadParameter("it needs the folder of --checkpoint", param_hint="--every")
        if resume and writing is not Writing.WHILE_TRAINED:
            raise typer.BadParameter(
                "it needs the folder of --checkpoint, or --shards where they are written while the model is trained",
                param_hint="--resume",
            )
        return
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder with --checkpoint")
    there = holds_checkpoint(folder)
    if there and not resume:
        raise InputError(f"{folder} holds a checkpoint; go on from it with --resume, or remove it to start again")
    if resume:
        _say_what_is_there(folder, "checkpoint", there)


def _say_what_is_there(folder: Path, what: str, there: bool) -> None:
    if there:
        logger.info("going on from %s", folder)
    else:
        logger.info("%s holds no %s yet; starting at the beginning", folder, what)


def save(model: LinearModel, target: Path, writing: Writing) -> None:
    """Write what is not written yet: the first rank all of the model, or each its shard."""
    if writing is Writing.BY_RANKS:
        save_model(model, target, engine="mpi")
    elif writing is Writing.WHOLE and ranks.peers().rank == 0:
        save_model(model, target)
