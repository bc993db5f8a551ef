"""The largest margin violation over pairs of a wrong and a right label, with an elastic net: PD-Sparse.

    P(W) = lam sum_jc |w_jc| + tau/2 |W|^2 + sum_i C_i max(0, max_{n in N_i} max_{p in P_i} 1 + s_in - s_ip)

`P_i` are the labels of row i and `N_i` all others; the constant feature has no l1 term. A row without labels, or with
all labels, has no loss. Dual variables `alpha_ic >= 0` for both kinds of labels:

    D(alpha) = sum_i sum_{p in P_i} alpha_ip - tau/2 |W|^2,    sum_{P_i} alpha_ip = sum_{N_i} alpha_in <= C_i
    W = soft(V, lam) / tau,    V = sum_i x_i u_i',    u_ip = alpha_ip,  u_in = -alpha_in

With one label per row, `lam = 0` and `tau = 1`, this is the loss of Crammer and Singer.
"""

import numpy as np

from .elastic_net import ElasticNet
from .problem import spread
from .registry import offered


def _positives(y: np.ndarray, K: int) -> np.ndarray:
    """Return the labels of each row as an indicator `(n, K)`; `y` has codes, or is an indicator."""
    return np.asarray(y, bool) if np.ndim(y) == 2 else np.asarray(y)[:, None] == np.arange(K)


def _excesses(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `1 + s_n` for other labels and `-s_p` for a row's own, each with minus infinity elsewhere."""
    return np.where(positive, -np.inf, 1 + scores), np.where(positive, -scores, -np.inf)


def project(own: np.ndarray, others: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest point without negative values and with equal sums of at most `total` on both sides.

    With `max(0, own - nu)` and `max(0, others + nu)`, the difference of the sums decreases with nu, and is linear
    between its knots.
    """

    def sums(nu: float) -> tuple[float, float]:
        return float(np.maximum(own - nu, 0).sum()), float(np.maximum(others + nu, 0).sum())

    if own.max() + others.max() <= 0:
        return np.zeros_like(own), np.zeros_like(others)
    knots = np.sort(np.concatenate([own, -others]))
    values = [np.subtract(*sums(nu)) for nu in knots]
    right = next(e for e, value in enumerate(values) if value <= 0)
    nu = knots[right]
    if right > 0 and values[right] < 0:
        slope = (values[right - 1] - values[right]) / (knots[right] - knots[right - 1])
        nu = knots[right - 1] + values[right - 1] / slope
    if sums(nu)[0] <= total:
        return np.maximum(own - nu, 0), np.maximum(others + nu, 0)
    return _to_simplex(own, total), _to_simplex(others, total)


def _to_simplex(v: np.ndarray, total: float) -> np.ndarray:
    """Return the nearest point without negative values and with this sum."""
    largest = np.sort(v)[::-1]
    cuts = (np.cumsum(largest) - total) / np.arange(1, len(v) + 1)
    return np.maximum(v - cuts[np.flatnonzero(largest > cuts)[-1]], 0)


@offered("PD-Sparse", "PDSparse", takes_sets=True, from_store=())
class MaxMargin(ElasticNet):
    """`max(0, max_{n, p} 1 - (s_p - s_n))`, with `lam |W|_1 + tau/2 |W|^2`."""

    name = "max_margin"
    distributed = False
    typical_support = 14
    kernel = "max_margin"

    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        others, own = _excesses(scores, _positives(y, scores.shape[1]))
        return np.maximum(others.max(axis=1) + own.max(axis=1), 0)

    def coefficients(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(_positives(y, alpha.shape[1]), alpha, -alpha)

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return float(alpha[_positives(y, alpha.shape[1])].sum())

    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        others, own = _excesses(scores, _positives(y, scores.shape[1]))
        most = np.maximum(others.max(axis=1) + own.max(axis=1), 0)
        least = sum(np.where((alpha > 0) & np.isfinite(e), e, np.inf).min(axis=1) for e in (others, own))
        return spread(most, least, alpha.sum(axis=1) / 2 < C * (1 - 1e-12))

    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        # The curvature of the dual is at most k / tau, and smaller where weights are 0.
        q = k / self.tau
        positive = _positives(np.stack([y]), len(scores))[0]
        best = np.zeros(len(scores))
        if positive.any() and not positive.all():
            v = alpha + np.where(positive, 1 - scores, scores) / q
            best[positive], best[~positive] = project(v[positive], v[~positive], C)
        return best

    def cap(self, own: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(C, np.shape(own))

    def total(self, C: np.ndarray) -> np.ndarray:
        return 2 * C
