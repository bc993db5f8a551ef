"""The optimum from a general convex solver that shares nothing with this library."""

import warnings

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

# Losses on the scores themselves: their weights sum to zero over the classes.
CENTRED = ("llw", "mmr", "rm", "adm", "atm", "ats")


def _losses(loss, scores, y, K):
    """Return the loss of each row as a convex expression of its scores."""
    own = np.eye(K)[y]
    if loss in ("ww", "cs", "maxent"):
        margins = cp.sum(cp.multiply(own, scores), axis=1)
    if loss in ("ww", "cs"):
        excess = 1 - own + scores - cp.reshape(margins, (len(y), 1), order="C") @ np.ones((1, K))
        return cp.sum(cp.pos(excess), axis=1) if loss == "ww" else cp.max(excess, axis=1)
    if loss in CENTRED:
        own_target = K - 1 if loss == "rm" else 1
        excess = cp.pos(own * (own_target - 1) + 1 - cp.multiply(2 * own - 1, scores))
        shares = {
            "llw": 1 - own,
            "mmr": own,
            "rm": np.full(own.shape, 0.5),
            "adm": 1 - own,
            "atm": np.ones(own.shape),
            "ats": np.ones(own.shape),
        }[loss]
        return (cp.max if loss in ("adm", "atm") else cp.sum)(cp.multiply(shares, excess), axis=1)
    if loss == "maxent":
        return cp.log_sum_exp(scores, axis=1) - margins
    first, second = np.triu_indices(K, 1)
    signs = (first == y[:, None]) * 1.0 - (second == y[:, None]) if loss.startswith("ovo_") else 2 * own - 1
    # One-vs-one: only the pairs that include the class of the row.
    row, column = np.nonzero(signs)
    margins = cp.multiply(signs[row, column], scores[row, column])
    hinges = cp.pos(1 - margins)
    kinds = {
        "hinge": hinges,
        "squared_hinge": cp.square(hinges) / (2 if loss.startswith("ppd_") else 1),
        "logistic": cp.logistic(-margins),
    }
    add_up = sp.csr_matrix((np.ones(len(row)), (row, np.arange(len(row)))), shape=(len(y), len(row)))
    return add_up @ kinds[loss.removeprefix("ovo_").removeprefix("ppd_")]


def _dense(X, constant):
    X = np.asarray(X.todense() if hasattr(X, "todense") else X)
    return np.hstack([X, np.full((len(X), 1), constant)]) if constant else X


def max_margin_optimum(X, Y, C, constant=0.0, *, lam=0.01, tau=1.0):
    """Return the minimum of the max-margin loss with an elastic net; `Y` is a dense indicator `(n, K)`."""
    X, Y = _dense(X, constant), np.asarray(Y, bool)
    W = cp.Variable((X.shape[1], Y.shape[1]))
    scores = X @ W
    losses = [
        C[i] * cp.pos(1 + cp.max(scores[i, ~own]) - cp.min(scores[i, own]))
        for i, own in enumerate(Y)
        if own.any() and not own.all()
    ]
    shrunk = W[:-1] if constant else W
    problem = cp.Problem(cp.Minimize(lam * cp.sum(cp.abs(shrunk)) + tau / 2 * cp.sum_squares(W) + cp.sum(losses)))
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    assert problem.status == "optimal"
    return problem.value


def optimum(loss, X, y, C, K, constant=0.0, reduced=False, lam=0.01, tau=1.0):
    """Return the minimum; `X` is dense or sparse, `C` has one penalty per row, `reduced`: with feature reduction.

    `lam` and `tau` are those of the losses with an elastic net.
    """
    if loss == "max_margin":
        return max_margin_optimum(X, np.eye(K)[y], C, constant, lam=lam, tau=tau)
    X = _dense(X, constant)
    W = cp.Variable((X.shape[1], K * (K - 1) // 2 if loss.startswith("ovo_") else K))
    used = cp.multiply(np.stack([(X[y == c] != 0).any(axis=0) for c in range(K)], axis=1), W) if reduced else W
    sparse = loss.startswith("ppd_")
    objective = (tau if sparse else 1) / 2 * cp.sum_squares(W) + C @ _losses(loss, X @ used, y, K)
    if sparse:
        objective += lam * cp.sum(cp.abs(W[:-1] if constant else W))
    problem = cp.Problem(cp.Minimize(objective), [cp.sum(W, axis=1) == 0] if loss in CENTRED else [])
    # With exponential cones the solver may miss its tolerance; comparisons allow for that.
    exponential = loss.endswith(("logistic", "maxent"))
    tol = 1e-8 if exponential else 1e-10
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, tol_gap_rel=tol, tol_gap_abs=tol, tol_feas=tol)
    assert problem.status == "optimal" or (exponential and problem.status == "optimal_inaccurate")
    return problem.value
