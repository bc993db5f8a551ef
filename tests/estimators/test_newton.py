"""Newton's method on the primal reaches the same optimum as coordinate ascent on the dual."""

import numpy as np
import pytest
import scipy.sparse as sp
from losses import make, text_like
from oracle import optimum

from manyclass import OneVsOneSVC, OneVsRestSVC, load_model, save_model

SMOOTH = ("squared_hinge", "logistic")
TIGHT = {"tol": 1e-7, "dtype": "float64", "max_iter": 100_000, "solver": "newton"}


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("C", [0.02, 1.0, 50.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_equals_an_independent_solver(loss, C, intercept):
    X, y = text_like(60, 40, 20, seed=1)
    fitted = make(loss, C=C, fit_intercept=intercept, **TIGHT).fit(X, y)
    best = optimum(loss, X, y, np.full(60, C), 20, constant=1.0 if intercept else 0.0)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)
    assert fitted.certificate_.dual == pytest.approx(best, rel=1e-6)
    assert fitted.certificate_.exit_reason == "converged"


@pytest.mark.parametrize("loss", SMOOTH)
def test_sample_weights_and_empty_rows(loss):
    X, y = text_like(50, 40, 4, seed=2)
    X = sp.csr_matrix(sp.diags((np.arange(50) % 7 > 0).astype(float)) @ X)
    X.eliminate_zeros()
    weight = np.random.default_rng(0).uniform(0.1, 4, 50)
    fitted = make(loss, fit_intercept=False, **TIGHT).fit(X, y, weight)
    best = optimum(loss, X, y, weight, 4)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)
    assert fitted.certificate_.dual <= best * (1 + 1e-9)


@pytest.mark.parametrize("loss", SMOOTH)
def test_certificate_is_of_the_model(loss):
    """Even far from the optimum: primal value and gradient belong to the stored weights."""
    X, y = text_like(80, 40, 5, seed=3)
    with pytest.warns(match="stopped after max_iter=3"):
        fitted = make(loss, C=10.0, fit_intercept=False, tol=1e-9, max_iter=3, solver="newton").fit(X, y)
    W, t = fitted.coef_.T.astype(float), np.where(np.arange(5) == y[:, None], 1.0, -1.0)
    X = X.astype(np.float32).astype(float)
    m = t * (X @ W)
    over = np.maximum(1 - m, 0)
    losses, a = (over**2, 20 * over) if loss == "squared_hinge" else (np.logaddexp(0, -m), 10 / (1 + np.exp(m)))
    gradient = W - X.T @ (t * a)
    assert fitted.certificate_.primal == pytest.approx(0.5 * (W**2).sum() + 10 * losses.sum(), rel=1e-6)
    assert fitted.certificate_.violation == pytest.approx(np.abs(gradient).max(), rel=1e-4)
    assert fitted.certificate_.gap > 1e-4


@pytest.mark.parametrize("loss", SMOOTH)
def test_threads_files_and_warm_starts(loss, tmp_path):
    X, y = text_like(300, 400, 40, seed=4, nnz=20)
    first = make(loss, solver="newton", n_jobs=1, warm_start=True).fit(X, y)
    save_model(first.model_, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), first.predict(X))
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(make(loss, solver="newton", n_jobs=n_jobs).fit(X, y).coef_, first.coef_)
    cold = first.n_iter_
    assert first.fit(X, y).n_iter_ <= cold
    assert first.certificate_.gap <= 0.01


@pytest.mark.parametrize("loss", SMOOTH)
def test_stops_by_gradient(loss):
    X, y = text_like(80, 40, 5, seed=5)
    fitted = make(loss, stop="kkt", **(TIGHT | {"tol": 1e-6})).fit(X, y)
    assert fitted.certificate_.violation <= 1e-6


@pytest.mark.parametrize("loss", SMOOTH)
def test_a_target_beyond_float32_ends_with_the_passes(loss):
    X, y = text_like(80, 40, 5, seed=6)
    with pytest.warns(match="stopped after max_iter=300"):
        make(loss, tol=1e-13, max_iter=300, solver="newton").fit(X, y)


def test_is_rejected_for_other_losses():
    X, y = text_like(20, 10, 3)
    with pytest.raises(ValueError, match="solver='newton' only trains loss 'squared_hinge', not 'hinge'"):
        OneVsRestSVC("hinge", solver="newton").fit(X, y)
    with pytest.raises(ValueError, match="solver must be one of 'auto', 'dual' for OneVsOneSVC, got 'newton'"):
        OneVsOneSVC(solver="newton").fit(X, y)
