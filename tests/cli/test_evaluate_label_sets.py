"""What evaluate reports of rows with sets of labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import f1_score

from manyclass.data import load_svmlight, save_svmlight
from manyclass.metrics import propensities, ranking_metrics
from manyclass.model import load_model, save_model


@pytest.fixture
def model(shell, tmp_path, label_sets):
    for name, n, seed in (("train.svm", 200, 0), ("test.svm", 60, 1)):
        save_svmlight(*label_sets(n, seed, signal=1.0), tmp_path / name)
    shell("train", "train.svm", "--loss", "squared_hinge", "-m", "m.manyclass")
    return load_model("m.manyclass", mmap=False)


def measured(model, Y, X, **options):
    p = propensities(model.label_counts, 200, **options)
    return ranking_metrics(Y, model.topk(X, 3)[0], [1, 3], propensity=p)


def test_all_measures_of_label_sets(shell, model):
    X, Y = load_svmlight("test.svm", n_features=model.n_features)
    Y = Y[:, model.classes]
    expected = measured(model, Y, X)
    report = shell.json("evaluate", "m.manyclass", "test.svm", "-k", "1,3")
    for name in ("precision", "ndcg", "recall", "coverage", "ps_precision", "ps_ndcg"):
        values = {str(k): value for k, value in getattr(expected, name).items()}
        assert report[f"{name}_at"] == pytest.approx(values), name
    predicted = model.scores(X) > 0
    assert report["micro_f1"] == pytest.approx(f1_score(Y.toarray(), predicted, average="micro"))
    assert report["macro_f1"] == pytest.approx(f1_score(Y.toarray(), predicted, average="macro"))
    assert report["propensities"] == "training" and report["rows_without_labels"] == 6
    assert report["labels_a_row"] == Y.nnz / 60
    assert report["seconds_a_row"] > 0 and report["file_bytes"] > report["model_bytes"] > 0


def test_a_store_is_measured_as_its_text(shell, model):
    shell("convert", "test.svm", "store", "--blocks", 3)
    by_text, by_store = (shell.json("evaluate", "m.manyclass", name) for name in ("test.svm", "store"))
    by_text.pop("seconds_a_row"), by_store.pop("seconds_a_row")
    assert by_text == by_store


def test_propensities_have_another_shape_or_another_source(shell, model):
    X, Y = load_svmlight("test.svm", n_features=model.n_features)
    expected = measured(model, Y[:, model.classes], X, A=0.6, B=2.6)
    report = shell.json("evaluate", "m.manyclass", "test.svm", "-k", "1,3", "--propensity", "0.6,2.6")
    assert report["ps_precision_at"]["3"] == pytest.approx(expected.ps_precision[3])
    for wrong in ("0.6", "a,b", "-1,2", "0.5,0"):
        shell("evaluate", "m.manyclass", "test.svm", "--propensity", wrong, code=2)
    model.label_counts = None
    save_model(model, "old.manyclass")
    assert shell.json("evaluate", "old.manyclass", "test.svm")["propensities"] == "evaluation"
    assert "the model has no counts" in shell("evaluate", "old.manyclass", "test.svm").stdout


def test_unknown_labels_of_a_store_are_refused_or_missed(shell, model, tmp_path, label_sets):
    X, Y = label_sets(60, 1, signal=1.0)
    more = sp.hstack([Y, sp.csr_matrix((60, 7)), sp.csr_matrix(np.eye(60, 1, dtype=int))], "csr")
    save_svmlight(X, more, tmp_path / "later.svm")
    shell("convert", "later.svm", "store")
    for name in ("later.svm", "store"):
        refused = shell("evaluate", "m.manyclass", name, code=2).stderr
        assert f"{name}: 1 labels in 1 of 60 rows are unknown: the model was not trained on them" in refused
        report = shell.json("evaluate", "m.manyclass", name, "--unknown", "wrong")
        known = shell.json("evaluate", "m.manyclass", "test.svm")
        assert report["labels_unknown"] == 1 and report["rows_without_labels"] == 5
        assert report["precision_at"] == known["precision_at"] and report["micro_f1"] < known["micro_f1"]


def test_the_tree_of_a_model_for_label_sets(shell, model):
    shell("index", "m.manyclass", "--branching", 2)
    exact = shell.json("evaluate", "m.manyclass", "test.svm")
    wide = shell.json("evaluate", "m.manyclass", "test.svm", "--beam", 5)
    assert wide["tree_recall_at"]["5"] == 1 and wide["ndcg_at"] == exact["ndcg_at"]
    assert "micro_f1" not in wide
    assert (
        "pass -k for the number of labels per row"
        in shell("predict", "m.manyclass", "test.svm", "--beam", 3, code=2).stderr
    )
    assert len(shell("predict", "m.manyclass", "test.svm", "--beam", 3, "-k", 2).stdout.splitlines()) == 60


def test_printed_measures(shell, model):
    lines = [line.split("\t") for line in shell("evaluate", "m.manyclass", "test.svm").stdout.splitlines()]
    names = [f"{name}@{k}" for name in ("P", "nDCG", "PSP", "PSnDCG") for k in (1, 3, 5)]
    rest = ["recall@5", "coverage@5", "micro-F1", "macro-F1", "time per row", "model file", "density"]
    assert {*names, *rest} <= {name for name, _ in lines}
    assert dict(lines)["time per row"].endswith(" ms")


def test_no_rows_have_no_labels(model):
    assert model.predict(sp.csr_matrix((0, model.n_features), dtype=np.float32)).shape == (0, 5)
