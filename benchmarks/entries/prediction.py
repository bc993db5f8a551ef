"""Top-5 prediction with a sparse model, and the error of smaller models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import Run, alternate
from benchmarks.protocol import store_problem, store_weights
from benchmarks.results import Bar, Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import OUR_PREDICTION, PECOS_PREDICTION, SKLEARN_PREDICTION, Solver
from manyclass.estimators import estimator_for
from manyclass.model import LinearModel, save_model

TITLES = {
    "prediction": "Top-5 of a sparse model of 12,582 classes, all rows at once and one by one",
    "compression": "Smaller models: size, error and speed",
}

# The comparison drops weights below these values.
PRUNED = (0.0, 0.03)
TIMES = ((PECOS_PREDICTION, 3), (SKLEARN_PREDICTION, 10))
# Arguments of `LinearModel.compress`, by name in the CSV file.
SMALLER: dict[str, dict[str, Any]] = {
    "float32": {},
    "float16": {"dtype": "float16"},
    "int8": {"dtype": "int8"},
    "float32, weights from 0.01 on": {"prune": 0.01},
    "int8, weights from 0.01 on": {"dtype": "int8", "prune": 0.01},
    "int8, weights from 0.03 on": {"dtype": "int8", "prune": 0.03},
    "int8, weights from 0.1 on": {"dtype": "int8", "prune": 0.1},
    "int8, the 50 largest a class": {"dtype": "int8", "keep": 50},
}


def cases() -> Iterator[Case]:
    """Every other library, in both modes, with all weights and without small ones."""
    for prune in PRUNED:
        for peer, times in TIMES:
            for measure in (batches, single_rows):
                ours = replace(OUR_PREDICTION, options=OUR_PREDICTION.options | {"prune": prune})
                peer_of = replace(peer, options=peer.options | {"prune": prune})
                yield Case("prediction", "wordnet", ours, measure, peer_of, Bar(times))
    for problem in ("wordnet", "news20"):
        for name, how in SMALLER.items():
            yield Case("compression", problem, Solver(name, "", None, options=how), size_and_error)


def batches(session: Session, case: Case) -> list[Row]:
    """Measure throughput relative to the peer with all test rows in one call."""
    ours, peer = _predictions(session, case, single=False)
    what = f"{_named(case)}, all rows at once"
    return [
        _faster(case, what, ours, peer, note=_agreement(ours[0], peer[0])),
        case.row(f"{what}: microseconds a row of ours", _figure(ours)),
        case.row(f"{what}: microseconds a row of the peer", _figure(peer)),
    ]


def single_rows(session: Session, case: Case) -> list[Row]:
    """Measure the same with one call per row, and the 99th percentile of the latency."""
    ours, peer = _predictions(session, case, single=True)
    what = f"{_named(case)}, one by one"
    late = "microseconds, 99th percentile"
    return [
        _faster(case, what, ours, peer),
        case.row(f"{what}: microseconds of ours, median", _figure(ours)),
        case.row(f"{what}: microseconds of the peer, median", _figure(peer)),
        case.row(f"{what}: {late}, of ours", _figure(ours, late)),
        case.row(f"{what}: {late}, of the peer", _figure(peer, late)),
    ]


def size_and_error(session: Session, case: Case) -> list[Row]:
    """Measure file size, density, test errors, and time per row on two threads."""
    problem = session.problem(case.problem)
    model = session.once(("model", case.problem), lambda: _trained(session, case.problem))
    smaller = model.compress(**case.ours.options) if case.ours.options else model
    path = session.runner.folder / "smaller.manyclass"
    save_model(smaller, path)
    best, seconds = None, []
    for _ in range(session.repetitions + 1):
        start = perf_counter()
        best, _ = smaller.topk(problem.X_test, min(5, smaller.n_classes), n_jobs=2)
        seconds.append(perf_counter() - start)
    hit = best == problem.y_test[:, None]
    return [
        case.row("MB of the file", path.stat().st_size / 1e6),
        case.row("density, %", 100 * smaller.density),
        case.row("error, %", 100 * (1 - hit[:, 0].mean())),
        case.row("top-5 error, %", 100 * (1 - hit.any(axis=1).mean())),
        case.row("microseconds a row", 1e6 * median(seconds[1:]) / problem.X_test.shape[0]),
    ]


def _trained(session: Session, name: str) -> LinearModel:
    problem = session.problem(name)
    settings = {"C": 1.0, "fit_intercept": True, "random_state": 0, "tol": 0.1, "n_jobs": 2}
    return estimator_for("squared_hinge", **settings).fit(problem.X, problem.y).model_


def _predictions(session: Session, case: Case, *, single: bool) -> tuple[list[Run], list[Run]]:
    model = session.once(("model", case.problem), lambda: _trained(session, case.problem))
    prune = case.ours.options["prune"]
    weights = session.once(("weights", case.problem, prune), lambda: _weights(session, case.problem, model, prune))
    rows = session.once(("test rows", case.problem), lambda: _test_rows(session, case.problem))
    asked = {"rows": str(rows), "weights": weights, "single": single}
    times = session.repetitions
    return alternate(
        lambda: session.runner.do(case.ours, "predict", **asked),
        lambda: session.runner.do(case.peer, "predict", **asked),
        (times, times),
    )


def _weights(session: Session, name: str, model: LinearModel, prune: float) -> str:
    stem = str(session.runner.folder / f"{name}-{prune}-weights")
    matrix = sp.csr_matrix(model.compress(prune=prune).matrix)
    store_weights(stem, sp.vstack([matrix, sp.csr_matrix(model.intercept)], format="csr"))
    return stem


def _test_rows(session: Session, name: str) -> Path:
    problem = session.problem(name)
    path = session.runner.folder / f"{name}-test.npz"
    store_problem(path, problem.X_test.astype(np.float32), problem.y_test)
    return path


def _figures(runs: list[Run], name: str = "microseconds a row") -> list[float]:
    return [run.reply.figures[name] for run in runs]


def _figure(runs: list[Run], name: str = "microseconds a row") -> float:
    return median(_figures(runs, name))


def _faster(case: Case, what: str, ours: list[Run], peer: list[Run], note: str = "") -> Row:
    return case.row(
        f"{what}: times faster",
        _figure(peer) / _figure(ours),
        bar=case.bar,
        repetitions={"ours": _figures(ours), "peer": _figures(peer)},
        versions=versions_of(ours[0], peer[0]),
        note=note,
    )


def _named(case: Case) -> str:
    prune = case.ours.options["prune"]
    return f"weights from {prune:g} on" if prune else "all weights"


def _agreement(ours: Run, peer: Run) -> str:
    return f"accuracy {ours.reply.figures['accuracy']:.4f}, of the peer {peer.reply.figures['accuracy']:.4f}"
