"""Actions of all ranks: `mpirun -n 4 python -m under_mpirun ACTION FOLDER ...`."""

import json
import os
import pathlib
import shutil
import sys
from unittest.mock import patch

import numpy as np
from losses import text_like

from manyclass.engines import CheckpointFolder
from manyclass.peers import MPIEngine, mpi, peers_of
from manyclass.solvers import Leagues

from .checkpoints import (
    closer_targets,
    fit_with_checkpoints,
    leave_checkpoints,
    one_disk_fills_up,
    resume_all,
    warnings_and_model,
)
from .exchanges import a_late_rank, in_pieces, messages_of_a_different_rank, numbers_of_all
from .fits import all_fits, digest, fit, shards_in_common, uneven
from .rows import copied_rows, parts_in_common, parts_on_two_hosts, rows_in_common, rows_that_cannot_be_read


def everything(folder):
    """Train in groups of one to four ranks; three ranks leave the checkpoints from which all groups resume."""
    from mpi4py import MPI

    world = peers_of("mpi")
    everyone = {}
    for sizes in ((3, 3, 3, 1), (2, 2, 0, 0), (4, 4, 4, 4)):  # size of the group of each rank
        size = sizes[world.rank]
        engine = MPIEngine(MPI.COMM_WORLD.Split(size, world.rank))
        found = by_a_group(folder, engine) if size else {}
        if size == 3:
            leave_checkpoints(folder / "stopped", engine)
        world.gather(None)
        if size:
            found["resumed"] = resume_all(folder / "stopped", folder / f"resumed-{size}", engine)
        for group, of_rank in zip(sizes, world.gather(found), strict=True):
            everyone.setdefault(group, []).append(of_rank)
    if world.rank == 0:
        (folder / "found.json").write_text(json.dumps(everyone))


def by_a_group(folder, engine):
    peers = engine.peers()
    nothing_to_do = {"checkpoint": folder / f"few-{peers.size}", "every": 0}  # for most ranks
    return {
        "fits": all_fits(engine),
        "pieces": in_pieces(engine),
        "numbers": numbers_of_all(engine),
        "late": a_late_rank(folder / f"late-{peers.size}", engine),
        "closer": closer_targets(engine, folder / f"closer-{peers.size}"),
        "threads": peers.threads,
        "different": messages_of_a_different_rank(engine),
        "shards": shards_in_common(folder / f"shards-{peers.size}", engine),
        "rows": rows_in_common(engine),
        "parts": parts_in_common(engine),
        "parts on two hosts": parts_on_two_hosts(engine),
        "unreadable": rows_that_cannot_be_read(engine),
        "copied": copied_rows(engine),
        "full disk": one_disk_fills_up(folder / f"full-{peers.size}", engine),
        "few": digest(fit("ww", engine, *text_like(60, 30, 3), solver="leagues", **nothing_to_do)),
    }


def small_disk(folder):
    """Train on a disk that another file fills up after the second checkpoint."""
    disk, peers, plain = folder / "disk", peers_of("mpi"), CheckpointFolder.commit

    def commit(self, generation, parts, info):
        plain(self, generation, parts, info)
        if generation == 2:
            fill(disk / "ballast", leave=4096)

    with patch.object(CheckpointFolder, "commit", commit):
        found = warnings_and_model(disk / "c", "mpi")
    found = peers.gather(found)
    if peers.rank == 0:
        shutil.copytree(disk / "c", folder / "c")
        (folder / "found.json").write_text(json.dumps(found))


def fill(path, leave):
    """Write a file until only this many bytes are free."""
    with open(path, "wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(1000))
        except OSError:
            out.truncate(out.tell() - leave)


def raises(folder, where):
    """Let the last rank raise before the fit, while the other gathers, or during it, while the other receives."""
    peers = peers_of("mpi")
    X, y = uneven()

    def fail(*given):
        raise ZeroDivisionError("made up for the test")

    with patch.object(mpi, "MOMENT", 0.5):
        if peers.rank == peers.size - 1:
            if where == "before":
                X = X * np.nan
            else:
                Leagues._send = fail
        fit("ww", "mpi", X, y, solver="leagues", leagues=7)


def until_the_end(folder, every):
    """Resume until the model is complete, however often this is started."""
    fitted = fit_with_checkpoints("ww", "leagues", "mpi", folder / "c", float(every), resume=True, tol=1e-3)
    if peers_of("mpi").rank == 0:
        (folder / "digest").write_text(digest(fitted))


def commands(folder):
    """Run several commands; the last ones cannot read their files, and the very last only on one rank."""
    from manyclass.cli.app import app

    os.chdir(folder)
    for command in (
        "train train.svm --solver leagues -m whole --json -q",
        "train part-{rank}.svm --solver leagues -m parts --json -q",
        "train texts.csv -m texts --json -q",
        "train texts-{rank}.csv -m text-parts --json -q",
        "evaluate parts train.svm --json",
        "evaluate parts part-{rank}.svm --json",
        "predict parts train.svm -k 2 --scores -o whole.txt",
        "predict parts part-{rank}.svm -k 2 --scores -o parts.txt",
    ):
        assert not app(command.split(), standalone_mode=False)
    assert app(["train", "train.svm", "--max-iter", "1", "--json"], standalone_mode=False) == 3
    assert app(["train", "not there"], standalone_mode=False) == 2
    assert app(["train", "wrong.svm"], standalone_mode=False) == 2
    assert app(["predict", "parts", "-"], standalone_mode=False) == 2
    app(["train", "last-{rank}.svm"], standalone_mode=False)


if __name__ == "__main__":
    action, folder, *more = sys.argv[1:]
    globals()[action](pathlib.Path(folder), *more)
