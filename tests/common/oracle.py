"""The optimum by a general convex solver that shares nothing with this library."""

import cvxpy as cp
import numpy as np


def _losses(loss, scores, y, K):
    """Loss of each row as a convex expression of its scores."""
    own = np.eye(K)[y]
    margins = cp.sum(cp.multiply(own, scores), axis=1)
    if loss in ("ww", "cs"):
        excess = 1 - own + scores - cp.reshape(margins, (len(y), 1), order="C") @ np.ones((1, K))
        return cp.sum(cp.pos(excess), axis=1) if loss == "ww" else cp.max(excess, axis=1)
    hinges = cp.pos(1 - cp.multiply(2 * own - 1, scores))
    return cp.sum(hinges if loss == "hinge" else cp.square(hinges), axis=1)


def optimum(loss, X, y, C, K, constant=0.0):
    """The least primal value; `X` dense or sparse, `C` one penalty a row."""
    X = np.asarray(X.todense() if hasattr(X, "todense") else X)
    if constant:
        X = np.hstack([X, np.full((len(X), 1), constant)])
    W = cp.Variable((X.shape[1], K))
    objective = cp.sum_squares(W) / 2 + C @ _losses(loss, X @ W, y, K)
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    assert problem.status == "optimal"
    return problem.value
