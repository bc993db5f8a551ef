"""Models that `train --shards` writes while they are trained: the same as in a file, also after a stop."""

import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from losses import text_like
from typer import BadParameter

from manyclass.cli import ranks
from manyclass.cli.destination import way_of_writing
from manyclass.cli.train_options import Checkpoints, Cluster, Objective
from manyclass.data import load_svmlight, save_svmlight, save_xmc
from manyclass.engines import batches
from manyclass.estimators import label_batches
from manyclass.model import ShardWriter, load_model
from manyclass.solvers import ElasticNetBlocks

PPD = ["--loss", "ppd_squared_hinge"]
ABLE = [PPD, ["--loss", "ppd_hinge"], ["--loss", "squared_hinge", "--drop", "0.05"]]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(label_batches, "LABELS_A_SHARD", 16)


@pytest.fixture
def files(tmp_path):
    """Rows of 70 classes: with one label each, and with sets of labels whose numbers have gaps."""
    X, y = text_like(300, 120, 70, seed=1)
    save_svmlight(X, y, tmp_path / "one.svm")
    Y = sp.csr_matrix((np.ones(600), (np.tile(np.arange(300), 2), np.r_[3 * y, np.full(300, 500)])), (300, 501))
    save_svmlight(X, Y, tmp_path / "several.svm")
    save_xmc(X, Y[:, :250], tmp_path / "several.xmc")
    return tmp_path


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("loss", ABLE, ids=lambda loss: loss[1])
@pytest.mark.parametrize("data", ["one.svm", "several.svm", "several.xmc"])
def test_shards_are_the_model(loss, data, shell, files):
    whole = shell.json("train", data, *loss, "-m", "whole")
    report = shell.json("train", data, *loss, "-m", "folder", "--shards")
    assert len(list((files / "folder").glob("shard-*"))) > 2
    expected, found = load_model("whole"), load_model("folder")
    X, _ = load_svmlight("one.svm")
    np.testing.assert_array_equal(found.scores(X), expected.scores(X))
    np.testing.assert_array_equal(found.classes, expected.classes)
    assert found.settings == {name: value for name, value in expected.settings.items() if name != "time_limit"}
    assert report["model_bytes"] == sum(map(len, bytes_of(files / "folder").values()))
    for name in ("training_error", "training_precision_at_1", "classes", "density"):
        assert report[name] == whole[name]
    by_file, by_folder = (shell("predict", model, data, "-k", 2).stdout for model in ("whole", "folder"))
    assert by_file == by_folder


def test_shards_take_raw_text(shell, tables):
    shell("train", "train.tsv", *PPD, "--shards")
    assert shell("predict", "train.manyclass", "-", stdin="an apple in the soup\n").stdout == "food\n"


# ---- After a stop


def out_of_time(monkeypatch):
    """The clock leaps when two shards are there."""
    clock, add, added = batches.time.perf_counter, ShardWriter.add, []

    def count(self, *given):
        add(self, *given)
        added.append(self)

    monkeypatch.setattr(ShardWriter, "add", count)
    leaping = SimpleNamespace(perf_counter=lambda: clock() + 1e6 * (len(added) >= 2))
    monkeypatch.setattr(batches, "time", leaping)


def interrupted(monkeypatch):
    """Ctrl-C comes while the third batch is trained."""
    advance, advanced = ElasticNetBlocks.advance, []

    def disturbed(self, rule):
        advanced.append(self._chosen)
        if len({tuple(blocks) for blocks in advanced}) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self, rule)

    monkeypatch.setattr(ElasticNetBlocks, "advance", disturbed)


def interrupted_while_writing(monkeypatch):
    """Ctrl-C comes in place of the third shard."""
    add, added = ShardWriter.add, []

    def disturbed(self, *given):
        if len(added) == 2:
            raise KeyboardInterrupt
        add(self, *given)
        added.append(self)

    monkeypatch.setattr(ShardWriter, "add", disturbed)


@pytest.mark.parametrize(
    ("stop", "code", "message"),
    [
        (out_of_time, 3, "error: stopped after 1000.0 seconds with 32 of 70 labels in folder"),
        (interrupted, 130, "error: interrupted with 32 of 70 labels in folder"),
        (interrupted_while_writing, 130, "error: interrupted"),
    ],
)
def test_a_fit_that_was_stopped_ends_with_the_same_bytes(stop, code, message, shell, files):
    command = ["train", "one.svm", *PPD, "--shards", "--jobs", 1]
    shell(*command, "-m", "whole")
    with pytest.MonkeyPatch.context() as patched:
        stop(patched)
        stopped = shell(*command, "-m", "folder", "--time-limit", 1000, code=code)
    assert message in stopped.stderr and stopped.stdout == ""
    assert len(bytes_of(files / "folder")) == 2
    assert "has no shards.json" in shell("predict", "folder", "one.svm", code=2).stderr
    refused = shell(*command, "-m", "folder", code=2)
    assert "folder holds shards; resume from them with --resume" in refused.stderr
    assert "resuming from folder" in shell(*command, "-m", "folder", "--resume").stderr
    assert bytes_of(files / "folder") == bytes_of(files / "whole")


def test_resume_begins_where_there_is_nothing_yet(shell, files):
    command = ["train", "one.svm", *PPD, "-m", "folder", "--shards", "--resume"]
    assert "folder holds no shards yet; starting from the beginning" in shell(*command).stderr
    before = bytes_of(files / "folder")
    shell(*command)
    assert bytes_of(files / "folder") == before
    assert "holds shards of a different fit" in shell(*command, "-C", 2, code=2).stderr
    assert bytes_of(files / "folder") == before


def test_a_shard_that_was_half_written_is_nothing(shell, files):
    (files / "folder").mkdir()
    (files / "folder" / ".shard-00-of-70-01234567.manyclass.abc").write_bytes(b"half")
    command = ["train", "one.svm", *PPD, "--shards", "--resume"]
    report = shell.json(*command, "-m", "folder")
    shell(*command, "-m", "whole")
    assert bytes_of(files / "folder") == bytes_of(files / "whole")
    assert report["model_bytes"] == sum(map(len, bytes_of(files / "whole").values()))


# ---- What cannot be


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss", "ww"], "--loss ww cannot write shards during training"),
        (
            ["--loss", "squared_hinge"],
            "ppd_hinge, ppd_squared_hinge, and squared_hinge with --drop, write them",
        ),
        (["--loss", "max_margin"], "needs several ranks of mpirun"),
        ([*PPD, "--checkpoint", "c"], "omit --checkpoint or --shards"),
        ([*PPD, "--calibrate", "sigmoid"], "omit --calibrate or --shards"),
        ([*PPD, "--engine", "joblib"], "the workers of joblib do not write shards"),
        ([*PPD, "--every", "5"], "it needs a folder given by --checkpoint"),
        ([*PPD, "-m", "several.svm"], "several.svm is a file; choose another folder for the shards with --model"),
        ([*PPD, "-m", "."], "holds files other than shards; choose another folder"),
    ],
)
def test_what_shards_do_not_go_with(arguments, message, shell, files):
    before = sorted(files.iterdir())
    error = " ".join(shell("train", "one.svm", "--shards", *arguments, code=2).stderr.replace("│", " ").split())
    assert message in error
    assert sorted(files.iterdir()) == before


def test_one_rank_of_mpirun_is_alone(monkeypatch):
    monkeypatch.setattr(ranks, "peers", lambda: SimpleNamespace(size=1, rank=0))
    with pytest.raises(BadParameter, match="--loss ww cannot write shards during training"):
        way_of_writing(Objective("ww"), Checkpoints(), Cluster("mpi", shards=True))
