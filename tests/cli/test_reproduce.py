"""The papers' tables, on the smallest data set; the others only take longer."""

import csv
import os
import shutil
from pathlib import Path

import pytest

SMALL = ("iris", "iris_xcsvm")


@pytest.fixture
def small(tmp_path, monkeypatch):
    root = os.environ.get("MANYCLASS_DATA")
    if root is None:
        pytest.skip("MANYCLASS_DATA names no folder with data sets")
    for name in SMALL:
        shutil.copytree(Path(root) / name, tmp_path / "data" / name)
    monkeypatch.setenv("MANYCLASS_DATA", str(tmp_path / "data"))
    return tmp_path


@pytest.mark.parametrize(("table", "rows"), [("alber-b1", 6), ("thesis-5", 9)])
def test_writes_a_table_and_a_picture(shell, small, table, rows):
    printed = shell("reproduce", table).stdout
    assert "missing:" in printed and "letter" in printed.splitlines()[-1] and "[1] iris:" in printed
    with open(f"{table}.csv", encoding="utf-8") as stream:
        found = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    assert len(found) == rows and {row["data set"] for row in found} == {"iris"}
    error = next(name for name in found[0] if name in ("error %", "test accuracy %"))
    paper = next(name for name in found[0] if name.startswith(("paper's error", "thesis' %")))
    for row in found:
        assert float(row["difference"]) == pytest.approx(float(row[error]) - float(row[paper]), abs=0.011)
    assert Path(f"{table}.png").read_bytes()[:4] == b"\x89PNG"


def test_needs_data_and_makes_the_folder(shell, monkeypatch, tmp_path):
    monkeypatch.delenv("MANYCLASS_DATA", raising=False)
    assert "set MANYCLASS_DATA to a folder" in shell("reproduce", "alber-b1", code=2).stderr
    monkeypatch.setenv("MANYCLASS_DATA", str(tmp_path))
    assert "missing: SensIT" in shell("reproduce", "alber-b1", "-o", "new/folder").stdout
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["alber-b1.csv", "alber-b1.png"]
    (tmp_path / "file").write_text("")
    assert "file: File exists" in shell("reproduce", "alber-b1", "-o", "file", code=2).stderr
