"""Feature reduction: classes have weights only for features of their own rows, with optimal values."""

import numpy as np
import pytest
from losses import make, text_like
from oracle import optimum

REDUCIBLE = ("ww", "cs", "maxent", "hinge", "squared_hinge", "logistic")
TIGHT = {"tol": 1e-7, "dtype": "float64", "max_iter": 500_000, "feature_reduction": True}


def seen(X, y, K):
    """Return whether each feature occurs in rows of each class, shape (features, K)."""
    return np.stack([np.asarray((X[y == c] != 0).sum(axis=0)).ravel() > 0 for c in range(K)], axis=1)


@pytest.mark.parametrize("loss", REDUCIBLE)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [0.1, 5.0])
def test_equals_an_independent_solver(loss, intercept, C):
    X, y = text_like(60, 50, 5, seed=1)
    fitted = make(loss, C=C, fit_intercept=intercept, **TIGHT).fit(X, y)
    best = optimum(loss, X, y, np.full(60, C), 5, constant=1.0 if intercept else 0.0, reduced=True)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-5)
    assert fitted.certificate_.dual == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("loss", REDUCIBLE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_model_keeps_to_the_pattern(loss, dtype):
    X, y = text_like(300, 900, 40, seed=2, nnz=20)
    fitted = make(loss, feature_reduction=True, dtype=dtype).fit(X, y)
    kept = seen(X, y, 40)
    assert fitted.kept_weights_ == kept.sum() < kept.size
    assert not fitted.coef_.T[~kept].any() and fitted.coef_.T[kept].any()
    assert fitted.certificate_.gap <= 0.01
    assert make(loss).fit(X, y).kept_weights_ == kept.size


@pytest.mark.parametrize("loss", REDUCIBLE)
def test_threads_and_warm_starts(loss):
    X, y = text_like(320, 900, 310, seed=3, nnz=40)
    first = make(loss, feature_reduction=True, n_jobs=1, warm_start=True).fit(X, y)
    np.testing.assert_array_equal(make(loss, feature_reduction=True, n_jobs=3).fit(X, y).coef_, first.coef_)
    passes = first.n_iter_
    assert first.fit(X, y).n_iter_ < passes or passes <= 2


@pytest.mark.parametrize("loss", ["llw", "ovo_hinge"])
def test_is_rejected_for_other_losses(loss):
    X, y = text_like(20, 10, 3)
    with pytest.raises(ValueError, match="feature_reduction is not available for"):
        make(loss, feature_reduction=True).fit(X, y)
