"""Numbers for people are written in one way by all commands; JSON has them plain."""

import re

import pytest

from manyclass.cli import output
from manyclass.data import save_svmlight

UNGROUPED = re.compile(r"(?<![\d.,])\d{4,}(?![\d.])")
COMMANDS = {
    "train": ["train", "big.svm", "-m", "m"],
    "inspect data": ["inspect", "big.svm"],
    "inspect model": ["inspect", "m"],
    "evaluate": ["evaluate", "m", "big.svm"],
    "convert": ["convert", "big.svm", "store"],
    "inspect store": ["inspect", "store", "--verify"],
    "remove": ["remove", "store", "--rows", "0-1099"],
    "cv": ["cv", "big.svm", "--folds", 2, "--C", "1", "--loss", "mmr"],
    "compress": ["compress", "m", "-o", "small", "--dtype", "int8"],
    "index": ["index", "m"],
}


@pytest.fixture
def big(shell, tmp_path, blobs):
    X, y = blobs(3000, 0, d=1200)
    save_svmlight(X, y, tmp_path / "big.svm")
    return shell


def test_counts_are_grouped_by_every_command(big):
    for name, command in COMMANDS.items():
        result = big(*command)
        for line in [*result.stdout.splitlines(), *result.stderr.splitlines()]:
            assert not UNGROUPED.search(line), (name, line)
    assert "rows\t3,000" in big("train", "big.svm", "-m", "again").stdout


def test_counts_are_grouped_in_errors(big, tmp_path):
    (tmp_path / "other.svm").write_text((tmp_path / "big.svm").read_text().replace("\n", "\n1"))
    big("train", "big.svm", "-m", "m", "-q")
    assert "3,000 of 3,001 rows have labels" in big("evaluate", "m", "other.svm", code=2).stderr
    endless = ("--tol", "1e-300", "--dtype", "float64", "-m", "n", "-q")
    assert "stopped after 1,001 passes" in big("train", "big.svm", *endless, "--max-iter", 1001, code=3).stderr
    assert "stopped after 1 pass with" in big("train", "big.svm", *endless, "--max-iter", 1, code=3).stderr


def test_json_has_plain_numbers(big):
    assert big.json("inspect", "big.svm")["rows"] == 3000


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (output.count(1234567), "1,234,567"),
        (output.counted(1, "row"), "1 row"),
        (output.counted(0, "row"), "0 rows"),
        (output.counted(1234, "row"), "1,234 rows"),
        (output.number(12345), "12,345"),
        (output.number(0.0123456789), "0.0123457"),
        (output.spread({"smallest": 1, "largest": 12345, "mean": 2.25}), "1 to 12,345, mean 2.2"),
        (output.spread({"smallest": 1, "largest": 2, "median": 1.5}), "1 to 2, median 1.5"),
    ],
)
def test_numbers(written, text):
    assert written == text


def test_verify_says_that_all_is_well(shell, svm):
    shell("convert", "train.svm", "store", "--blocks", 3)
    assert "verified\tall 3 blocks are intact" in shell("inspect", "store", "--verify").stdout
    shell("convert", "train.svm", "one", "--blocks", 1)
    assert "verified\tthe block is intact" in shell("inspect", "one", "--verify").stdout
    assert "verified" not in shell("inspect", "store").stdout
    assert shell.json("inspect", "store", "--verify")["verified"] is True


@pytest.mark.parametrize("text", ["12,345", "-0.5", "1.5e-05", "12.34 %", "0.12 ms", "5.0 kB"])
def test_columns_of_numbers_are_told_from_text(text):
    assert output.NUMBER.fullmatch(text)
    for other in (f"{text} of them", "54 to 78, median 68.5", "3 (a, b, c)", "", "news"):
        assert not output.NUMBER.fullmatch(other)
