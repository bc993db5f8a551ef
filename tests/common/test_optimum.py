"""Primal and dual value equal the optimum that an independent solver finds."""

import numpy as np
import pytest
import scipy.sparse as sp
from losses import LOSSES, make, text_like
from oracle import optimum

from manyclass.data import check_matrix
from manyclass.problems import PROBLEMS
from manyclass.solvers import TrainingSet
from manyclass.solvers.layout import tail_rows, wave_size

CASES = {
    "plain": {},
    "intercept": {"fit_intercept": True, "intercept_scaling": 0.7},
    "large C": {"C": 20.0},
    "small C": {"C": 0.02},
    "class weights": {"class_weight": {0: 3.0, 2: 0.25}},
    "balanced": {"class_weight": "balanced"},
}


def check(loss, X, y, *, sample_weight=None, C_rows=None, **parameters):
    """Fit to a tiny gap and compare both values with the oracle's."""
    parameters = {"fit_intercept": False} | parameters
    K = len(np.unique(y))
    fitted = make(loss, tol=1e-7, max_iter=200_000, dtype="float64", **parameters).fit(X, y, sample_weight)
    C = np.full(len(y), parameters.get("C", 1.0)) if C_rows is None else C_rows
    if sample_weight is not None:
        C = C * sample_weight
    constant = parameters.get("intercept_scaling", 1.0) if parameters["fit_intercept"] else 0.0
    best = optimum(loss, X, y, C, K, constant)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-5)
    assert fitted.certificate_.dual == pytest.approx(best, rel=1e-5)
    assert fitted.certificate_.dual <= best * (1 + 1e-8)
    assert fitted.certificate_.gap <= 1e-7
    return fitted


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_equals_an_independent_solver(loss, case):
    X, y = text_like(60, 40, 5, seed=1)
    parameters = CASES[case]
    weight = parameters.get("class_weight")
    C = np.full(60, parameters.get("C", 1.0))
    if weight == "balanced":
        C = C * (60 / (5 * np.bincount(y)))[y]
    elif weight:
        C = C * np.array([weight.get(label, 1.0) for label in y])
    check(loss, X, y, C_rows=C, **parameters)


@pytest.mark.parametrize("loss", LOSSES)
def test_with_sample_weights(loss):
    X, y = text_like(50, 40, 4, seed=2)
    check(loss, X, y, sample_weight=np.random.default_rng(0).uniform(0.1, 4, 50))


@pytest.mark.parametrize("loss", LOSSES)
def test_with_empty_rows(loss):
    X, y = text_like(40, 30, 4, seed=3)
    X = sp.csr_matrix(sp.diags((np.arange(40) % 5 > 0).astype(float)) @ X)
    X.eliminate_zeros()
    assert (np.diff(X.indptr) == 0).sum() == 8
    check(loss, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_with_duplicate_rows(loss):
    X, y = text_like(20, 30, 4, seed=4)
    check(loss, sp.vstack([X, X, X]).tocsr(), np.concatenate([y, y, y]))


@pytest.mark.parametrize("loss", LOSSES)
def test_same_row_in_two_classes(loss):
    X, y = text_like(20, 30, 4, seed=4)
    check(loss, sp.vstack([X, X]).tocsr(), np.concatenate([y, (y + 1) % 4]))


@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes(loss):
    X, y = text_like(40, 30, 2, seed=5)
    check(loss, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_row_a_class(loss):
    X, y = text_like(6, 30, 6, seed=6)
    check(loss, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_with_one_row(loss):
    X, y = text_like(40, 30, 4, seed=7)
    y[y == 3] = 0
    y[0] = 3
    check(loss, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_dense_rows_with_negative_values(loss):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 6)) / 3
    check(loss, X, rng.integers(0, 3, 40))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if PROBLEMS[loss].kernel in ("coupled", "maximum_entropy")])
def test_waves_and_tail_features(loss):
    """Enough classes for several rows to move together and (where weights are sparse) for features without any."""
    X, y = text_like(400, 3000, 310, seed=9, nnz=140)
    data = TrainingSet(check_matrix(X), y.astype(np.int32), np.ones(len(y)), 310)
    assert wave_size(data, PROBLEMS[loss]) > 1 and tail_rows(310) > 1
    fitted = make(loss, tol=1e-6, dtype="float64", max_iter=5000).fit(X, y)
    assert fitted.certificate_.gap <= 1e-6
