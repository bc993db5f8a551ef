"""All libraries are measured alike, on the same weights and rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.entries import ENTRIES
from benchmarks.measure import Runner
from benchmarks.problems import encode
from benchmarks.results import write
from benchmarks.session import Session

from benchmarks import prediction_report


@pytest.fixture
def session(tmp_path):
    rng = np.random.default_rng(0)
    codes = np.arange(90) % 9
    X = sp.csr_matrix((rng.random((90, 30)) < 0.1) + (codes[:, None] == np.arange(30) % 9), dtype=np.float32)
    return Session(Runner(tmp_path), repetitions=1, load=lambda name: encode(name, X, codes, X, codes))


def test_ours_and_scikit_learn_predict_the_same(session):
    cases = [case for case in ENTRIES["prediction"].cases if case.peer.environment is None]
    for case in cases[:2]:  # at once, and one by one
        rows = case.run(session)
        ratio = next(row for row in rows if row.bar)
        assert ratio.value > 0
        if "at once" in ratio.metric:
            ours, peer = ratio.note.removeprefix("accuracy ").split(", of the peer ")
            assert ours == peer and float(ours) > 0.5


def test_the_tables_of_the_document(session, tmp_path):
    rows = [row for case in ENTRIES["compression"].cases[:3] for row in case.run(session)]
    write(tmp_path / "results.csv", rows)
    document = tmp_path / "prediction.md"
    document.write_text(
        "".join(f"<!-- {name}: begin --><!-- {name}: end -->" for name in ("prediction", "compression"))
    )
    prediction_report.write(tmp_path / "results.csv", document)
    lines = document.read_text().splitlines()
    sizes = [float(line.split("|")[2]) for line in lines if line.startswith(("| float", "| int8"))]
    assert len(sizes) == 3 and sizes[1] > sizes[2]
