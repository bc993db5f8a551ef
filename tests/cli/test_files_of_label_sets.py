"""Rows with several labels from text to models and back, and what is wrong with label lists by file and line."""

import json

import numpy as np
import pytest

from manyclass import OneVsRestSVC
from manyclass.cli import inputs
from manyclass.data import load_svmlight, load_xmc, save_svmlight, save_xmc
from manyclass.metrics import precisions_at_k
from manyclass.model import load_model


@pytest.fixture
def files(tmp_path, label_sets):
    for name, n, seed in (("train", 200, 0), ("test", 60, 1)):
        X, Y = label_sets(n, seed)
        save_svmlight(X, Y, tmp_path / f"{name}.svm")
        save_xmc(X, Y, tmp_path / f"{name}.xmc.gz")
    return tmp_path


@pytest.fixture
def model(shell, files):
    shell("train", "train.svm", "--loss", "squared_hinge", "-m", "m.manyclass")
    return load_model("m.manyclass")


def test_text_trains_the_same_model_as_python(model):
    X, Y = load_svmlight("train.svm")
    fitted = OneVsRestSVC().fit(X, Y[:, [3, 5, 7, 9, 12]])
    assert model.classes.tolist() == [3, 5, 7, 9, 12] and model.settings["multilabel"]
    np.testing.assert_array_equal(model.weights, fitted.model_.weights)


def test_the_header_of_xmc_text_says_how_many_labels_there_are(shell, files, model):
    report = shell.json("train", "train.xmc.gz", "--loss", "squared_hinge")
    found = load_model("train.manyclass")
    assert found.classes.tolist() == list(range(13))
    np.testing.assert_allclose(found.weights[:, model.classes], model.weights, atol=0.05)
    X, Y = load_xmc("train.xmc.gz")
    assert report["training_precision_at_1"] == pytest.approx(precisions_at_k(Y, found.topk(X, 1)[0], [1])[0])
    # Whatever a file is called: no row of svmlight text has three counts and nothing else.
    (files / "plain").write_bytes(b"1 2 3\n0,2 1:1\n")
    assert shell.json("inspect", "plain")["classes"] == 3
    text = (files / "plain").read_text()
    assert shell.json("inspect", "-", "--format", "xmc", stdin=text)["features"] == 2


def test_evaluate_reads_either_format(shell, files, model):
    X, Y = load_svmlight("test.svm", n_features=model.n_features)
    expected = precisions_at_k(Y[:, model.classes], model.topk(X, 3)[0], [1, 3])
    for name in ("test.svm", "test.xmc.gz"):
        report = shell.json("evaluate", "m.manyclass", name, "-k", "1,3")
        assert report["rows"] == 60
        assert list(report["precision_at"].values()) == pytest.approx(expected)


def test_labels_never_seen_are_refused_or_missed(shell, files, model):
    lines = (files / "test.svm").read_text().splitlines()
    lines[1] = "77," + lines[1]
    (files / "later.svm").write_text("\n".join(lines) + "\n")
    refused = shell("evaluate", "m.manyclass", "later.svm", code=2)
    assert "later.svm: 1 labels in 1 of 60 rows are unknown: the model was not trained on them" in refused.stderr
    report = shell.json("evaluate", "m.manyclass", "later.svm", "--unknown", "wrong")
    assert report["labels_unknown"] == 1
    assert report["precision_at"] == shell.json("evaluate", "m.manyclass", "test.svm")["precision_at"]


def test_predictions_by_threshold_and_by_number(shell, files, model):
    X, _ = load_svmlight("test.svm", n_features=model.n_features)
    scores = model.scores(X)
    for threshold in (None, -0.5):
        given = () if threshold is None else ("--threshold", threshold)
        lines = shell("predict", "m.manyclass", "test.svm", "--scores", *given).stdout.split("\n")[:-1]
        assert len(lines) == 60
        for row, line in zip(scores, lines, strict=True):
            order = np.argsort(-row)
            best = order[row[order] > (threshold or 0.0)]
            assert line == "\t".join(f"{model.classes[c]}\t{row[c]!s}" for c in best)
    lines = shell("predict", "m.manyclass", "test.xmc.gz", "-k", 2, "--json").stdout.splitlines()
    assert [json.loads(line)["labels"] for line in lines] == model.classes[model.topk(X, 2)[0]].tolist()
    assert "omit -k" in shell("predict", "m.manyclass", "test.svm", "-k", 2, "--threshold", 1, code=2).stderr


def test_probabilities_of_labels(shell, files):
    shell("train", "train.svm", "--loss", "logistic", "-m", "l.manyclass")
    lines = shell("predict", "l.manyclass", "test.svm", "--probabilities", "--json").stdout.splitlines()
    assert all(value > 0.5 for line in lines for value in json.loads(line)["probabilities"])
    assert any(len(json.loads(line)["labels"]) > 1 for line in lines)


def test_a_store_and_its_text_give_one_model(shell, files, model):
    shell("convert", "train.svm", "store")
    shell("train", "store", "--loss", "squared_hinge", "-m", "s.manyclass")
    stored = load_model("s.manyclass")
    assert stored.classes.tolist() == model.classes.tolist()
    np.testing.assert_allclose(stored.weights, model.weights, atol=0.1)
    by_text, by_store = (shell("predict", "m.manyclass", name).stdout for name in ("train.svm", "store"))
    assert by_text == by_store


def test_inspect_counts_labels(shell, files, label_sets):
    report = shell.json("inspect", "train.svm")
    _, Y = label_sets(200, 0)
    assert report["multilabel"] and report["classes"] == 5 and report["rows_without_labels"] == 20
    assert report["labels_a_row"] == {"smallest": 0, "mean": Y.nnz / 200, "largest": 2}
    assert report["rows_a_class"]["largest"] == Y.sum(axis=0).max()
    assert "20 rows without" in shell("inspect", "train.svm").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3 1:1\n3,x 1:1\n", "bad.svm:2:3: expected a label, found 'x'"),
        ("3 1:1\n3,,4 1:1\n", "bad.svm:2:3: expected a label"),
        ("3 1:1\n3,5,3 1:1\n", "bad.svm:2:1: label 3 is given twice"),
        ("3 1:1\n3,-5 1:1\n", "bad.svm:2:3: where rows have several labels or none, each label must be an integer"),
        (
            "3 1:1\n1:1\n2.5 1:1\n",
            "bad.svm:3:1: where rows have several labels or none, each label must be an integer",
        ),
        ("1:1\n1:1\n", "bad.svm: none of the 2 rows of y has a label"),
        ("2 5 3\n0,3 1:1\n1 1:1\n", "bad.svm:2:3: label 3 is outside 0..2, the range that the header allows"),
        ("2 5 3\n0,2 1:1\n", "bad.svm:"),
    ],
)
def test_bad_label_lists_are_named_by_file_and_line(shell, files, text, message):
    (files / "bad.svm").write_text(text)
    assert message in shell("train", "bad.svm", "--loss", "hinge", code=2).stderr


def test_one_label_a_row_is_what_other_losses_and_models_want(shell, files, svm, label_sets):
    one_vs_rest = "several labels per row are trained one-vs-rest (--loss squared_hinge, hinge, logistic"
    X, Y = label_sets(200, 0)
    save_svmlight(X, Y, "several.svm")
    refused = shell("train", "several.svm", "--loss", "cs", code=2).stderr
    assert f"several.svm:1:2: expected one label, found none; {one_vs_rest}" in refused
    assert one_vs_rest in shell("train", "train.xmc.gz", code=2).stderr
    for option in (("--calibrate", "sigmoid"), ("--class-weight", "balanced")):
        assert "one label per row" in shell("train", "several.svm", "--loss", "hinge", *option, code=2).stderr
    shell("train", "train.svm", "-m", "plain.manyclass")
    assert "has one label per row" in shell("predict", "plain.manyclass", "test.svm", "--threshold", 0, code=2).stderr
    assert "has one label per row" in shell("evaluate", "plain.manyclass", "test.xmc.gz", code=2).stderr


def test_a_header_with_fewer_features_than_the_model_has(shell, files, model):
    (files / "narrow.txt").write_text("1 2 2\n0,1 1:1\n")
    assert len(shell("predict", "m.manyclass", "narrow.txt", "-k", 1).stdout.splitlines()) == 1


def test_cv_compares_the_best_labels(shell, files):
    report = shell.json("cv", "train.svm", "--loss", "hinge,squared_hinge", "--C", "0.1,1", "--folds", 3)
    assert all(0.5 < share < 1 for found in report["losses"].values() for share in found["accuracy"])
    assert "trained one-vs-rest" in shell("cv", "train.svm", "--loss", "hinge,cs", code=2).stderr


def test_files_of_several_ranks_are_put_together(files, label_sets):
    """Also where the rows of one of them happen to have one label each, or no label of another one."""
    X, Y = label_sets(60, 2)
    parts = []
    for first, last in ((0, 20), (20, 60)):
        save_svmlight(X[first:last], Y[first:last], files / "part.svm")
        parts.append(inputs.parsed(str(files / "part.svm"), "svmlight", np.float32))
    (files / "part.svm").write_text("4 1:1\n12 2:1\n")
    parts.append(inputs.parsed(str(files / "part.svm"), "svmlight", np.float32))
    assert parts[-1].classes is None
    found = inputs._as_rows(parts)
    assert found.classes.tolist() == [3, 4, 5, 7, 9, 12] and found.X.shape == (62, 20)
    np.testing.assert_array_equal(found.labels.toarray()[:60], Y[:, found.classes].toarray())
    np.testing.assert_array_equal(found.labels.toarray()[60:], [[0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
