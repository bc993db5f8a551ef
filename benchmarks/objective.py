"""Compute the primal value and test error of given weights in the same way for every solver.

With scores s_ic = w_c·x_i, hinge(m) = max(0, 1 - m) and P(W) = 1/2 sum_c |w_c|^2 + C sum_i loss_i:

    ww             loss_i = sum_{c != y_i} hinge(s_iy - s_ic)
    cs             loss_i = max_{c != y_i} hinge(s_iy - s_ic)
    hinge          loss_i = sum_c hinge(±s_ic),   + for c = y_i, - for the others
    squared_hinge  loss_i = sum_c hinge(±s_ic)^2
    logistic       loss_i = sum_c log(1 + exp(-±s_ic))
    maxent         loss_i = log sum_c exp(s_ic) - s_iy
    llw            loss_i = sum_{c != y_i} hinge(-s_ic)
    ovo_squared_hinge    the same as squared_hinge for each pair of classes a < b, over the rows of these two

Weights are feature-major, d x K, dense or sparse. With d + 1 rows, the last row belongs to a constant feature of
value 1: the intercept, which is regularised like the other weights. All sums are in float64, and scores exist for one
block of classes at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

LOSSES = ("ww", "cs", "llw", "hinge", "squared_hinge", "logistic", "maxent", "ovo_squared_hinge")

# 256 classes: 16 to 120 MB of scores at the sizes measured here.
BLOCK = 256


def primal(loss: str, X: sp.csr_matrix, y: np.ndarray, W, C: float = 1.0, block: int = BLOCK) -> float:
    """Return the primal objective value of weights `W`.

    Parameters
    ----------
    loss : one of LOSSES
    X : sparse matrix of shape (n, d)
    y : integer array of shape (n,)
        Class codes, 0 to K - 1: the columns of `W`.
    W : array or sparse matrix of shape (d, K) or (d + 1, K)
    C : float
        Weight of the loss against 1/2 |W|^2.
    block : int
        Number of classes scored at a time.

    Returns
    -------
    float
    """
    if loss not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}; known are {', '.join(LOSSES)}")
    X = _with_constant(X, W)
    y = np.asarray(y)
    if loss == "ovo_squared_hinge":
        return _one_vs_one(X, y, W, C)
    relative = loss in ("ww", "cs")
    own = _own_scores(X, y, W) if relative or loss == "maxent" else None
    log_sums = np.full(X.shape[0], -np.inf)
    regularizer, total = 0.0, 0.0
    worst = np.zeros(X.shape[0])
    for first, weights in _class_blocks(W, block):
        regularizer += 0.5 * float(np.sum(weights * weights))
        scores = X @ weights
        rows = np.flatnonzero((y >= first) & (y < first + weights.shape[1]))
        if relative:
            hinge = np.maximum(0.0, 1.0 - own[:, None] + scores)
            hinge[rows, y[rows] - first] = 0.0
            if loss == "ww":
                total += float(hinge.sum())
            else:
                np.maximum(worst, hinge.max(axis=1), out=worst)
        elif loss == "maxent":
            log_sums = np.logaddexp(log_sums, logsumexp(scores, axis=1))
        else:
            margin = -scores
            margin[rows, y[rows] - first] *= -1.0
            if loss == "llw":
                margin[rows, y[rows] - first] = 1.0
            total += float(_binary_losses(loss, margin).sum())
    if loss == "cs":
        total = float(worst.sum())
    if loss == "maxent":
        total = float((log_sums - own).sum())
    return regularizer + C * total


def _binary_losses(loss: str, margin: np.ndarray) -> np.ndarray:
    if loss == "logistic":
        return np.logaddexp(0.0, -margin)
    hinge = np.maximum(0.0, 1.0 - margin)
    return hinge * hinge if loss == "squared_hinge" else hinge


def _one_vs_one(X: sp.csr_matrix, y: np.ndarray, W, C: float) -> float:
    W = np.asarray(W.todense() if sp.issparse(W) else W, dtype=np.float64)
    total = 0.5 * float(np.sum(W * W))
    for w, first, second in zip(W.T, *_pairs(W.shape[1]), strict=True):
        rows = np.flatnonzero((y == first) | (y == second))
        margin = np.where(y[rows] == first, 1.0, -1.0) * (X[rows] @ w)
        total += C * float(_binary_losses("squared_hinge", margin).sum())
    return total


def _pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices((1 + round((1 + 8 * count) ** 0.5)) // 2, 1)


def error_rate(X: sp.csr_matrix, y: np.ndarray, W, block: int = BLOCK, pairs: bool = False) -> float:
    """Return the share of rows whose highest-scoring class is not `y` (a code of -1 is always an error).

    With `pairs`, columns are pairs of classes, and the class with most votes wins; the sum of margins breaks ties.
    """
    X = _with_constant(X, W)
    if pairs:
        scores = np.asarray(X @ (W.toarray() if sp.issparse(W) else W), dtype=np.float64)
        first, second = _pairs(W.shape[1])
        to_first, to_second = (np.eye(second[-1] + 1)[side] for side in (first, second))
        votes = (scores > 0) @ to_first + (scores < 0) @ to_second
        margins = scores @ (to_first - to_second)
        return float(np.mean(np.argmax(votes + margins / (3 * (np.abs(margins) + 1)), axis=1) != y))
    best = np.full(X.shape[0], -np.inf)
    predicted = np.zeros(X.shape[0], dtype=np.int64)
    for first, weights in _class_blocks(W, block):
        scores = X @ weights
        winner = scores.argmax(axis=1)
        score = scores[np.arange(X.shape[0]), winner]
        better = score > best
        best[better] = score[better]
        predicted[better] = winner[better] + first
    return float(np.mean(predicted != y))


def _with_constant(X, W) -> sp.csr_matrix:
    X = sp.csr_matrix(X, dtype=np.float64)
    extra = W.shape[0] - X.shape[1]
    if extra == 0:
        return X
    if extra == 1:
        return sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    raise ValueError(f"{W.shape[0]} rows of weights do not fit {X.shape[1]} features with or without intercept")


def _own_scores(X: sp.csr_matrix, y: np.ndarray, W) -> np.ndarray:
    """Return s_i,y_i for every row, reading only the weights needed."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    if sp.issparse(W):
        W = W.tocsr()
    weights = np.asarray(W[X.indices, y[row]], dtype=np.float64).ravel()
    return np.bincount(row, weights=X.data * weights, minlength=X.shape[0])


def _class_blocks(W, block: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield blocks of columns of `W` as dense float64, each with the index of its first class."""
    if sp.issparse(W):
        W = W.tocsc()
    for first in range(0, W.shape[1], block):
        columns = W[:, first : first + block]
        if sp.issparse(columns):
            columns = columns.toarray()
        yield first, np.asarray(columns, dtype=np.float64)
