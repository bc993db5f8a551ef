"""LLW below the C at which variables leave their bounds: the weights are known without a pass."""

import numpy as np
import pytest
from losses import text_like

from manyclass import MulticlassSVC


def largest_C(X, y, K):
    """Return `1 / max -(S_c - S / K).x_i` over rows and other classes, and S."""
    S = np.stack([np.asarray(X[y == c].sum(axis=0)).ravel() for c in range(K)])
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
