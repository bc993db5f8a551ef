"""Long rows and features on different scales: smooth losses converge, others warn and say why."""

import warnings

import numpy as np
import pytest
from losses import make, text_like
from oracle import optimum
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from stored_fits import assert_same_bits

from manyclass import LinearModel, MulticlassSVC, OneVsRestLogistic, load_model, save_model

SMOOTH = ("squared_hinge", "logistic", "ovo_squared_hinge", "ovo_logistic")


@pytest.fixture(scope="module")
def wine():
    """Features from 0.1 to 1,700."""
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def digits():
    """Rows of length 55."""
    return load_digits(return_X_y=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_smooth_losses_reach_the_optimum(loss, dtype, wine):
    X, y = wine
    fitted = make(loss, dtype=dtype, tol=1e-2).fit(X, y)
    best = optimum(loss, X, y, np.ones(len(y)), 3, constant=1.0)
    assert fitted.certificate_.exit_reason == "converged"
    assert best * (1 - 1e-4) <= fitted.certificate_.primal <= best * 1.011
    assert fitted.certificate_.dual <= best * (1 + 1e-4)
    assert fitted.score(X, y) > 0.96


@pytest.mark.parametrize("loss", SMOOTH)
def test_long_rows_of_many_classes(loss, digits, tmp_path):
    """The saved model predicts the same, and neither model nor certificate depends on the number of threads."""
    X, y = digits
    fitted = make(loss, n_jobs=1).fit(X, y)
    assert fitted.certificate_.exit_reason == "converged"
    assert fitted.score(X, y) > 0.98
    save_model(fitted, tmp_path / "model")
    model: LinearModel = load_model(tmp_path / "model")
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    assert_same_bits([fitted, make(loss, n_jobs=3).fit(X, y)])


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_certificate_is_that_of_the_weights(loss, digits):
    X, y = digits
    fitted = make(loss).fit(X, y)
    m = np.where(np.arange(10) == y[:, None], 1, -1) * fitted.decision_function(X)
    losses = np.maximum(1 - m, 0) ** 2 if loss == "squared_hinge" else np.logaddexp(0, -m)
    squares = (fitted.coef_.astype(float) ** 2).sum() + (fitted.intercept_.astype(float) ** 2).sum()
    assert fitted.certificate_.primal == pytest.approx(squares / 2 + losses.sum(), rel=1e-5)


def test_the_dual_makes_progress_on_long_rows(digits):
    """Steps that are short because rows are long count as progress."""
    gaps = []
    for max_iter in (50, 400):
        with pytest.warns(ConvergenceWarning):
            fitted = OneVsRestLogistic(C=1.0, solver="dual", max_iter=max_iter).fit(*digits)
        gaps.append(fitted.certificate_.gap)
    assert gaps[1] < 0.6 * gaps[0]


@pytest.mark.parametrize("loss", ["hinge", "ww", "maxent"])
def test_the_warning_names_scales(loss, wine):
    with pytest.warns(ConvergenceWarning, match=r"rows are long.*different scales.*0\.38 to .*scale the features"):
        make(loss, max_iter=20).fit(*wine)


def test_the_warning_does_not_blame_rows_that_are_well_scaled():
    X, y = text_like(300, 100, 20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MulticlassSVC(tol=1e-9, max_iter=2).fit(X, y)
    assert "raise max_iter" in str(caught[0].message)
    assert "scale" not in str(caught[0].message)
