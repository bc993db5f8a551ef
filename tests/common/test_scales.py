"""Whatever the scale of rows, penalties and weights: a fit is refused, or NumPy confirms its certificate."""

import warnings

import numpy as np
import pytest
from losses import LOSSES, dual_variables, make, text_like
from sklearn.exceptions import ConvergenceWarning
from stored_fits import store_of, variables_of

from manyclass.problems import PROBLEMS
from manyclass.problems.elastic_net import ElasticNet

N, D, K = 24, 12, 4
SEEDS = 25
OTHER_SOLVERS = [("squared_hinge", "newton"), ("logistic", "newton"), ("ww", "leagues"), ("llw", "alternating")]


def problem_of(loss, parameters, constant):
    known = PROBLEMS[loss]
    if not isinstance(known, ElasticNet):
        return known
    return type(known)(parameters.get("lam", 0.01), parameters.get("tau", 1.0), constant=constant != 0)


def draw(rng, dtype, loss):
    """Return a small problem at random scales: each quantity is unscaled, near a limit of the type, or anywhere."""
    end = np.log10(float(np.finfo(dtype).max))

    def scale():
        exponent = [0.0, rng.uniform(-1.1, 1.1) * end, rng.uniform(-end / 2, end / 2), rng.uniform(-3, 3)]
        return 10.0 ** float(np.clip(rng.choice(exponent), -300, 300))

    X, y = text_like(N, D, K, seed=int(rng.integers(1000)), nnz=3)
    X = X.toarray()
    X *= scale()
    if rng.random() < 0.3:
        X *= 10.0 ** np.clip(rng.uniform(-end, end, (N, 1)) * rng.choice([0.1, 1]), -300, 300)
    X[~np.isfinite(X)] = 1.0
    parameters = {"C": scale(), "dtype": dtype, "fit_intercept": bool(rng.integers(2))}
    if parameters["fit_intercept"]:
        parameters["intercept_scaling"] = scale()
    if loss.startswith("ppd_") or loss == "max_margin":
        parameters |= {"lam": scale(), "tau": scale()}
    weights = np.ones(N) if rng.random() < 0.5 else scale() * 10 ** rng.uniform(-2, 2, N)
    return X, y, weights, parameters


def confirm(loss, fitted, alpha, X, y, C, parameters):
    """Compare the certificate with the formulas, at the numbers that the solver was given."""
    dtype = parameters["dtype"]
    constant = parameters.get("intercept_scaling", 0.0)
    problem = problem_of(loss, parameters, constant)
    kept = np.finfo(dtype).tiny <= C
    alpha, X, y, C = (array[kept] for array in (alpha, X, y, C))
    X, C = (array.astype(dtype).astype(float) for array in (X, C))
    W = np.asarray(fitted.coef_).T.astype(float)
    if constant:
        X = np.hstack([X, np.full((len(X), 1), constant)])
        W = np.vstack([W, fitted.intercept_ / constant])
    found = fitted.certificate_
    assert np.isfinite([found.primal, found.dual, found.violation, found.gap]).all() and np.isfinite(W).all()
    rounding = 1e-5 if dtype == "float32" else 1e-6
    # The precision of scores is limited by |x| |W|, that of intercepts by the type that stores them.
    eps = float(np.finfo(dtype).eps)
    lengths, length = np.linalg.norm(X, axis=1), np.linalg.norm(W)
    reach = lengths * length
    noise = 8 * np.finfo(float).eps * reach + 8 * eps * constant * np.abs(W[-1]).max()
    steepness = K * (1 + reach if "squared" in loss else 1)
    primal = problem.primal(W, X, y, C)
    assert abs(found.primal - primal) <= rounding * primal + C @ (noise * steepness)
    assert found.dual <= found.primal * (1 + rounding)
    # No weights have a smaller objective.
    assert found.dual <= problem.primal(np.zeros_like(W), X, y, C) * (1 + rounding)
    # Rows that are too short to count have their loss at zero weights, whatever their variables.
    curvature = np.square(X).sum(axis=1) / (problem.tau if loss.startswith("ppd_") else 1.0)
    short = curvature < 2 * np.finfo(dtype).tiny
    at_zero = float(C[short] @ problem.losses(np.zeros((short.sum(), W.shape[1])), y[short])) if short.any() else 0.0
    long = ~short
    dual = problem.dual(alpha[long], X[long], y[long], C[long]) if long.any() else 0.0
    # The precision of sums of alpha_i x_i is limited by alpha, which is stored rounded.
    slopes = 1 + (lengths * np.linalg.norm(problem.weights(alpha, X, y)))[:, None]
    if "squared" in loss:
        slopes = slopes + alpha / C[:, None]
    unsure = rounding * max(found.primal, abs(dual + at_zero)) + 4 * eps * K * float((np.abs(alpha) * slopes).sum())
    if loss == "maxent":
        unsure += 4 * eps * K * length * float(C @ lengths)
    assert abs(found.dual - dual - at_zero) <= unsure


def fit_or_none(estimator, *rows, **weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return estimator.fit(*rows, **weights)
        except ValueError:
            return None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("loss", "solver"), [(loss, "auto") for loss in LOSSES] + OTHER_SOLVERS)
def test_numpy_confirms_every_certificate(loss, solver, dtype):
    fits = 0
    for seed in range(SEEDS):
        X, y, weights, parameters = draw(np.random.default_rng(seed), dtype, loss)
        fitted = make(loss, max_iter=10, warm_start=True, n_jobs=1, solver=solver, **parameters)
        if fit_or_none(fitted, X, y, sample_weight=weights) is None:
            continue
        kept = np.flatnonzero(parameters["C"] * weights >= np.finfo(dtype).tiny)
        alpha = np.zeros((N, problem_of(loss, parameters, 0).columns(K)))
        alpha[kept] = dual_variables(fitted._dual_state[2], alpha.shape[1])
        confirm(loss, fitted, alpha, X, y, parameters["C"] * weights, parameters)
        fits += 1
    assert fits >= 5


@pytest.mark.parametrize("loss", ["cs", "maxent", "squared_hinge", "logistic"])
def test_from_disk_too(loss, tmp_path):
    fits = 0
    for seed in range(6):
        X, y, _, parameters = draw(np.random.default_rng(seed), "float32", loss)
        try:
            store = store_of(X, y, tmp_path / str(seed), blocks=2)
        except ValueError:  # a value is infinite
            continue
        fitted = make(loss, max_iter=5, warm_start=True, n_jobs=1, **parameters)
        if fit_or_none(fitted, store) is None:
            continue
        C = parameters["C"]
        confirm(loss, fitted, variables_of(fitted, store, loss, C), X, y, np.full(N, C), parameters)
        fits += 1
    assert fits >= 2
