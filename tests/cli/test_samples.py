"""The files of `manyclass samples` are what they are called, and can be learned from."""

import pytest

from manyclass.data.samples import sample_files

COLUMNS = ("--text-column", "body", "--label-column", "topic")


@pytest.fixture
def sampled(shell):
    assert shell("samples").stdout.split() == sample_files()
    return shell


def test_tables(sampled):
    for name in ("news.csv", "news.parquet"):
        sampled("train", name, *COLUMNS, "-q", "--force", "-m", "m")
        assert sampled.json("evaluate", "m", "test.csv")["error"] < 0.2
    ids = [
        line.split("\t")[0] for line in sampled("predict", "m", "new.csv", "--id-column", "id").stdout.splitlines()
    ]
    assert ids == [str(n) for n in range(1, 21)]
    answer = sampled("predict", "m", "-", stdin="parliament votes on the budget\n").stdout
    assert answer == "politics\n"


def test_rows_of_features(sampled):
    sampled("train", "big.svm", "-q", "-m", "m")
    assert sampled.json("evaluate", "m", "test.svm")["error"] < 0.3
    assert sampled.json("inspect", "big.svm.gz")["rows"] == sampled.json("inspect", "big.svm")["rows"]
    assert sum(sampled.json("inspect", f"part-{rank}.svm")["rows"] for rank in (0, 1)) == 600


def test_sets_of_labels(sampled):
    sampled("train", "train.txt", "--loss", "ppd_squared_hinge", "-q", "-m", "m")
    assert sampled.json("evaluate", "m", "test.txt")["precision_at"]["1"] > 0.6
    assert sampled.json("inspect", "train.txt")["multilabel"]


def test_nothing_is_overwritten(shell, tmp_path):
    (tmp_path / "test.svm").write_text("mine")
    assert "test.svm already exists" in shell("samples", code=2).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["test.svm"]
    shell("samples", "new/folder")
    assert (tmp_path / "new" / "folder" / "news.csv").exists()
