import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from manyclass import MulticlassSVC, OneVsRestSVC
from manyclass.cli.fitting import fit
from manyclass.data import load_svmlight
from manyclass.engines import CheckpointFolder
from manyclass.estimators.provenance import Provenance
from manyclass.model import load_model


@pytest.mark.parametrize(
    ("loss", "estimator"),
    [("ww", MulticlassSVC), ("rm", MulticlassSVC), ("hinge", OneVsRestSVC), ("squared_hinge", OneVsRestSVC)],
)
def test_the_model_written_is_that_of_the_estimator(shell, svm, loss, estimator):
    shell("train", "train.svm", "--loss", loss, "-C", 0.5, "--tol", 1e-3, "--intercept")
    X, y = load_svmlight("train.svm")
    expected = estimator(loss, C=0.5, tol=1e-3, fit_intercept=True).fit(X, y).model_
    found = load_model("train.manyclass")
    np.testing.assert_array_equal(found.scores(X), expected.scores(X))
    assert found.certificate == expected.certificate
    assert found.settings | expected.settings == found.settings


@pytest.mark.parametrize("loss", ["ww", "squared_hinge"])
def test_without_options_the_settings_are_those_of_the_estimator(shell, svm, loss):
    shell("train", "train.svm", "--loss", loss)
    X, y = load_svmlight("train.svm")
    expected = (MulticlassSVC if loss == "ww" else OneVsRestSVC)(loss).fit(X, y).model_.settings
    found = load_model("train.manyclass").settings
    assert {name: found[name] for name in expected} == expected


def test_the_report_is_about_the_fit(shell, svm):
    report = shell.json("train", "train.svm", "--model", "m", "--class-weight", "balanced", "--seed", 3)
    assert (report["rows"], report["features"], report["classes"]) == (200, 20, 4)
    assert report["certificate"]["exit_reason"] == "converged"
    assert report["certificate"]["gap"] <= report["settings"]["tol"]
    assert report["settings"]["class_weight"] == "balanced" and report["settings"]["random_state"] == 3
    assert report["history"][-1]["gap"] == report["certificate"]["gap"]
    assert report["training_error"] < 0.1
    assert {"data", "weights", "dual_variables", "peak"} <= set(report["memory"])
    assert report["model_bytes"] == (svm / "m").stat().st_size


def test_the_file_is_the_same_for_any_number_of_jobs(shell, svm):
    for jobs in (1, 2, 3):
        shell("train", "train.svm", "--model", f"{jobs}.manyclass", "--jobs", jobs)
    assert len({(svm / f"{jobs}.manyclass").read_bytes() for jobs in (1, 2, 3)}) == 1


def test_piped_output_has_tabs_and_no_boxes(shell, svm):
    lines = shell("train", "train.svm", "--quiet").stdout.splitlines()
    pairs = dict(line.split("\t", 1) for line in lines)
    assert pairs["exit reason"] == "converged" and pairs["classes"] == "4"
    at = lines.index("seconds\tpasses\tprimal\tdual\tgap\tviolation\tkind")
    kinds = [line.split("\t")[-1] for line in lines[at + 1 :]]
    assert kinds[-1] == "certificate" and set(kinds[:-1]) == {"estimate"}
    assert all(ord(character) < 0x2500 for line in lines for character in line)


def test_quiet_says_nothing_on_stderr(shell, svm):
    assert shell("train", "train.svm", "--quiet").stderr == ""
    assert "training" in shell("train", "train.svm").stderr


@pytest.mark.parametrize("name", ["train.csv", "train.tsv", "train.jsonl"])
def test_tables_train_models_that_take_text(shell, tables, name):
    columns = ["--text-column", "body", "--label-column", "topic"] if name.endswith("csv") else []
    shell("train", name, *columns)
    model = load_model("train.manyclass")
    assert model.classes.tolist() == ["animals", "food", "travel"]
    assert model.predict(["an apple in the soup"]).tolist() == ["food"]


def test_rare_words_are_dropped(shell, tables):
    (tables / "rare.tsv").write_text((tables / "train.tsv").read_text() + "food\tonce\n")
    everything = shell.json("train", "rare.tsv")
    frequent = shell.json("train", "rare.tsv", "--min-df", 2)
    assert frequent["features"] == everything["features"] - 1


def test_stdin_and_compressed_files_are_read(shell, svm):
    shell("train", "train.svm", "--model", "plain")
    shell("train", "-", "--model", "piped", stdin=(svm / "train.svm").read_bytes())
    (svm / "packed").write_bytes(gzip.compress((svm / "train.svm").read_bytes()))
    shell("train", "packed")
    assert (svm / "plain").read_bytes() == (svm / "piped").read_bytes()
    assert (svm / "plain").read_bytes() == (svm / "packed.manyclass").read_bytes()


@pytest.mark.parametrize(("budget", "advice"), [("--max-iter", "raise --max-iter"), ("--time-limit", "--time-limit")])
def test_a_spent_budget_gives_3_and_a_model(shell, svm, budget, advice):
    value = 1 if budget == "--max-iter" else 1e-6
    result = shell("train", "train.svm", budget, value, "--tol", 1e-9, "--dtype", "float64", "--json", code=3)
    assert json.loads(result.stdout)["certificate"]["exit_reason"] == budget.strip("-").replace("-", "_")
    assert advice in result.stderr and "target 1e-09" in result.stderr
    assert load_model("train.manyclass").n_classes == 4


# ---- What cannot be trained


@pytest.mark.parametrize(
    "arguments",
    [
        ["train"],
        ["train", "train.svm", "--loss", "nonsense"],
        ["train", "train.svm", "-C", "0"],
        ["train", "train.svm", "--tol", "-1"],
        ["train", "train.svm", "--max-iter", "0"],
        ["train", "train.svm", "--min-df", "many"],
        ["train", "train.svm", "--no-such-option"],
        ["train", "train.svm", "--jobs", "0"],
        ["frobnicate"],
    ],
)
def test_wrong_arguments_give_2_and_no_model(shell, svm, arguments):
    result = shell(*arguments, code=2)
    assert "rror" in result.stderr and result.stdout == ""
    assert not list(svm.glob("*.manyclass"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 1:1\n2 1:x\n", "bad.svm:2:5: "),
        (b"1 1:1\n2 1:nan\n", "bad.svm:2:5: "),
        (b"1,2 1:1\n2 1:1\n", "bad.svm:1:"),
        (b"1 1:1\n1 2:1\n", "bad.svm: y has only one class"),
        (b"", "bad.svm: y has no labels"),
    ],
)
def test_bad_svmlight_text_is_shown_where_it_is(shell, tmp_path, content, message):
    (tmp_path / "bad.svm").write_bytes(content)
    result = shell("train", "bad.svm", code=2)
    assert message in result.stderr and len(result.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("*.manyclass"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "text,label\nonly one field\n", "t.csv:2:1: "),
        ("t.csv", "body,topic\na,b\n", "--text-column"),
        ("t.csv", "text,label\n", "no rows"),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"text": \n', "t.jsonl:2:"),
        (
            "t.jsonl",
            '{"text": "apple", "label": 1}\n{"text": "tree", "label": "b"}\n',
            "the label 1 is of type int",
        ),
        ("t.tsv", "text\tlabel\n.\ta\n!\tb\n", "empty vocabulary"),
    ],
)
def test_bad_tables_are_shown_where_they_are(shell, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    result = shell("train", name, code=2)
    assert message in result.stderr and len(result.stderr.strip().splitlines()) == 1


def test_missing_files_and_folders_are_named(shell, svm):
    assert "absent.svm" in shell("train", "absent.svm", code=2).stderr
    assert "no folder none" in shell("train", "train.svm", "--model", "none/m", code=2).stderr
    assert "is not a store" in shell("train", ".", "--model", "m", code=2).stderr


def test_the_default_of_C_is_that_of_the_estimator(shell, svm):
    assert shell.json("train", "train.svm", "--loss", "maxent")["settings"]["C"] == 8
    assert shell.json("train", "train.svm", "--loss", "cs")["settings"]["C"] == 1


def test_solver_and_feature_reduction_reach_the_estimator(shell, svm):
    report = shell.json("train", "train.svm", "--loss", "logistic", "--solver", "newton")
    assert report["settings"]["solver"] == "newton"
    report = shell.json("train", "train.svm", "--loss", "maxent", "--feature-reduction")
    assert report["settings"]["feature_reduction"] is True
    assert (
        "only trains loss 'squared_hinge'"
        in shell("train", "train.svm", "--loss", "hinge", "--solver", "newton", code=2).stderr
    )


def test_the_number_of_leagues_reaches_the_estimator(shell, svm):
    report = shell.json("train", "train.svm", "--solver", "leagues", "--leagues", 3)
    assert report["settings"]["leagues"] == 3
    assert (
        "4 classes cannot be divided into 5"
        in shell("train", "train.svm", "--solver", "leagues", "--leagues", 5, code=2).stderr
    )
    for options in ([], ["--loss", "llw", "--solver", "alternating"], ["--loss", "hinge"]):
        assert (
            "only to --loss ww with --solver leagues"
            in shell("train", "train.svm", "--leagues", 3, *options, code=2).stderr
        )


def test_methods_for_stores_reach_the_engine(shell, svm):
    shell("convert", "train.svm", "s")
    command = ["train", "s", "-m", "m", "--loss", "squared_hinge", "--blocks-per-batch", 1]
    by_block = [*command, "--method", "pegasos", "--update", "block", "--tol", 0.05, "--max-iter", 5000]
    assert shell.json(*by_block)["certificate"]["exit_reason"] == "converged"
    stopped = shell(*command, "--method", "streamsvm", "--force", code=3)
    assert "one pass, as StreamSVM does" in stopped.stderr and "omit --method" in stopped.stderr
    assert load_model("m").certificate["exit_reason"] == "one_pass"
    assert "one-vs-rest" in shell("train", "s", "--loss", "ww", "--method", "pegasos", code=2).stderr
    assert "--method pegasos" in shell(*command, "--update", "block", code=2).stderr
    assert "from a store" in shell("train", "train.svm", "--method", "pegasos", code=2).stderr


def test_old_spellings_still_work_with_a_warning(shell, svm):
    old = shell("train", "train.svm", "-m", "old", "--loss", "llw", "--solver", "leagues")
    assert "--solver leagues is deprecated for loss 'llw'" in old.stderr and "--solver alternating" in old.stderr
    shell("convert", "train.svm", "s")
    blocks = shell("train", "s", "-m", "m", "--loss", "squared_hinge", "--together", 1)
    assert "--together is deprecated" in blocks.stderr and "--blocks-per-batch" in blocks.stderr
    assert "--together" not in shell("train", "--help").stdout


@pytest.mark.parametrize(
    "loss", [["--loss", "ppd_hinge"], ["--loss", "max_margin"], ["--loss", "squared_hinge", "--drop", 0.1]]
)
def test_losses_that_want_rows_in_memory_refuse_a_store(shell, svm, loss):
    shell("convert", "train.svm", "s")
    refused = shell("train", "s", "-m", "m", *loss, code=2)
    assert "cannot train from a store" in refused.stderr and "--loss squared_hinge" in refused.stderr


# ---- Checkpoints


def test_a_checkpoint_wants_to_be_gone_on_from(svm, shell):
    shell("train", "train.svm", "-m", "whole", "-q")
    command = ["train", "train.svm", "-m", "m", "--checkpoint", "c", "--every", "0"]
    stopped = shell(*command, "--max-iter", "1", code=3)
    assert "resume from there with --resume" in stopped.stderr
    refused = shell(*command, code=2)
    assert "--resume" in refused.stderr and "remove" in refused.stderr
    gone_on = shell(*command, "--resume")
    assert "resuming from c" in gone_on.stderr
    assert Path("m").read_bytes() == Path("whole").read_bytes()


def test_resume_begins_where_there_is_nothing_yet(svm, shell):
    assert "no checkpoint yet" in shell("train", "train.svm", "--checkpoint", "c", "--resume").stderr


@pytest.mark.parametrize("option", [["--resume"], ["--every", "5"]])
def test_checkpoint_options_need_a_folder(svm, shell, option):
    assert "--checkpoint" in shell("train", "train.svm", *option, code=2).stderr


def test_a_checkpoint_of_other_settings_is_refused(svm, shell):
    shell("train", "train.svm", "--checkpoint", "c", "--every", "0")
    refused = shell("train", "train.svm", "--checkpoint", "c", "--resume", "-C", "2", code=2)
    assert "another problem: C (1.0, here 2.0)" in refused.stderr


def test_a_folder_that_cannot_be_written_is_a_warning(svm, shell):
    done = shell("train", "train.svm", "--checkpoint", "train.svm/c", "--every", "0")
    assert done.stderr.count("warning: could not write a checkpoint to train.svm/c (Not a directory)") == 1
    assert "RuntimeWarning" not in done.stderr


def test_probabilities_are_fitted_without_checkpoints(svm, shell):
    """The fits on the folds leave the checkpoint of the model's own fit alone."""
    command = ["train", "train.svm", "--every", "0", "--checkpoint"]
    shell(*command, "plain", "-m", "plain.manyclass")
    shell(*command, "calibrated", "-m", "calibrated.manyclass", "--calibrate", "temperature")
    assert load_model("calibrated.manyclass").settings["probability"]["method"] == "softmax"
    plain, calibrated = (CheckpointFolder(folder).read() for folder in ("plain", "calibrated"))
    assert calibrated.generation == plain.generation
    for mine, other in zip(calibrated.parts, plain.parts, strict=True):
        assert mine.keys() == other.keys() and all(np.array_equal(mine[name], other[name]) for name in mine)


def test_how_rows_were_read_is_of_one_fit(svm):
    X, y = load_svmlight(svm / "train.svm")
    estimator = fit("ww", X, y, Provenance(settings={"reading": "once"}), progress=False).estimator
    assert estimator.model_.settings["reading"] == "once"
    assert "reading" not in estimator.fit(X, y).model_.settings
