"""What the tests of the engine "mpi" let every rank do: `mpirun -n 4 python under_mpirun.py ACTION FOLDER ...`.

The fits are here as functions of the engine, so that the tests can do the same without mpirun.
"""

import errno
import hashlib
import json
import logging
import os
import pathlib
import resource
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager, nullcontext

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "common"))
from losses import make, text_like

from manyclass import save_model
from manyclass.engines import CheckpointFolder, MPIEngine, join_rows, peers_of, share_rows, shared_rows
from manyclass.estimators import label_batches
from manyclass.peers import courier, mpi
from manyclass.solvers import ClassBlocks, CoupledRows, Leagues, class_blocks, coupled_rows


def uneven(n=150, d=100, K=20):
    """Rows of which the first class has a third."""
    X, y = text_like(n, d, K, seed=2, nnz=12)
    return X, np.where(np.arange(n) % 3 == 2, 0, y)


@contextmanager
def changed(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def digest(fitted):
    """Of the model file, which has the certificate in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model")
        save_model(fitted.model_, path)
        return hashlib.blake2b(path.read_bytes()).hexdigest()


def fit(loss, engine, X, y, **parameters):
    return make(loss, engine=engine, **({"n_jobs": 1, "tol": 0.05} | parameters)).fit(X, y)


# ---- Fits that every number of ranks must agree on


def all_fits(engine):
    """Models by names, as digests."""
    X, y = uneven()
    found = {}
    for count in (1, 7, 8):
        found[f"ww by {count} leagues"] = fit("ww", engine, X, y, solver="leagues", leagues=count)
    five = {"solver": "leagues", "leagues": 5}
    found["ww by leagues, kkt"] = fit(
        "ww", engine, X, y, **five, stop="kkt", tol=0.1, dtype="float64", fit_intercept=False
    )
    again = fit("ww", engine, X, y, **five, warm_start=True)
    found["ww by leagues, warm start"] = again.set_params(C=2.0).fit(X, y)
    for K in (2, 3):
        few = text_like(60, 30, K)
        found[f"ww by leagues, {K} classes"] = fit("ww", engine, *few, solver="leagues")
        for loss in ("cs", "hinge", "ovo_hinge"):
            found[f"{loss}, {K} classes"] = fit(loss, engine, *few)
    for loss in ("ww", "cs", "llw", "maxent", "hinge", "squared_hinge", "ovo_hinge", "ppd_hinge"):
        found[loss] = fit(loss, engine, X, y)
    found["newton"] = fit("squared_hinge", engine, X, y, solver="newton")
    for loss in ("squared_hinge", "ppd_hinge", "ppd_squared_hinge"):
        found[f"{loss}, sets of labels"] = fit(loss, engine, X, [{label, label % 7} for label in y])
    again = fit("hinge", engine, X, y, warm_start=True, n_jobs=2)
    found["hinge, warm start"] = again.set_params(C=2.0).fit(X, y)
    return {name: digest(fitted) for name, fitted in found.items()}


# ---- Checkpoints


class Crash(BaseException):
    """Ends a fit as nothing else does: no certificate, no last checkpoint."""


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
    # Small pieces: many of them end in the middle of a pass.
    with (
        changed(coupled_rows, "WORK_AT_ONCE", 2e4),
        changed(class_blocks, "BLOCKS_A_THREAD", 1),
        changed(class_blocks, "SECONDS_AT_ONCE", 0.0),
    ):
        X, y = uneven()
        given = {"checkpoint": folder, "every": every} if folder else {}
        given |= {"leagues": 7} if solver == "leagues" else {}
        return fit(loss, engine, X, y, solver=solver, dtype="float64", **given, **parameters)


def leave_checkpoints(folder, engine):
    """Stop fits after some pieces of work, each with a checkpoint."""
    for (loss, solver, pieces), name in STOPPED.items():
        kind = {"leagues": Leagues}.get(solver, CoupledRows if loss == "cs" else ClassBlocks)
        left, plain = [pieces], kind.advance

        def advance(self, rule, left=left, plain=plain):
            if left[0] == 0:
                raise Crash
            left[0] -= 1
            return plain(self, rule)

        with changed(kind, "advance", advance):
            try:
                fit_with_checkpoints(loss, solver, engine, folder / name)
            except Crash:
                continue
        raise AssertionError(f"{name}: the fit ended before it was stopped")


def go_on(folder, copy, engine):
    """Go on from all these checkpoints, in a copy of the folder."""
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
    """Go on from the checkpoint of a whole fit: some of its blocks are good enough, some are not."""
    found = {}
    for loss in ("hinge", "ppd_hinge"):
        fit_with_checkpoints(loss, "auto", engine, folder / loss, tol=0.1)
        found[loss] = digest(fit_with_checkpoints(loss, "auto", engine, folder / loss, resume=True, tol=0.01))
    return found


@contextmanager
def files_of_at_most(size):
    """As on a full disk: the system refuses to write on in the middle of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def one_disk_fills_up(folder, engine):
    """From the third checkpoint on the last rank cannot write: warnings seen here, and the model."""
    peers, plain = peers_of(engine), CheckpointFolder.write_part

    def write_part(self, generation, rank, tensors):
        with files_of_at_most(1000) if generation > 2 and rank == peers.size - 1 else nullcontext():
            return plain(self, generation, rank, tensors)

    with changed(CheckpointFolder, "write_part", write_part):
        return warnings_and_model(folder, engine)


def warnings_and_model(folder, engine):
    """Of a fit with a checkpoint after each piece of work."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fitted = fit_with_checkpoints("ww", "leagues", engine, folder, tol=0.1)
    return [str(entry.message) for entry in seen], digest(fitted)


# ---- Who trains what


def one_is_late(folder, engine, late):
    """One rank stays at its first block until the others have taken all others: what each has trained."""
    peers, plain, mine = peers_of(engine), ClassBlocks._deal, []

    def wait_for(count):
        end = time.monotonic() + 30
        while len(list(folder.iterdir())) < count and time.monotonic() < end:
            time.sleep(0.001)

    def noted(self):
        deal = plain(self)

        def take():
            if peers.rank != late and not mine:
                wait_for(1)  # or there would be nothing left for the late one
            block = deal()
            if block >= 0:
                mine.append(block)
                (folder / str(block)).touch()
                if peers.rank == late:
                    wait_for(self.blocks)
            return block

        return take

    folder.mkdir(exist_ok=True)
    with changed(class_blocks, "SECONDS_AT_ONCE", 60.0), changed(ClassBlocks, "_deal", noted):
        fitted = fit("ppd_hinge", engine, *text_like(150, 100, 100))
    return peers.gather(mine), digest(fitted)


def numbers_of_all(engine):
    """What ranks get of what is shared out, turn after turn without a meeting; in one they leave some to nobody."""
    peers = peers_of(engine)
    found = []
    for count in (0, 1, 1000, 7):
        found.append(list(peers.share_out(count)))
        next(peers.share_out(5), None)
    return [
        sorted(number for of_rank in turn for number in of_rank) for turn in zip(*peers.gather(found), strict=True)
    ]


def a_late_rank(folder, engine):
    """The one that knows what is next, and the last one."""
    peers = peers_of(engine)
    if peers.size == 1:
        return []
    return [one_is_late(folder.with_name(f"{folder.name}-{late}"), engine, late) for late in (0, peers.size - 1)]


# ---- What is said to all


def messages_of_a_different_rank(engine):
    """What each rank is told when the last one has another value in its rows."""
    peers = peers_of(engine)
    X, y = uneven()
    if peers.rank == peers.size - 1:
        X.data[0] *= 1.001
    try:
        fit("hinge", engine, X, y)
    except ValueError as error:
        return str(error)


def shards_in_common(folder, engine):
    """A model in shards, of which one is lost and trained again; and what is said where a rank has another folder."""
    peers = peers_of(engine)
    found = []
    with changed(label_batches, "LABELS_A_SHARD", 32):
        for resume in (False, True):
            found.append(digest(fit("ppd_hinge", engine, *text_like(150, 100, 100), shards=folder, resume=resume)))
            peers.gather(None)
            if peers.rank == 0:
                sorted(folder.glob("shard-*"))[1].unlink()
            peers.gather(None)
        here = folder if peers.rank < peers.size - 1 else folder / "other"
        try:
            fit("ppd_hinge", engine, *text_like(150, 100, 100), shards=here, resume=True)
        except ValueError as error:
            found.append(str(error))
    return found


def in_pieces(engine):
    """Gather and send messages that take several pieces, or none; whether they have arrived as they were."""
    peers = peers_of(engine)
    rng = np.random.default_rng(peers.rank)
    with changed(courier, "PIECE", 300):
        values = [rng.random(size) for size in (0, 1, 10 * peers.rank, 1000)]
        gathered = peers.gather(values)
        good = all(np.array_equal(one, two) for one, two in zip(gathered[peers.rank], values, strict=True))
        after, before = (peers.rank + 1) % peers.size, (peers.rank - 1) % peers.size
        if peers.size > 1:
            for tag, value in enumerate([*values, *values]):
                peers.send(after, tag % len(values), value.view(np.uint8))
            for tag in [3, 2, 1, 0, 0, 1, 2, 3]:
                good &= np.array_equal(peers.receive(before, tag).view(np.float64), gathered[before][tag])
        peers.gather(None)  # or a rank would go back to large pieces while another one still sends small ones
        model = digest(fit("ww", engine, *uneven(), solver="leagues", leagues=7))
        peers.gather(None)
    return good, model


# ---- Rows in common

LARGE = 8_000_000


def rows_in_common(engine):
    """What one rank has read: where it is, what it takes of this rank, and the model from it."""
    calls, peers = [], peers_of(engine)

    def read():
        calls.append(peers.rank)
        X, y = uneven()
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return X, y, sp.csr_matrix((0, 7), dtype=np.float32), np.ones(LARGE)

    before = own_memory()
    X, y, empty, large = share_rows(read, peers)
    arrays = X.data, X.indices, X.indptr, y, large
    assert X.indices.dtype == X.indptr.dtype == np.int64 and empty.shape == (0, 7) and (large == 1).all()
    return {
        "calls": len(calls),
        "own memory": own_memory() - before,
        "places": [place_of(array) for array in arrays],
        "writable": any(array.flags.writeable for array in arrays),
        "model": digest(fit("hinge", engine, X, y)),
    }


def own_memory():
    """Bytes of this process that are nobody else's."""
    [line] = [line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if "RssAnon" in line]
    return 1024 * int(line.split()[1])


def place_of(array):
    """How the memory of an array is mapped, the file it is of, and where in that file it begins."""
    address = array.ctypes.data
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        span, rights, offset, device, inode, *_ = line.split()
        first, last = (int(end, 16) for end in span.split("-"))
        if first <= address < last:
            return [rights, device, inode, int(offset, 16) + address - first]


def parts_in_common(engine):
    """Rows that each rank has a part of: how many were joined here, where they are, and the model from them."""
    peers = peers_of(engine)
    X, y = uneven()
    own = slice(peers.rank * X.shape[0] // peers.size, (peers.rank + 1) * X.shape[0] // peers.size)
    joined = []

    def join(parts):
        joined.extend(parts)
        return sp.vstack([X for X, _ in parts], "csr"), np.concatenate([y for _, y in parts])

    X, y = join_rows((X[own], y[own]), join, peers)
    return {"joined": len(joined), "place": place_of(X.data), "model": digest(fit("hinge", engine, X, y))}


def parts_on_two_hosts(engine):
    """The last rank as if it were elsewhere."""
    peers = peers_of(engine)
    with changed(peers, "hosts", ["here"] * (peers.size - 1) + ["there"]):
        return parts_in_common(engine)


def rows_that_cannot_be_read(engine):
    peers = peers_of(engine)

    def read():
        raise FileNotFoundError(errno.ENOENT, "No such file", f"asked for by {peers.rank}")

    try:
        share_rows(read, peers)
    except FileNotFoundError as error:
        return str(error)


def copied_rows(engine):
    """No file may be large; then, the last rank is in a container of its own: models, and what is logged."""
    messages, peers = [], peers_of(engine)
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logger = logging.getLogger("manyclass")
    logger.addHandler(handler)
    with files_of_at_most(4096):
        X, y = share_rows(uneven, peers)
    models = [digest(fit("hinge", engine, X, y))]
    elsewhere = peers.rank == peers.size - 1
    with changed(shared_rows.os, "readlink", (lambda path: "pipe:[1]") if elsewhere else os.readlink):
        X, y = share_rows(uneven, peers)
    models.append(digest(fit("hinge", engine, X, y)))
    logger.removeHandler(handler)
    return models, messages


# ---- Actions


def everything(folder):
    """Four ranks train together in every number; three leave the checkpoints that all go on from."""
    from mpi4py import MPI

    world = peers_of("mpi")
    everyone = {}
    for sizes in ((3, 3, 3, 1), (2, 2, 0, 0), (4, 4, 4, 4)):  # of the group that each is in
        size = sizes[world.rank]
        engine = MPIEngine(MPI.COMM_WORLD.Split(size, world.rank))
        found = by_a_group(folder, engine) if size else {}
        if size == 3:
            leave_checkpoints(folder / "stopped", engine)
        world.gather(None)
        if size:
            found["gone on"] = go_on(folder / "stopped", folder / f"gone-on-{size}", engine)
        for group, of_rank in zip(sizes, world.gather(found), strict=True):
            everyone.setdefault(group, []).append(of_rank)
    if world.rank == 0:
        (folder / "found.json").write_text(json.dumps(everyone))


def by_a_group(folder, engine):
    peers = engine.peers()
    nothing_to_do = {"checkpoint": folder / f"few-{peers.size}", "every": 0}  # for all but one rank or two
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
    """Train on a disk that another file fills when the second checkpoint is there."""
    disk, peers, plain = folder / "disk", peers_of("mpi"), CheckpointFolder.commit

    def commit(self, generation, parts, info):
        plain(self, generation, parts, info)
        if generation == 2:
            fill(disk / "ballast", leave=4096)

    with changed(CheckpointFolder, "commit", commit):
        found = warnings_and_model(disk / "c", "mpi")
    found = peers.gather(found)
    if peers.rank == 0:
        shutil.copytree(disk / "c", folder / "c")
        (folder / "found.json").write_text(json.dumps(found))


def fill(path, leave):
    """Write a file until there is no room for more but these bytes."""
    with open(path, "wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(1000))
        except OSError:
            out.truncate(out.tell() - leave)


def raises(folder, where):
    """The last rank raises: before the fit, while the other gathers, or in it, while the other waits for a parcel."""
    peers = peers_of("mpi")
    X, y = uneven()

    def fail(*given):
        raise ZeroDivisionError("made up for the test")

    with changed(mpi, "MOMENT", 0.5):
        if peers.rank == peers.size - 1:
            if where == "before":
                X = X * np.nan
            else:
                Leagues._send = fail
        fit("ww", "mpi", X, y, solver="leagues", leagues=7)


def until_the_end(folder, every):
    """Go on, as often as this is started, until the model is there."""
    fitted = fit_with_checkpoints("ww", "leagues", "mpi", folder / "c", float(every), resume=True, tol=1e-3)
    if peers_of("mpi").rank == 0:
        (folder / "digest").write_text(digest(fitted))


def commands(folder):
    """The command line, several times; at last files that cannot be read, one of them by one rank."""
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
