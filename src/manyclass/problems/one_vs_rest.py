"""One binary SVM a class: hinge and squared hinge. Dual variables `alpha_ic >= 0`, for the hinge at most `C_i`."""

import numpy as np

from .problem import Problem


def _signs(y: np.ndarray, K: int) -> np.ndarray:
    """t_ic = +1 at a row's own class, -1 elsewhere."""
    t = -np.ones((len(y), K))
    t[np.arange(len(y)), y] = 1
    return t


class OneVsRest(Problem):
    """What the two have in common."""

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
