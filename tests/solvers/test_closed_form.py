"""LLW below the C at which variables leave their bounds: the weights are known without a pass."""

import numpy as np
import pytest
import scipy.sparse as sp
from losses import text_like

from manyclass import MulticlassSVC
from manyclass.data import check_matrix
from manyclass.solvers import TrainingSet, closed_form


def largest_C(weighted, y, K, X=None):
    """1 / max over rows and other classes of -(S_c - S / K).x_i, and the sums `S_c` of the weighted rows."""
    X = weighted if X is None else X
    S = np.stack([np.asarray(weighted.tocsr()[y == c].sum(axis=0)).ravel() for c in range(K)])
    scores = X @ (S - S.mean(axis=0)).T
    scores[np.arange(len(y)), y] = 0
    return -1 / scores.min(), S


@pytest.mark.parametrize("share", [0.5, 0.999, 1.001, 2.0])
def test_weights_are_known_below_the_largest_C(share):
    X, y = text_like(100, 40, 5, seed=0)
    C, S = largest_C(X, y, 5)
    fitted = MulticlassSVC("llw", C=share * C, fit_intercept=False, dtype="float64", tol=1e-9, max_iter=10**5).fit(
        X, y
    )
    known = share * C * (S - S.mean(axis=0))
    if share < 1:
        assert [row["epochs"] for row in fitted.history_] == [0]
        assert fitted.certificate_.gap == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(fitted.coef_, known, atol=1e-10)
    else:
        assert fitted.history_[-1]["epochs"] > 0
        assert np.abs(fitted.coef_ - known).max() > 1e-6


def test_with_weights_and_intercept():
    X, y = text_like(100, 40, 5, seed=1)
    weight = np.random.default_rng(0).uniform(0.5, 2, 100)
    parameters = {"C": 1e-3, "dtype": "float64", "tol": 1e-9, "max_iter": 10**5}
    fitted = MulticlassSVC("llw", **parameters).fit(X, y, weight)
    assert [row["epochs"] for row in fitted.history_] == [0]
    assert fitted.certificate_.gap == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize("rows_at_once", [1, 7, 100])
@pytest.mark.parametrize("decides", [0, 13, 29])
def test_bounds_are_optimal_if_no_other_class_scores_below_minus_one(constant, rows_at_once, decides, monkeypatch):
    monkeypatch.setattr(closed_form, "ROWS_AT_ONCE", rows_at_once)
    X, y = text_like(30, 40, 5, seed=2)
    X = X.toarray()
    X[decides] *= 5
    weights = np.random.default_rng(3).uniform(0.5, 2, 30)
    with_constant = sp.csr_matrix(np.hstack([X, np.full((30, 1), constant)]))
    largest, _ = largest_C(sp.diags(weights) @ with_constant, y, 5, with_constant)
    for share, expected in ((0.5, True), (0.999, True), (1.001, False), (1.5, False), (3.0, False)):
        C = share * largest * weights
        data = TrainingSet(check_matrix(X), y.astype(np.int32), C, 5, constant=constant)
        assert closed_form.bounds_are_optimal(data) is expected


def test_the_score_of_the_own_class_may_be_any():
    X = np.array([[1.0]] * 11 + [[-2.0], [0.0]])
    data = TrainingSet(check_matrix(X), np.array([0] * 12 + [1], np.int32), np.full(13, 0.2), 2)
    assert 0.2 * X.sum() / 2 * X.min() < -1
    assert closed_form.bounds_are_optimal(data)


def test_the_state_at_the_bounds():
    data = TrainingSet(check_matrix(np.eye(3)), np.array([1, 0, 2], np.int32), np.array([0.5, 2.0, 3.0]), 3)
    state = closed_form.state_at_bounds(data)
    assert state["indptr"].tolist() == [0, 2, 4, 6] and state["indptr"].dtype == np.int64
    assert state["classes"].tolist() == [0, 2, 1, 2, 0, 1] and state["classes"].dtype == np.int32
    assert state["values"].tolist() == [0.5, 0.5, 2, 2, 3, 3]
