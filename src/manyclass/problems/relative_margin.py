"""Losses on the margins `s_y - s_c` between a row's own class and the others: Weston-Watkins, Crammer-Singer.

With `u_c = 1 + s_c - s_y` for `c != y`, WW is the sum of all positive `u_c` and CS the largest. Dual variables are
`alpha_c >= 0, c != y`, each at most `C_i` (WW), or with a sum of at most `C_i` (CS).
"""

import numpy as np

from .problem import Problem, spread
from .registry import offered


def _excess(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return `u_ic = 1 + s_ic - s_iy`, with minus infinity for the row's own class."""
    rows = np.arange(len(y))
    u = 1 + scores - scores[rows, y][:, None]
    u[rows, y] = -np.inf
    return u


def _threshold(v: np.ndarray, cap: float, total: float, A: float) -> float:
    """Return the root of `sum_c clip(v_c - tau, 0, cap) - min(total, A + tau)`, from its breakpoints."""

    def F(tau: float) -> float:
        return float(np.clip(v - tau, 0, cap).sum() - min(total, A + tau))

    breaks = [v[np.isfinite(v)], v[np.isfinite(v)] - cap if np.isfinite(cap) else [], [-A]]
    breaks.append([total - A] if np.isfinite(total) else [])
    knots = np.unique(np.concatenate([np.asarray(b, float) for b in breaks]))
    values = np.array([F(t) for t in knots])
    right = int(np.argmax(values <= 0))  # at the last knot the sum is 0, and F not above it
    if right == 0:
        return float(knots[0])
    a, b, Fa, Fb = knots[right - 1], knots[right], values[right - 1], values[right]
    return float(a + (b - a) * Fa / (Fa - Fb))


class RelativeMargin(Problem):
    """What both losses have in common."""

    kernel = "coupled"

    def coefficients(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        coef = -alpha
        coef[np.arange(len(y)), y] = alpha.sum(axis=1)
        return coef

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return float(alpha.sum())

    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        cap, total = float(self.cap(np.array(False), np.array(C))), float(self.total(np.array(C)))
        v = alpha + _excess(scores[None], np.array([y]))[0] / k
        tau = _threshold(v, cap, total, float(alpha.sum()))
        return np.clip(v - tau, 0, cap)


@offered("Weston-Watkins", "MulticlassSVC", solvers=("leagues",), reducible=True)
class WestonWatkins(RelativeMargin):
    """`sum_{c != y} max(0, 1 - (s_y - s_c))`."""

    name = "ww"
    typical_support = 40

    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(_excess(scores, y), 0).sum(axis=1)

    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        u = _excess(scores, y)
        u[np.arange(len(y)), y] = 0
        return np.where(u > 0, u * (alpha < C[:, None]), -u * (alpha > 0)).max(axis=1)

    def cap(self, own: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.where(own, 0.0, C)


@offered("Crammer-Singer", "MulticlassSVC", reducible=True)
class CrammerSinger(RelativeMargin):
    """`max_{c != y} max(0, 1 - (s_y - s_c))`."""

    name = "cs"
    typical_support = 16
    most_new = 256

    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(_excess(scores, y).max(axis=1), 0)

    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        u = _excess(scores, y)
        most = np.maximum(u.max(axis=1), 0)
        least = np.where(alpha > 0, u, np.inf).min(axis=1)
        return spread(most, least, alpha.sum(axis=1) < C * (1 - 1e-12))

    def cap(self, own: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.where(own, 0.0, np.inf)

    def total(self, C: np.ndarray) -> np.ndarray:
        return C
