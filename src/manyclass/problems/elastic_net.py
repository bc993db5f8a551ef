"""One binary problem a label with an elastic net (PPDSparse): hinge or squared hinge, l1 and l2.

`lam |w|_1 + tau/2 |w|^2 + sum_i C_i loss(t_i w.x_i)` for each label, with `t = 1` for its rows and -1 for all others.
The last feature may be the constant one, which is in `|w|^2` and not in `|w|_1`. Dual variables `alpha >= 0`, for the
hinge at most `C_i`; weights are `soft(V, lam) / tau` with `V = X' (t alpha)`.
"""

from typing import ClassVar

import numpy as np

from .binary import Binary, Hinge, SquaredHinge
from .problem import Rows


def soft_threshold(V: np.ndarray, lam: float, constant: bool) -> np.ndarray:
    """`sign(v) max(0, |v| - lam)`, where the constant feature, the last row, stays what it is."""
    W = np.sign(V) * np.maximum(np.abs(V) - lam, 0)
    if constant:
        W[-1] = V[-1]
    return W


class ElasticNet(Binary):
    """What both losses have in common.

    Parameters
    ----------
    lam, tau : float
        Factors of `|w|_1` and of `|w|^2 / 2`.
    constant : bool
        Whether the last feature is the constant one.
    draws : int
        Of features, by the size of their weights, for a search among the rows that goes by these only; 0: it goes by
        all. The optimum does not depend on it.
    """

    kernel = "elastic_net"

    def __init__(self, lam: float = 0.01, tau: float = 1.0, constant: bool = False, draws: int = 0):
        super().__init__()
        self.name = f"ppd_{self.loss}"
        self.lam, self.tau, self.constant, self.draws = lam, tau, constant, draws

    def shrink(self, V: np.ndarray) -> np.ndarray:
        return soft_threshold(V, self.lam, self.constant) / self.tau

    def primal(self, W: np.ndarray, X: Rows, y: np.ndarray, C: np.ndarray) -> float:
        sparse = W[:-1] if self.constant else W
        penalty = self.lam * np.abs(sparse).sum() + 0.5 * self.tau * np.square(W).sum()
        return float(penalty + C @ self.losses(np.asarray(X @ W), y))

    def dual(self, alpha: np.ndarray, X: Rows, y: np.ndarray, C: np.ndarray) -> float:
        W = self.weights(alpha, X, y)
        return self.dual_gain(alpha, y, C) - 0.5 * self.tau * float(np.square(W).sum())


class SparseHinge(ElasticNet, Hinge):
    """`max(0, 1 - m)`."""


class SparseSquaredHinge(ElasticNet, SquaredHinge):
    """`1/2 max(0, 1 - m)^2`: half of what `SquaredHinge` has, as PPDSparse has it."""

    loss: ClassVar[str] = "squared_hinge"

    def loss_at(self, margin: np.ndarray) -> np.ndarray:
        return 0.5 * np.square(np.maximum(0, 1 - margin))

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return super().dual_gain(alpha, y, C / 2)

    def _violation(self, margin: np.ndarray, alpha: np.ndarray, C: np.ndarray) -> np.ndarray:
        return super()._violation(margin, alpha, C / 2)

    def _best(self, margin: np.ndarray, alpha: np.ndarray, k: float, C: float) -> np.ndarray:
        return super()._best(margin, alpha, k / self.tau, C / 2)
