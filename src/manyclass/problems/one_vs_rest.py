"""One binary problem a class: hinge, squared hinge, logistic.

Dual variables `alpha_ic >= 0`, for the hinge and the logistic loss at most `C_i`.
"""

import numpy as np
from scipy.special import entr, expit, logit

from .problem import Problem


def _signs(y: np.ndarray, K: int) -> np.ndarray:
    """t_ic = +1 at a row's own class, -1 elsewhere."""
    t = -np.ones((len(y), K))
    t[np.arange(len(y)), y] = 1
    return t


class OneVsRest(Problem):
    """What they have in common."""

    kernel = "one_vs_rest"

    def coefficients(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        return _signs(y, alpha.shape[1]) * alpha

    def _gradient(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return _signs(y, alpha.shape[1]) * scores - 1


class Hinge(OneVsRest):
    """`sum_c max(0, 1 - t_c s_c)`."""

    name = "hinge"

    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(0, 1 - _signs(y, scores.shape[1]) * scores).sum(axis=1)

    def cap(self, own: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(C, np.shape(own))

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return float(alpha.sum())

    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        g = self._gradient(scores, alpha, y, C)
        return np.where(g < 0, -g * (alpha < C[:, None]), g * (alpha > 0)).max(axis=1)

    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        g = self._gradient(scores[None], alpha[None], np.array([y]), np.array([C]))[0]
        return np.clip(alpha - g / k, 0, C)


class SquaredHinge(OneVsRest):
    """`sum_c max(0, 1 - t_c s_c)^2`."""

    name = "squared_hinge"

    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.square(np.maximum(0, 1 - _signs(y, scores.shape[1]) * scores)).sum(axis=1)

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return float((alpha - np.square(alpha) / (4 * C[:, None])).sum())

    def _gradient(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return super()._gradient(scores, alpha, y, C) + alpha / (2 * C[:, None])

    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        g = self._gradient(scores, alpha, y, C)
        return np.where(g < 0, -g, g * (alpha > 0)).max(axis=1)

    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        g = self._gradient(scores[None], alpha[None], np.array([y]), np.array([C]))[0]
        return np.maximum(alpha - g / (k + 1 / (2 * C)), 0)


class Logistic(OneVsRest):
    """`sum_c log(1 + exp(-t_c s_c))`."""

    name = "logistic"
    sparse_weights = False

    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logaddexp(0, -_signs(y, scores.shape[1]) * scores).sum(axis=1)

    def cap(self, own: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(C, np.shape(own))

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        share = alpha / C[:, None]
        return float((C[:, None] * (entr(share) + entr(1 - share))).sum())

    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        margins = _signs(y, scores.shape[1]) * scores
        return np.abs(margins + logit(alpha / C[:, None])).max(axis=1)

    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        margins = _signs(np.array([y]), len(scores))[0] * scores
        # u = logit(alpha / C) at the root of u + m + k (C expit(u) - alpha), which rises with u
        low, high = -margins - k * (C - alpha), -margins + k * alpha
        for _ in range(60):
            u = (low + high) / 2
            above = u + margins + k * (C * expit(u) - alpha) > 0
            low, high = np.where(above, low, u), np.where(above, u, high)
        return C * expit((low + high) / 2)
