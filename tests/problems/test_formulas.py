"""The plain formulas: a NumPy coordinate ascent on them and the compiled kernels end at the same point."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from losses import LOSSES, make, text_like

from manyclass.problems import PROBLEMS


def ascend(problem, X, y, C, K, epochs):
    """Coordinate ascent a row at a time, with weights kept up to date, to a tiny gap."""
    alpha = np.zeros((len(y), problem.columns(K)))
    V = np.zeros((X.shape[1], problem.columns(K)))
    W = problem.shrink(V)
    norms = np.square(X).sum(axis=1)
    for epoch in range(epochs):
        for i in np.random.default_rng(epoch).permutation(len(y)):
            new = problem.solve_row(X[i] @ W, alpha[i], y[i], norms[i], C[i])
            change = problem.coefficients(np.stack([new]), y[i : i + 1]) - problem.coefficients(
                alpha[i : i + 1], y[i : i + 1]
            )
            V += np.outer(X[i], change)
            W = problem.shrink(V)
            alpha[i] = new
        primal = problem.primal(W, X, y, C)
        if primal - problem.dual(alpha, X, y, C) < 1e-8 * primal:
            break
    return alpha, W


@pytest.mark.parametrize("loss", LOSSES)
def test_numpy_and_native_agree(loss):
    X, y = text_like(50, 30, 4, seed=0)
    X, C, problem = X.toarray(), np.random.default_rng(1).uniform(0.2, 2, 50), PROBLEMS[loss]
    alpha, W = ascend(problem, X, y, C, 4, 400)
    native = make(loss, fit_intercept=False, tol=1e-9, dtype="float64", max_iter=100_000).fit(X, y, sample_weight=C)
    np.testing.assert_allclose(W, problem.weights(alpha, X, y), atol=1e-9)
    assert problem.primal(W, X, y, C) == pytest.approx(native.certificate_.primal, rel=1e-6)
    assert problem.dual(alpha, X, y, C) == pytest.approx(native.certificate_.dual, rel=1e-6)
    assert problem.violations(X @ W, alpha, y, C).max() < 1e-3


@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_equals_the_formulas(loss):
    """Far from the optimum too, where no two of primal, dual and zero coincide."""
    X, y = text_like(80, 40, 20, seed=2)
    fitted = make(loss, C=20.0, fit_intercept=False, tol=1e-9, max_iter=2, dtype="float64", warm_start=True)
    with pytest.warns(match="stopped after max_iter=2"):
        fitted.fit(X, y)
    problem, C = PROBLEMS[loss], np.full(80, 20.0)
    _, _, state = fitted._dual_state
    alpha = np.zeros((80, problem.columns(20)))
    alpha[np.repeat(np.arange(80), np.diff(state["indptr"])), state["classes"]] = state["values"]
    found, W = fitted.certificate_, fitted.coef_.T
    np.testing.assert_allclose(problem.weights(alpha, X, y), W, atol=1e-12)
    assert found.primal == pytest.approx(problem.primal(W, X, y, C), rel=1e-10)
    assert found.dual == pytest.approx(problem.dual(alpha, X, y, C), rel=1e-10)
    assert found.violation == pytest.approx(problem.violations(X @ W, alpha, y, C).max(), rel=1e-8)
    assert found.gap > 1e-3


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10_000), C=st.floats(0.01, 100), k=st.floats(0.01, 100))
@settings(max_examples=30, deadline=None)
def test_a_row_step_is_the_best_feasible_one(loss, seed, C, k):
    """No feasible point nearby has a larger dual value, with all other rows fixed."""
    rng = np.random.default_rng(seed)
    K, y, problem = 6, int(rng.integers(6)), PROBLEMS[loss]
    label, penalty = np.array([y]), np.array([C])
    columns = problem.columns(K)
    cap, total = problem.cap(np.arange(columns) == y, np.full(columns, C)), problem.total(penalty)[0]
    if loss.startswith("ovo_"):  # the row has no variable in pairs without its class
        cap = np.where((np.array(np.triu_indices(K, 1)) == y).any(axis=0), cap, 0.0)

    def feasible():
        alpha = rng.uniform(0, C / K, columns) * (cap > 0)
        if loss == "max_margin":  # what the own label has, the others have
            alpha[y] = alpha.sum() - alpha[y]
        return alpha * C / alpha.sum() if loss == "maxent" else alpha  # its sums are equal to C

    scores, alpha = rng.normal(size=columns), feasible()
    if not problem.sparse_weights:
        scores -= scores.mean()

    def gain(beta):
        change = problem.coefficients(beta[None].copy(), label) - problem.coefficients(alpha[None].copy(), label)
        return (
            problem.dual_gain(beta[None], label, penalty)
            - float((change @ scores).sum())
            - 0.5 * k * float(np.sum(change**2))
        )

    best = problem.solve_row(scores, alpha, y, k, C)
    assert best.min() >= 0
    assert np.all(best <= cap * (1 + 1e-12))
    assert best.sum() <= total * (1 + 1e-9)
    for _ in range(20):
        other = feasible()
        for share in (1e-3, 0.1, 1.0):
            assert gain(best + share * (other - best)) <= gain(best) + 1e-7 * (1 + abs(gain(best)))
