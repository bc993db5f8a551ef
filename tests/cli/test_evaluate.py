import pytest
from sklearn.metrics import f1_score, top_k_accuracy_score

from manyclass.data import load_svmlight
from manyclass.model import load_model


@pytest.fixture
def model(shell, svm):
    shell("train", "train.svm", "--model", "m.manyclass", "-C", 0.01)
    return load_model("m.manyclass")


def test_measures_agree_with_scikit_learn(shell, model):
    X, y = load_svmlight("test.svm", n_features=model.n_features)
    report = shell.json("evaluate", "m.manyclass", "test.svm", "-k", "1,2,3")
    found = model.predict(X)
    assert report["rows"] == 60
    assert report["error"] == pytest.approx((found != y).mean())
    assert report["micro_f1"] == pytest.approx(f1_score(y, found, average="micro"))
    assert report["macro_f1"] == pytest.approx(f1_score(y, found, average="macro"))
    for k in (1, 2, 3):
        expected = 1 - top_k_accuracy_score(y, model.scores(X), k=k, labels=model.classes)
        assert report["topk_error"][str(k)] == pytest.approx(expected)
    assert report["seconds_a_row"] > 0 and 0 < report["density"] <= 1


def test_tables_are_evaluated_with_the_columns_of_training(shell, tables):
    shell("train", "train.csv", "--text-column", "body", "--label-column", "topic", "--model", "t")
    assert shell.json("evaluate", "t", "test.csv")["error"] == 0
    assert shell.json("evaluate", "t", "test.jsonl", "--text-column", "text", "--label-column", "label")["error"] == 0


def test_unknown_labels_are_listed_or_counted_as_wrong(shell, model, svm):
    rows = (svm / "test.svm").read_text().splitlines()
    known = shell.json("evaluate", "m.manyclass", "test.svm")
    rows += [f"{label} {rows[0].split(' ', 1)[1]}" for label in (77, 88, 77)]
    (svm / "more.svm").write_text("\n".join(rows) + "\n")
    message = shell("evaluate", "m.manyclass", "more.svm", code=2).stderr
    assert "3 of 63 rows" in message and "77, 88;" in message and "--unknown wrong" in message
    report = shell.json("evaluate", "m.manyclass", "more.svm", "--unknown", "wrong")
    assert report["rows_of_unknown_classes"] == 3
    assert report["error"] == pytest.approx((known["error"] * 60 + 3) / 63)


def test_piped_output_has_one_pair_a_line(shell, model):
    lines = shell("evaluate", "m.manyclass", "test.svm", "-k", "3").stdout.splitlines()
    assert {"rows", "error", "top-3 error", "micro-F1"} <= {line.split("\t")[0] for line in lines}


@pytest.mark.parametrize(
    ("k", "message"),
    [
        ("0", "'0' is not a list of positive integers such as 1,3,5"),
        ("x", "'x' is not a list of positive integers such as 1,3,5"),
        ("1,,2", "'1,,2' is not a list of positive integers such as 1,3,5"),
        ("9", "error: -k 9 is more than the 4 classes of m.manyclass"),
    ],
)
def test_wrong_values_of_k_are_rejected(shell, model, k, message):
    assert message in shell("evaluate", "m.manyclass", "test.svm", "-k", k, code=2).stderr


def test_rows_that_are_missing_are_refused(shell, model, svm):
    (svm / "empty.svm").write_text("")
    assert "empty.svm: there are no rows" in shell("evaluate", "m.manyclass", "empty.svm", code=2).stderr
