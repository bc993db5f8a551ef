"""Measurements behind the defaults: test error and log loss against C, and quality of calibrated probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import Problem
from benchmarks.results import Row
from benchmarks.session import Case, Session
from benchmarks.solvers import Solver
from manyclass import CalibratedClassifier
from manyclass.estimators import estimator_for

TITLES = {
    "penalties": "Accuracy and log loss of the logistic losses against C",
    "calibration": "Probabilities of calibrated scores: temperature and sigmoid",
}

PENALTIES = tuple(2.0**e for e in range(-2, 7))
# Rows of unit length, then dense rows as they are in the files.
TEXTS = ("news20", "wordnet-min5", "clinc150", "cve-cwe", "reuters")
DENSE = ("letter", "satimage", "usps")
CALIBRATED = ("ww", "cs", "squared_hinge")
# Larger problems are cut to their largest classes, and to a random sample of the rows.
MOST_CLASSES, MOST_ROWS = 300, 10_000
BINS = 15
# The metrics of the table against C.
SHOWN = ("accuracy, %", "log loss")


def cases() -> Iterator[Case]:
    """Every loss on every problem."""
    for problem in (*TEXTS, *DENSE):
        for loss in ("maxent", "logistic"):
            yield Case("penalties", problem, Solver(loss, "", None, loss), against_penalties)
        for loss in CALIBRATED:
            yield Case("calibration", problem, Solver(loss, "", None, loss), calibrated)


def against_penalties(session: Session, case: Case) -> list[Row]:
    """Measure test accuracy and log loss along a path of C."""
    problem = _part(session, case.problem)
    solver = "newton" if case.ours.loss == "logistic" and case.problem in DENSE else "auto"
    estimator = estimator_for(case.ours.loss, solver=solver, max_iter=3000, n_jobs=2)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for fitted in estimator.path(problem.X, problem.y, PENALTIES):
            found = judge(fitted.predict_log_proba(problem.X_test), problem.y_test)
            note = f"gap {fitted.certificate_.gap:.2g}"
            rows += [case.row(f"{name} at C = {fitted.C:g}", found[name], note=note) for name in SHOWN]
    return rows


def calibrated(session: Session, case: Case) -> list[Row]:
    """Measure all metrics for each calibration method, at C = 1."""
    problem = _part(session, case.problem)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for method in ("temperature", "sigmoid"):
            estimator = estimator_for(case.ours.loss, max_iter=300, n_jobs=2)
            fitted = CalibratedClassifier(estimator, method=method).fit(problem.X, problem.y)
            found = judge(fitted.predict_log_proba(problem.X_test), problem.y_test)
            rows += [case.row(f"{name} by {method}", value) for name, value in found.items()]
    return rows


def judge(log_p: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return accuracy, log loss, Brier score, and calibration error of the predicted class in 15 equal bins."""
    rows = np.arange(len(truth))
    p = np.exp(log_p.astype(np.float64))
    best = p.argmax(axis=1)
    right, sure = best == truth, p[rows, best]
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    misses = np.bincount(bins, sure - right, minlength=BINS)
    return {
        "accuracy, %": 100 * right.mean(),
        "log loss": -log_p[rows, truth].astype(np.float64).mean(),
        "Brier score": (p**2).sum(axis=1).mean() - 2 * p[rows, truth].mean() + 1,
        "calibration error, %": 100 * np.abs(misses).sum() / len(truth),
    }


def _part(session: Session, name: str) -> Problem:
    return session.once(("part", name), lambda: part_of(session.problem(name)))


def part_of(problem: Problem) -> Problem:
    """Return the rows of the largest classes, or a sample of them, and the test rows of these classes."""
    sizes = np.bincount(problem.y)
    largest = np.sort(np.argsort(-sizes, kind="stable")[:MOST_CLASSES])
    learn = np.flatnonzero(np.isin(problem.y, largest))
    if learn.size > MOST_ROWS:
        learn = np.sort(np.random.default_rng(0).choice(learn, MOST_ROWS, replace=False))
    kept = np.unique(problem.y[learn])
    test = np.flatnonzero(np.isin(problem.y_test, kept))
    y, y_test = np.searchsorted(kept, problem.y[learn]), np.searchsorted(kept, problem.y_test[test])
    return Problem(problem.name, problem.X[learn], y, problem.X_test[test], y_test)
