import numpy as np
import pytest

from manyclass import MulticlassSVC, select_C
from manyclass.data import load_svmlight


def test_finds_what_select_C_does(shell, svm):
    X, y = load_svmlight("train.svm")
    report = shell.json("cv", "train.svm", "--loss", "ww,squared_hinge", "--C", "2^-3:2^1", "--folds", 4)
    found = select_C(MulticlassSVC(), X, y, [2.0**e for e in range(-3, 2)], cv=4)
    assert report["rows"] == 200 and list(report["losses"]) == ["ww", "squared_hinge"]
    assert report["losses"]["ww"]["C"] == [0.125, 0.25, 0.5, 1.0, 2.0]
    np.testing.assert_allclose(report["losses"]["ww"]["accuracy"], found.means)
    assert report["losses"]["ww"]["best_C"] == found.best_C


def test_prints_the_table_and_the_best(shell, svm):
    lines = shell("cv", "train.svm", "-l", "cs", "-C", "0.1,1").stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    assert rows[0] == ["loss", "C", "accuracy", "deviation", "largest gap", ""]
    assert [row[1] for row in rows[1:3]] == ["0.1", "1"]
    assert sum(row[-1] == "best" for row in rows) == 1
    assert rows[-1][0] == "cs" and rows[-1][1] in ("0.1", "1")


def test_takes_tables_of_texts(shell, tables):
    report = shell.json("cv", "train.csv", "--text-column", "body", "--label-column", "topic", "-C", "1")
    assert report["losses"]["ww"]["accuracy"] == [1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--loss", "ww,nonsense"), "there is no loss 'nonsense'"),
        (("-C", "0"), "neither a list"),
        (("-C", "2^3:3^4"), "neither a list"),
        (("-C", "2^5:2^1"), "neither a list"),
        (("-C", "one"), "neither a list"),
        (("--folds", "1"), "greater than or equal to 2"),
        (("--folds", "999"), "train.svm: cv must be between 2 and the number of rows, 200"),
    ],
)
def test_wrong_arguments(shell, svm, arguments, message):
    assert message in " ".join(shell("cv", "train.svm", *arguments, code=2).stderr.replace("│", " ").split())
