"""The elastic net: `lam |W|_1 + tau/2 |W|^2` instead of `1/2 |W|^2`."""

from typing import ClassVar

import numpy as np

from .problem import Problem, Rows


class ElasticNet(Problem):
    """A loss with an elastic net. In the dual, `W = soft(V, lam) / tau` with `V = X' coef`.

    With `constant`, the last feature is the constant one, which counts in `|W|^2` but not in `|W|_1`.
    """

    parameter_names: ClassVar[tuple[str, ...]] = ("lam", "tau")

    def __init__(self, lam: float = 0.01, tau: float = 1.0, *, constant: bool = False):
        self.lam, self.tau, self.constant = lam, tau, constant

    def shrink(self, V: np.ndarray) -> np.ndarray:
        """Return `soft(V, lam) / tau`, where `soft(v) = sign(v) max(0, |v| - lam)`."""
        W = V - np.clip(V, -self.lam, self.lam)
        if self.constant:
            W[-1] = V[-1]
        return W / self.tau

    def primal(self, W: np.ndarray, X: Rows, y: np.ndarray, C: np.ndarray) -> float:
        """Return the objective at any weights."""
        shrunk = W[:-1] if self.constant else W
        elastic_net = self.lam * float(np.abs(shrunk).sum()) + self.tau / 2 * float(np.sum(np.square(W)))
        return elastic_net + float(C @ self.losses(X @ W, y))

    def dual(self, alpha: np.ndarray, X: Rows, y: np.ndarray, C: np.ndarray) -> float:
        """Return the dual objective at a feasible point."""
        W = self.weights(alpha, X, y)
        return self.dual_gain(alpha, y, C) - self.tau / 2 * float(np.sum(np.square(W)))
