"""A tree over labels from the shell: built into a model file, searched by predict and evaluate."""

import json

import numpy as np
import pytest

from manyclass.data import load_svmlight
from manyclass.model import LabelTree, load_model


@pytest.fixture
def model(shell, svm):
    shell("train", "train.svm", "--model", "m.manyclass", "-C", 0.01)
    return load_model("m.manyclass", mmap=False)


def test_a_model_with_a_tree_predicts_as_before_and_by_beam(shell, model):
    before = shell("predict", "m.manyclass", "test.svm", "-k", 2, "--scores").stdout
    report = shell.json("index", "m.manyclass", "--branching", 2)
    assert report["classes"] == 4 and report["levels"] == 2 and report["tree_bytes"] > 0
    assert shell("predict", "m.manyclass", "test.svm", "-k", 2, "--scores").stdout == before
    assert shell("predict", "m.manyclass", "test.svm", "-k", 2, "--scores", "--beam", 4).stdout == before
    found = shell("predict", "m.manyclass", "test.svm", "-k", 2, "--beam", 1, "--json").stdout.splitlines()
    indexed = load_model("m.manyclass")
    X, _ = load_svmlight("test.svm", n_features=model.n_features)
    expected = indexed.classes[LabelTree(indexed).topk(X, 2, beam=1)[0]]
    assert [json.loads(line)["labels"] for line in found] == expected.tolist()


def test_evaluate_tells_what_a_beam_finds(shell, model):
    shell("index", "m.manyclass", "--branching", 2, "-o", "t.manyclass")
    assert load_model("m.manyclass").tree is None
    exact = shell.json("evaluate", "m.manyclass", "test.svm", "-k", "1,2")
    wide = shell.json("evaluate", "t.manyclass", "test.svm", "-k", "1,2", "--beam", 4)
    assert wide["tree_recall_at"] == {"1": 1, "2": 1} and wide["topk_error"] == exact["topk_error"]
    narrow = shell.json("evaluate", "t.manyclass", "test.svm", "-k", "1,2", "--beam", 1)
    X, _ = load_svmlight("test.svm", n_features=model.n_features)
    tree = LabelTree(load_model("t.manyclass"))
    assert narrow["tree_recall_at"]["2"] == pytest.approx(tree.recall(X, 2, beam=1))
    assert "exact top-1 found" in shell("evaluate", "t.manyclass", "test.svm", "--beam", 1).stdout


def test_an_index_is_the_same_for_a_seed(shell, model, svm):
    for name in ("a", "b"):
        shell("index", "m.manyclass", "-o", name, "--branching", 2, "--seed", 3)
    assert (svm / "a").read_bytes() == (svm / "b").read_bytes()
    np.testing.assert_array_equal(load_model("a").weights, model.weights)


def test_what_a_beam_cannot_do_is_refused(shell, model):
    assert "no tree" in shell("predict", "m.manyclass", "test.svm", "--beam", 3, code=2).stderr
    assert "m.manyclass" in shell("evaluate", "m.manyclass", "test.svm", "--beam", 3, code=2).stderr
    shell("train", "train.svm", "--loss", "maxent", "--model", "p.manyclass")
    shell("index", "p.manyclass")
    refused = shell("predict", "p.manyclass", "test.svm", "--beam", 3, "--probabilities", code=2)
    assert "not enough for probabilities" in refused.stderr
