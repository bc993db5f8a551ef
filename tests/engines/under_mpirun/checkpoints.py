"""Checkpoints written by several ranks, and fits that resume from them."""

import shutil
import warnings
from contextlib import nullcontext
from unittest.mock import patch

from manyclass.engines import CheckpointFolder
from manyclass.peers import peers_of
from manyclass.solvers import CoupledRows, L2Blocks, Leagues, coupled_rows, l2_blocks

from .fits import digest, files_of_at_most, fit, uneven


class Crash(BaseException):
    """Ends a fit without a certificate or a last checkpoint."""


STOPPED = {
    (loss, solver, pieces): f"{loss}-{solver}-{pieces}"
    for loss, solver, stops in (
        ("ww", "leagues", (1, 5, 8, 19)),
        ("cs", "auto", (2, 7)),
        ("ovo_hinge", "auto", (2,)),
        ("ppd_hinge", "auto", (1,)),
    )
    for pieces in stops
}


def fit_with_checkpoints(loss, solver, engine, folder, every=0, **parameters):
    # Small pieces of work, so that many end in the middle of a pass.
    with (
        patch.object(coupled_rows, "WORK_AT_ONCE", 2e4),
        patch.object(l2_blocks, "BLOCKS_A_THREAD", 1),
        patch.object(l2_blocks, "SECONDS_AT_ONCE", 0.0),
    ):
        X, y = uneven()
        given = {"checkpoint": folder, "every": every} if folder else {}
        given |= {"leagues": 7} if solver == "leagues" else {}
        return fit(loss, engine, X, y, solver=solver, dtype="float64", **given, **parameters)


def leave_checkpoints(folder, engine):
    """Stop fits after some pieces of work, with a checkpoint after each."""
    for (loss, solver, pieces), name in STOPPED.items():
        kind = {"leagues": Leagues}.get(solver, CoupledRows if loss == "cs" else L2Blocks)
        left, plain = [pieces], kind.advance

        def advance(self, rule, left=left, plain=plain):
            if left[0] == 0:
                raise Crash
            left[0] -= 1
            return plain(self, rule)

        with patch.object(kind, "advance", advance):
            try:
                fit_with_checkpoints(loss, solver, engine, folder / name)
            except Crash:
                continue
        raise AssertionError(f"{name}: the fit ended before it was stopped")


def resume_all(folder, copy, engine):
    """Resume from all these checkpoints, in a copy of the folder."""
    peers = peers_of(engine)
    if peers.rank == 0:
        shutil.copytree(folder, copy)
    peers.gather(None)
    return {
        name: digest(fit_with_checkpoints(loss, solver, engine, copy / name, every=600, resume=True))
        for (loss, solver, _), name in STOPPED.items()
    }


def whole_fits(engine):
    return {
        name: digest(fit_with_checkpoints(loss, solver, engine, None)) for (loss, solver, _), name in STOPPED.items()
    }


def closer_targets(engine, folder):
    """Resume from the checkpoint of a complete fit with a smaller tol: some of its blocks meet it, others do not."""
    found = {}
    for loss in ("hinge", "ppd_hinge"):
        fit_with_checkpoints(loss, "auto", engine, folder / loss, tol=0.1)
        found[loss] = digest(fit_with_checkpoints(loss, "auto", engine, folder / loss, resume=True, tol=0.01))
    return found


def one_disk_fills_up(folder, engine):
    """Let the last rank fail to write from the third checkpoint on; return this rank's warnings and the model."""
    peers, plain = peers_of(engine), CheckpointFolder.write_part

    def write_part(self, generation, rank, tensors):
        with files_of_at_most(1000) if generation > 2 and rank == peers.size - 1 else nullcontext():
            return plain(self, generation, rank, tensors)

    with patch.object(CheckpointFolder, "write_part", write_part):
        return warnings_and_model(folder, engine)


def warnings_and_model(folder, engine):
    """Fit with a checkpoint after each piece of work."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fitted = fit_with_checkpoints("ww", "leagues", engine, folder, tol=0.1)
    return [str(entry.message) for entry in seen], digest(fitted)
