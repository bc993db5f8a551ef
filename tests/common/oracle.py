"""The optimum by a general convex solver that shares nothing with this library."""

import cvxpy as cp
import numpy as np

# Losses on the scores themselves: their weights sum to zero over the classes.
CENTRED = ("llw", "mmr", "rm", "adm", "atm", "ats")


def _losses(loss, scores, y, K):
    """Loss of each row as a convex expression of its scores."""
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
    pairs = loss.startswith("ovo_")
    first, second = np.triu_indices(K, 1)
    signs = (first == y[:, None]) * 1.0 - (second == y[:, None]) if pairs else 2 * own - 1
    margins, taking_part = cp.multiply(signs, scores), np.abs(signs)
    kind = loss.removeprefix("ovo_")
    hinges = cp.pos(1 - margins)
    losses = {"hinge": hinges, "squared_hinge": cp.square(hinges), "logistic": cp.logistic(-margins)}[kind]
    return cp.sum(cp.multiply(taking_part, losses), axis=1)


def optimum(loss, X, y, C, K, constant=0.0, reduced=False):
    """The least primal value; `X` dense or sparse, `C` one penalty a row, `reduced`: with feature reduction."""
    X = np.asarray(X.todense() if hasattr(X, "todense") else X)
    if constant:
        X = np.hstack([X, np.full((len(X), 1), constant)])
    W = cp.Variable((X.shape[1], K * (K - 1) // 2 if loss.startswith("ovo_") else K))
    objective = cp.sum_squares(W) / 2 + C @ _losses(loss, X @ W, y, K)
    conditions = [cp.sum(W, axis=1) == 0] if loss in CENTRED else []
    if reduced:
        unseen = np.stack([~(X[y == c] != 0).any(axis=0) for c in range(K)], axis=1)
        conditions.append(cp.multiply(unseen, W) == 0)
    problem = cp.Problem(cp.Minimize(objective), conditions)
    # Exponential cones do not come as close.
    tol = 1e-8 if loss.endswith(("logistic", "maxent")) else 1e-10
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=tol, tol_gap_abs=tol, tol_feas=tol)
    assert problem.status == "optimal"
    return problem.value
