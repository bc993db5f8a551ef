"""Where train writes a model, and what it goes on from."""

import logging
import os
from pathlib import Path

import typer

from ..engines import holds_checkpoint
from ..model import LinearModel, save_model
from . import ranks
from .output import InputError

logger = logging.getLogger("manyclass.cli")


def check_target(target: Path, shards: bool) -> None:
    """Refuse a place that cannot be written to."""
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"{target}: there is no folder {folder}; make it first")
    if (target.is_dir() and not shards) or not os.access(folder, os.W_OK):
        raise InputError(f"{target}: cannot be written; choose another place with --model")


def check_checkpoint(folder: Path | None, every: float | None, resume: bool) -> None:
    """Refuse a folder that cannot be meant, and say what the fit goes on from."""
    if folder is None:
        for given, name in ((every is not None, "--every"), (resume, "--resume")):
            if given:
                raise typer.BadParameter("it needs the folder of --checkpoint", param_hint=name)
        return
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder with --checkpoint")
    there = holds_checkpoint(folder)
    if there and not resume:
        raise InputError(f"{folder} holds a checkpoint; go on from it with --resume, or remove it to start again")
    if resume:
        logger.info("going on from %s" if there else "%s holds no checkpoint yet; starting at the beginning", folder)


def save(model: LinearModel, target: Path, shards: bool) -> None:
    """Write the model: the first rank all of it, or each its shard."""
    together = shards and ranks.peers().size > 1
    if together or ranks.peers().rank == 0:
        save_model(model, target, engine="mpi" if together else "memory")
