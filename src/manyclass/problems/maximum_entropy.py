"""Maximum entropy, also called multinomial logistic regression.

Dual variables are `alpha_ic > 0` with `sum_c alpha_ic = C_i`: the probabilities of the classes times `C_i`.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, logsumexp, softmax, wrightomega

from .problem import Problem
from .registry import offered


@offered("maximum entropy", "MaxEnt", reducible=True)
class MaximumEntropy(Problem):
    """`log sum_c exp(s_c) - s_y`."""

    name = "maxent"
    kernel = "maximum_entropy"
    sparse_weights = False

    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]

    def total(self, C: np.ndarray) -> np.ndarray:
        return C

    def coefficients(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        coef = -alpha
        coef[np.arange(len(y)), y] += alpha.sum(axis=1)
        return coef

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return float((C[:, None] * entr(alpha / C[:, None])).sum())

    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.abs(alpha / C[:, None] - softmax(scores, axis=1)).max(axis=1)

    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        # log p + k C p = h - mu for the shares p: p = omega(h - mu + log(k C)) / (k C), omega + log(omega) = identity
        h = scores + k * alpha + np.log(k * C)

        def shares(mu: float) -> np.ndarray:
            return wrightomega(h - mu) / (k * C)

        mu = brentq(lambda mu: np.log(shares(mu).sum()), h.min() - k * C - 50, h.max() + 50, xtol=1e-14)
        return C * shares(mu) / shares(mu).sum()
