"""Metrics of probabilities follow their definitions, and the tables of docs/choosing.md follow from the figures."""

import numpy as np
import pytest
from benchmarks.entries import ENTRIES
from benchmarks.entries.defaults import MOST_CLASSES, MOST_ROWS, judge, part_of
from benchmarks.measure import Runner
from benchmarks.problems import encode
from benchmarks.results import write
from benchmarks.session import Session
from losses import text_like
from sklearn.metrics import log_loss

from benchmarks import defaults_report


def test_judged_as_defined():
    p = np.random.default_rng(0).dirichlet([0.3] * 4, 500)
    truth = np.array([np.random.default_rng(i).choice(4, p=p[i]) for i in range(500)])
    found = judge(np.log(p), truth)
    assert found["accuracy, %"] == pytest.approx(100 * np.mean(p.argmax(axis=1) == truth))
    assert found["log loss"] == pytest.approx(log_loss(truth, p))
    assert found["Brier score"] == pytest.approx(np.mean(((p - np.eye(4)[truth]) ** 2).sum(axis=1)))
    # Drawn from these probabilities, they are right but for chance; sure of everything, they are wrong as often.
    sure = np.where(np.eye(4)[p.argmax(axis=1)] > 0, 0.0, -50.0)
    assert found["calibration error, %"] < 10
    assert judge(sure, truth)["calibration error, %"] == pytest.approx(100 - found["accuracy, %"])


def test_large_problems_are_cut_to_their_largest_classes():
    X, y = text_like(2000, 50, 400)
    part = part_of(encode("any", X, y, X[:500], y[:500]))
    sizes = np.sort(np.bincount(y))[::-1]
    assert part.K == MOST_CLASSES and part.X.shape[0] == sizes[:MOST_CLASSES].sum() <= MOST_ROWS
    assert set(part.y_test) <= set(part.y)


def test_the_tables_of_the_document(tmp_path):
    X, y = text_like(120, 40, 4)
    session = Session(Runner(tmp_path), repetitions=1, load=lambda name: encode(name, X, y, X, y))
    names = ("penalties", "calibration")
    cases = [case for name in names for case in ENTRIES[name].cases if case.problem == "reuters"]
    write(tmp_path / "results.csv", [row for case in cases for row in case.run(session)])
    document = tmp_path / "choosing.md"
    document.write_text("".join(f"<!-- {name}: begin --><!-- {name}: end -->" for name in names))
    defaults_report.write(tmp_path / "results.csv", document)
    lines = [line for line in document.read_text().splitlines() if line.startswith("| reuters")]
    assert [line.split("|")[2].strip(" `") for line in lines] == ["maxent", "logistic", "ww", "cs", "squared_hinge"]
    assert all(line.count(" / ") == (6 if number < 2 else 4) for number, line in enumerate(lines))
