"""Rows of tables that have no label, from the command line."""

import csv

import pytest

from manyclass.model import load_model


def write(path, rows):
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([("text", "label"), *rows])


@pytest.fixture
def tables(tmp_path):
    rows = [(f"{word} {n}", topic) for n in range(10) for word, topic in (("cat", "animals"), ("soup", "food"))]
    write(tmp_path / "whole.csv", rows)
    write(tmp_path / "gaps.csv", [*rows[:5], ("an owl", ""), *rows[5:], ("a plate", " ")])
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("train", "gaps.csv"),
        ("cv", "gaps.csv", "--C", "1", "--folds", "2"),
        ("inspect", "gaps.csv"),
        ("convert", "gaps.csv", "store"),
    ],
)
def test_they_are_refused_and_can_be_left_out(shell, tables, command):
    said = shell(*command, code=2).stderr
    assert "gaps.csv:7:1: no label in 'label'; 2 rows have no label" in said and "--skip-unlabelled" in said
    assert "unlabelled=" not in said
    assert "2 rows without a label were skipped, the first on line 7" in shell(*command, "--skip-unlabelled").stderr


def test_the_model_is_that_of_the_other_rows(shell, tables):
    shell("train", "gaps.csv", "--skip-unlabelled", "-m", "gaps", "-q")
    shell("train", "whole.csv", "-m", "whole", "-q")
    assert load_model("gaps").classes.tolist() == ["animals", "food"]
    assert (load_model("gaps").matrix != load_model("whole").matrix).sum() == 0
    shell("evaluate", "whole", "gaps.csv", code=2)
    assert shell.json("evaluate", "whole", "gaps.csv", "--skip-unlabelled")["rows"] == 20


def test_predict_needs_no_labels(shell, tables):
    shell("train", "whole.csv", "-m", "whole", "-q")
    write(tables / "new.csv", [("a cat", ""), ("", "")])
    assert len(shell("predict", "whole", "new.csv").stdout.splitlines()) == 2
