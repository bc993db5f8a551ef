"""LLW with C = inf: the smallest weights with zero loss."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from losses import text_like

from manyclass import MulticlassSVC

TIGHT = {"dtype": "float64", "tol": 1e-8, "max_iter": 10**6, "fit_intercept": False}


def test_equals_an_independent_solver():
    X, y = text_like(30, 60, 4, seed=0)
    W = cp.Variable((60, 4))
    others = np.arange(4) != y[:, None]
    conditions = [cp.sum(W, axis=1) == 0, cp.multiply(others, 1 + X.toarray() @ W) <= 0]
    best = cp.Problem(cp.Minimize(cp.sum_squares(W) / 2), conditions).solve(solver=cp.CLARABEL)
    fitted = MulticlassSVC("llw", C=np.inf, **TIGHT).fit(X, y)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)
    assert np.inf == fitted.C and np.isfinite(fitted.C_)
    scores = X @ fitted.coef_.T
    assert (scores[others] < -1 + 1e-4).all()


def test_rows_that_cannot_be_told_apart(monkeypatch):
    monkeypatch.setattr("manyclass.estimators.svc.UNCONSTRAINED", [1.0, 10.0])
    X, y = text_like(30, 60, 4, seed=0)
    X = sp.vstack([X[:1], X[:1], X[2:]], format="csr")
    y[:2] = 0, 1
    with pytest.raises(ValueError, match="some rows still have a loss"):
        MulticlassSVC("llw", C=np.inf, tol=1e-3).fit(X, y)


def test_is_rejected_for_other_losses_and_weights():
    X, y = text_like(30, 60, 4, seed=0)
    with pytest.raises(ValueError, match='C=inf is only available for loss="llw"'):
        MulticlassSVC("ww", C=np.inf).fit(X, y)
    with pytest.raises(ValueError, match="have no effect with C=inf"):
        MulticlassSVC("llw", C=np.inf).fit(X, y, sample_weight=np.ones(30))
