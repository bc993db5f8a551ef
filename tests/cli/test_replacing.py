"""Files that are already there: what replaces them, what does not, and what is said about it."""

import os
import signal
import stat
import time

import pytest

from manyclass.cli import destination
from manyclass.model import load_model
from manyclass.solvers import CoupledRows

STOPPED = ["--max-iter", 1, "--tol", 1e-9, "--dtype", "float64"]


@pytest.fixture
def old(shell, svm):
    """A converged model, written a while ago."""
    shell("train", "train.svm", "-m", "m.manyclass", "-C", 0.5)
    os.utime(svm / "m.manyclass", (time.time() - 1e6,) * 2)
    return svm / "m.manyclass"


def test_a_converged_fit_replaces_a_model_and_says_so(shell, old):
    written = time.strftime("%Y-%m-%d %H:%M", time.localtime(old.stat().st_mtime))
    gap = load_model(old).certificate["gap"]
    lines = shell("train", "train.svm", "-m", old).stdout.splitlines()
    assert f"replaced\t{old}, written {written}, relative gap {gap:.6g}" in lines
    assert load_model(old).settings["C"] == 1
    report = shell.json("train", "train.svm", "-m", old)
    assert report["replaced"]["certificate"]["gap"] <= 0.01 and report["model"] == str(old)


def test_a_first_model_replaces_nothing(shell, svm):
    assert shell.json("train", "train.svm")["replaced"] is None
    assert "replaced" not in shell("train", "train.svm", "-m", "other").stdout


def test_a_fit_out_of_passes_leaves_the_old_model_and_goes_beside_it(shell, old):
    before = old.read_bytes()
    stopped = shell("train", "train.svm", "-m", old, *STOPPED, code=3)
    assert old.read_bytes() == before
    beside = old.with_name("m.unfinished.manyclass")
    assert load_model(beside).certificate["exit_reason"] == "max_iter"
    assert f"{old} is kept" in stopped.stderr and str(beside) in stopped.stderr and "--force" in stopped.stderr
    assert f"model\t{beside} (" in stopped.stdout and "replaced" not in stopped.stdout


def test_ctrl_c_leaves_the_old_model_and_goes_beside_it(shell, old, monkeypatch):
    before, advance = old.read_bytes(), CoupledRows.advance

    def disturbed(self, *given):
        os.kill(os.getpid(), signal.SIGINT)
        return advance(self, *given)

    monkeypatch.setattr(CoupledRows, "advance", disturbed)
    stopped = shell("train", "train.svm", "-m", old, "--tol", 1e-12, "--dtype", "float64", code=130)
    assert old.read_bytes() == before and f"{old} is kept" in stopped.stderr
    assert load_model(old.with_name("m.unfinished.manyclass")).certificate["exit_reason"] == "interrupted"


def test_unfinished_models_do_not_replace_one_another(shell, old):
    for _ in range(3):
        shell("train", "train.svm", "-m", old, *STOPPED, code=3)
    assert sorted(path.name for path in old.parent.glob("m*")) == [
        "m.manyclass",
        "m.unfinished-2.manyclass",
        "m.unfinished-3.manyclass",
        "m.unfinished.manyclass",
    ]


def test_force_replaces_whatever_is_there(shell, old):
    stopped = shell("train", "train.svm", "-m", old, *STOPPED, "--force", code=3)
    assert load_model(old).certificate["exit_reason"] == "max_iter"
    assert "is kept" not in stopped.stderr and f"replaced\t{old}, written" in stopped.stdout
    (old.parent / "notes.txt").write_text("mine")
    assert "notes.txt" in shell("train", "train.svm", "-m", "notes.txt", "--force").stdout
    assert load_model("notes.txt").n_classes == 4


def test_a_first_fit_that_is_stopped_is_written_where_it_should_go(shell, svm):
    stopped = shell("train", "train.svm", *STOPPED, code=3)
    assert "train.manyclass holds the model so far" in stopped.stderr
    assert [path.name for path in svm.glob("*.manyclass")] == ["train.manyclass"]


def test_a_fit_that_is_resumed_replaces_what_its_first_part_has_left(shell, svm):
    command = ["train", "train.svm", "-m", "m", "--checkpoint", "c", "--every", 0, "--dtype", "float64"]
    shell(*command, "--max-iter", 1, code=3)
    shell(*command, "--max-iter", 2, "--resume", code=3)
    assert load_model("m").certificate["epochs"] >= 2
    shell(*command, "--resume")
    assert load_model("m").certificate["exit_reason"] == "converged"
    assert [path.name for path in svm.glob("m*")] == ["m"]


# ---- What is not a model


@pytest.mark.parametrize(
    "command",
    [
        ["train", "train.svm", "-m", "notes.txt"],
        ["compress", "m.manyclass", "-o", "notes.txt", "--dtype", "int8"],
        ["index", "m.manyclass", "-o", "notes.txt"],
        ["demo", "-m", "notes.txt"],
    ],
)
def test_another_file_is_never_replaced_without_force(shell, old, command):
    (old.parent / "notes.txt").write_text("mine")
    refused = shell(*command, code=2)
    assert "notes.txt exists and is not a model" in refused.stderr
    assert ("--force" in refused.stderr) == (command[0] != "demo")
    assert (old.parent / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_the_data_are_never_replaced(shell, svm, force):
    before = (svm / "train.svm").read_bytes()
    os.link(svm / "train.svm", svm / "same")
    for name in ("train.svm", "./train.svm", "same"):
        refused = shell("train", "train.svm", "-m", name, *force, code=2)
        assert "is also read by this command" in refused.stderr
    assert (svm / "train.svm").read_bytes() == before


def test_predictions_do_not_replace_what_they_are_made_from(shell, old):
    for name in ("m.manyclass", "test.svm"):
        before = (old.parent / name).read_bytes()
        assert (
            "is also read by this command" in shell("predict", "m.manyclass", "test.svm", "-o", name, code=2).stderr
        )
        assert (old.parent / name).read_bytes() == before
    (old.parent / "out.txt").write_text("before")
    shell("predict", "m.manyclass", "test.svm", "-o", "out.txt")
    assert (old.parent / "out.txt").read_text() == shell("predict", "m.manyclass", "test.svm").stdout


def test_an_empty_file_holds_nothing_to_keep(shell, svm):
    (svm / "empty").write_bytes(b"")
    assert shell.json("train", "train.svm", "-m", "empty")["replaced"] is None


def test_a_damaged_model_is_not_a_model(shell, old):
    old.write_bytes(old.read_bytes()[:-1])
    assert "not a model" in shell("train", "train.svm", "-m", old, code=2).stderr


def test_a_file_that_appears_meanwhile_is_kept_too(shell, svm, monkeypatch):
    def fit(*given, **more):
        (svm / "late").write_text("mine")
        return fitted(*given, **more)

    from manyclass.cli import train

    fitted = train.fit
    monkeypatch.setattr(train, "fit", fit)
    assert "late is kept" in shell("train", "train.svm", "-m", "late").stderr
    assert (svm / "late").read_text() == "mine"
    assert load_model("late.new").certificate["exit_reason"] == "converged"


# ---- Sizes, modes and links


def test_compressing_in_place_reports_both_sizes(shell, old):
    before = old.stat().st_size
    report = shell.json("compress", old, "-o", old, "--dtype", "float16")
    assert (report["file_bytes_before"], report["file_bytes"]) == (before, old.stat().st_size)
    assert before != old.stat().st_size and report["replaced"] is None


def test_compress_and_index_say_what_they_replace(shell, old):
    shell("train", "train.svm", "-m", "other")
    for command in (["compress", "--dtype", "int8"], ["index"]):
        lines = shell(command[0], old, "-o", "other", *command[1:]).stdout.splitlines()
        assert any(line.startswith("replaced\tother, written ") for line in lines)
    assert "replaced" not in shell("index", old).stdout


def test_mode_and_link_of_a_model_stay(shell, old):
    old.chmod(0o600)
    (old.parent / "link").symlink_to("m.manyclass")
    shell("train", "train.svm", "-m", "link")
    assert (old.parent / "link").is_symlink() and stat.S_IMODE(old.stat().st_mode) == 0o600
    assert load_model(old).settings["C"] == 1


def test_a_folder_of_shards_is_replaced_only_with_force(shell, svm):
    command = ["train", "train.svm", "--loss", "ppd_hinge", "--shards", "-m", "folder"]
    shell(*command)
    assert "--resume" in shell(*command, "-C", 2, code=2).stderr
    assert load_model("folder").settings["C"] == 1
    shell(*command, "-C", 2, "--force")
    assert load_model("folder").settings["C"] == 2
    assert "folder is a folder" in shell("train", "train.svm", "-m", "folder", code=2).stderr


def test_unfinished_names():
    from pathlib import Path

    assert destination.beside(Path("a/news.manyclass")).name == "news.unfinished.manyclass"
    assert destination.beside(Path("news")).name == "news.unfinished"
