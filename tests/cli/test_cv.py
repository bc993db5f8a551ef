import numpy as np
import pytest
from losses import text_like

from manyclass import MulticlassSVC, select_C
from manyclass.cli.cv import list_of_penalties, option_of_penalties
from manyclass.data import load_svmlight, save_svmlight


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


@pytest.fixture
def hard(tmp_path):
    """Rows that are told apart best with a C of about 0.3."""
    save_svmlight(*text_like(200, 60, 6, seed=2), tmp_path / "hard.svm")
    return "cv", tmp_path / "hard.svm", "--loss", "cs"


def test_says_that_the_best_penalty_is_at_the_edge(shell, hard):
    said = " ".join(shell(*hard, "-C", "10^-3:10^-1").stderr.split())
    assert "cs: the best C, 0.1, is the largest that was tried" in said
    assert "try --C 10^-3:10^3" in said
    report = shell.json(*hard, "-C", "10^-3:10^-1")["losses"]["cs"]
    assert report["at_edge"] == "largest" and report["wider_C"][-1] == 1000


def test_says_nothing_of_a_best_penalty_within_the_grid(shell, hard):
    assert "the best C" not in shell(*hard, "-C", "0.01,0.3,100").stderr


@pytest.mark.parametrize(
    ("Cs", "text"),
    [
        ([2.0**e for e in range(-5, 8)], "2^-5:2^7"),
        ([0.001, 0.01, 0.1, 1, 10], "10^-3:10^1"),
        ([0.25, 1, 4], "0.25,1,4"),
        ([1.5], "1.5"),
        ([1.0], "1"),
    ],
)
def test_penalties_are_written_as_they_are_read(Cs, text):
    assert option_of_penalties(np.array(Cs)) == text
    np.testing.assert_allclose(list_of_penalties(text), Cs)


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
