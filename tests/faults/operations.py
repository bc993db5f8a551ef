"""Everything that writes files, as operations that can be disturbed, inspected and repeated."""

import hashlib
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from losses import text_like

from manyclass import BlockStore, OneVsRestSVC, load_model, save_model
from manyclass.cli import main
from manyclass.data import conversion, load_svmlight, row_parts, save_svmlight
from manyclass.data.manifest import StoreError
from manyclass.engines import CheckpointFolder
from manyclass.estimators import label_batches
from manyclass.model import ModelFileError
from manyclass.problems import PROBLEMS
from manyclass.solvers import l2_blocks

# Small parts and little memory, for many files.
row_parts.TEXT_AT_ONCE = row_parts.CHUNK = 8_000
conversion.LEAST_MEMORY = 0
label_batches.LABELS_A_SHARD = 8
l2_blocks.BLOCKS_A_THREAD, l2_blocks.SECONDS_AT_ONCE = 1, 0.0

NOTHING = "nothing"


class Operation:
    """Something that turns an old state of a folder into a new one.

    In subclasses, `prepare` creates the old state in the current folder, `run` does the work, and `look` is a fresh
    reader that describes what it finds: equal states give equal strings, different states different ones.
    """

    name = ""
    in_this_process = True
    beginning = 0.0  # the share of its time, at the start, in which killing it is pointless

    def prepare(self):
        raise NotImplementedError

    def run(self):
        raise NotImplementedError

    def look(self):
        raise NotImplementedError

    def may_be_repeated(self):
        """Return whether it may be repeated if it was stopped after reaching the new state."""
        return True

    def files(self):
        """Return the digests of all files by name."""
        return {str(path): digest(path) for path in sorted(Path().rglob("*")) if path.is_file()}

    def lasting(self, files):
        """Return the files that must be the same whenever the operation is complete."""
        return files


def command(*arguments):
    """Run a manyclass command in this process."""
    sys.argv = ["manyclass", *map(str, arguments)]
    main()


def digest(path):
    return hashlib.blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()


def model_state(path):
    """Return what a reader finds: the complete model, or nothing."""
    if not os.path.lexists(path):
        return NOTHING
    try:
        model = load_model(path)
    except ModelFileError as error:
        if os.path.isdir(path) and "has no shards.json" in str(error):
            return NOTHING
        raise
    weights = np.asarray(model.scores(np.eye(model.n_features, dtype=np.float32)))
    return hashlib.blake2b(weights.tobytes() + str(model.classes.tolist()).encode(), digest_size=8).hexdigest()


def store_state(path):
    """Return what a reader finds: the complete store, or that there is none."""
    try:
        store = BlockStore(path)
    except StoreError as error:
        assert any(words in str(error) for words in ("does not exist", "is incomplete", "has no manifest")), error
        return NOTHING
    assert list(store.verify()) == []
    X, y = store.load()
    content = b"".join(array.tobytes() for array in (X.indptr, X.indices, X.data, np.asarray(y)))
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def rows(name, n=300, K=12, seed=0, d=80):
    save_svmlight(*text_like(n, d, K, seed=seed), name)


class Save(Operation):
    """`save_model` over an existing model."""

    name = "save"

    def prepare(self):
        X, y = text_like(400, 90, 40)
        save_model(OneVsRestSVC(C=0.1).fit(X, y), "m.manyclass")
        self.model = OneVsRestSVC(C=10.0).fit(X, y)

    def run(self):
        save_model(self.model, "m.manyclass")

    def look(self):
        return model_state("m.manyclass")


class Compress(Operation):
    """`manyclass compress` over an existing model."""

    name = "compress"

    def prepare(self):
        X, y = text_like(400, 90, 40)
        save_model(OneVsRestSVC(C=0.1).fit(X, y), "m.manyclass")
        save_model(OneVsRestSVC(C=10.0).fit(X, y), "small.manyclass")

    def run(self):
        command("compress", "m.manyclass", "-o", "small.manyclass", "--dtype", "int8", "--prune", "0.01")

    def look(self):
        return f"{model_state('m.manyclass')} {model_state('small.manyclass')}"


class Convert(Operation):
    """`manyclass convert` into a new folder."""

    name = "convert"

    def prepare(self):
        rows("a.svm", 500, 40, 1, 200)

    def run(self):
        command("convert", "a.svm", "s", "--memory", "150kB")

    def look(self):
        return store_state("s")

    def may_be_repeated(self):
        return Path("s/conversion.json").exists()  # without this file, all rows are in the store


class Append(Convert):
    """`manyclass convert --append`."""

    name = "append"

    def prepare(self):
        rows("a.svm", 300, 40, 1, 200)
        rows("b.svm", 500, 50, 2, 220)
        conversion.Conversion(row_parts.TextRows(["a.svm"]), "s", memory=150_000).run()

    def run(self):
        command("convert", "b.svm", "s", "--append", "--memory", "150kB")


class Remove(Append):
    """`manyclass remove` of a block and some rows."""

    name = "remove"

    def may_be_repeated(self):
        return False

    def run(self):
        command("remove", "s", "--rows", "5-25,200", "--blocks", "0")


class Train(Operation):
    """`manyclass train` with a checkpoint after every piece of work; resumed, the model has the same bytes."""

    def __init__(self, name, loss="ww", jobs=2):
        self.name, self.loss = name, ("--loss", loss, "--jobs", jobs)

    def prepare(self):
        rows("a.svm", 150, 20)

    def run(self):
        more = ("--tol", "0.05", "--checkpoint", "c", "--every", "0", "--resume", "-m", "m.manyclass", "-q")
        command("train", "a.svm", *self.loss, *more)

    def look(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # for damaged checkpoints
            CheckpointFolder("c").read()
        return model_state("m.manyclass")

    def lasting(self, files):
        """Leave out checkpoints, which hold times: depending on when the fit stopped, there are one or two."""
        generations = {match[1] for name in files if (match := re.match(r"c/checkpoint-(\d+)", name))}
        others = {name: value for name, value in files.items() if not re.match(r"c/checkpoint-\d", name)}
        return others | {"few checkpoints": len(generations) <= 2}


class TrainByRanks(Train):
    """The same with two ranks of mpirun, which are killed with it."""

    in_this_process = False
    beginning = 0.4  # mpirun takes this share of the time to start

    def prepare(self):
        rows("a.svm", 600, 60, d=200)

    def run(self):
        mpirun = [Path(sys.executable).with_name("mpirun"), "--oversubscribe", "-n", "2"]
        train = [sys.executable, "-m", "manyclass", "train", "a.svm", "--solver", "leagues", "--tol", "0.001"]
        more = ["--checkpoint", "c", "--every", "0", "--resume", "-m", "m.manyclass", "-q"]
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        sys.exit(subprocess.run([*mpirun, *train, *more], env=environment | allowed).returncode)


class TrainFromStore(Operation):
    """`manyclass train` from a store, with dual variables in files; resumed, it reaches the same optimum."""

    name = "train from a store"

    def prepare(self):
        rows("a.svm", 150, 12, 3)
        conversion.Conversion(row_parts.TextRows(["a.svm"]), "s", memory=150_000, blocks=4).run()

    def run(self):
        more = ("--memory", "40MB", "--checkpoint", "c", "--every", "0", "--resume", "-m", "m.manyclass", "-q")
        command("train", "s", "--loss", "cs", "--tol", "0.05", "--jobs", "1", *more)

    def look(self):
        store = store_state("s")
        if model_state("m.manyclass") == NOTHING:
            return f"{store} {NOTHING}"
        model = load_model("m.manyclass")
        W = np.vstack([sp.csr_matrix(model.matrix).toarray(), model.intercept])
        X, y = load_svmlight("a.svm")
        X = sp.hstack([X, np.ones((X.shape[0], 1))]).tocsr()
        primal = PROBLEMS["cs"].primal(W, X, np.searchsorted(model.classes, y), np.ones(X.shape[0]))
        assert model.certificate["gap"] <= 0.05
        assert abs(primal - model.certificate["primal"]) <= 1e-5 * primal
        return f"{store} model"

    def lasting(self, files):
        """Compare neither model nor checkpoints: a resumed fit ends with another model near the same optimum."""
        return {name: "" if name == "m.manyclass" or name[0] == "c" else value for name, value in files.items()}


class Shards(Operation):
    """`manyclass train --shards`."""

    name = "shards"

    def prepare(self):
        rows("a.svm", 120, 40, 4, 60)

    def run(self):
        loss = ("--loss", "ppd_squared_hinge", "--jobs", "1")
        command("train", "a.svm", *loss, "--shards", "--resume", "-m", "m", "-q")

    def look(self):
        return model_state("m")


OPERATIONS = {
    operation.name: operation
    for operation in (
        *(Save(), Compress(), Convert(), Append(), Remove(), Shards(), TrainFromStore()),
        Train("train (ww)", jobs=1),
        Train("train (cs)", "cs"),
        Train("train (maxent)", "maxent"),  # whose threads need memory between their meetings
        Train("train (one-vs-one)", "ovo_logistic"),
        Train("train (PPDSparse)", "ppd_squared_hinge"),
        TrainByRanks("train (mpirun)"),
    )
}
