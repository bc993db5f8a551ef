"""Many binary problems on the same rows: hinge, squared hinge, logistic.

One-vs-rest has one problem per class, with sign `t = 1` for its own rows and -1 for all others. One-vs-one has one
problem per pair of classes `a < b`, in the order of `numpy.triu_indices`, with sign 1 for the rows of a, -1 for those
of b, and 0 for all other rows. Dual variables are `alpha >= 0`, and at most `C_i` for hinge and logistic loss.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import entr, expit, logit

from .problem import Problem
from .registry import offered

ONE_VS_ONE: dict[str, Any] = {"parameters": {"pairs": True}, "from_store": ()}
ONE_VS_REST: dict[str, Any] = {"takes_sets": True, "reducible": True}


class Binary(Problem):
    """What these losses have in common; with `pairs`, one-vs-one instead of one-vs-rest."""

    kernel = "binary"
    separate = True
    #: The loss of one binary problem.
    loss: ClassVar[str]
    #: Whether `C_i` bounds each variable.
    bounded: ClassVar[bool] = True

    def __init__(self, pairs: bool = False):
        self.pairs = pairs
        self.name = f"ovo_{self.loss}" if pairs else self.loss

    def columns(self, n_classes: int) -> int:
        return n_classes * (n_classes - 1) // 2 if self.pairs else n_classes

    def loss_at_zero(self, n_classes: int) -> float:
        return float(self.loss_at(np.zeros(1))[0])

    def cap(self, own: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(C, np.shape(own)) if self.bounded else super().cap(own, C)

    def _signs(self, y: np.ndarray, problems: int) -> np.ndarray:
        if not self.pairs:
            return np.where(np.arange(problems) == y[:, None], 1.0, -1.0)
        n_classes = (1 + round(np.sqrt(1 + 8 * problems))) // 2
        first, second = np.triu_indices(n_classes, 1)
        return (first == y[:, None]) * 1.0 - (second == y[:, None])

    def coefficients(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._signs(y, alpha.shape[1]) * alpha

    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = self._signs(y, scores.shape[1])
        return np.where(t != 0, self.loss_at(t * scores), 0).sum(axis=1)

    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        t = self._signs(y, scores.shape[1])
        return np.where(t != 0, self._violation(t * scores, alpha, C[:, None]), 0).max(axis=1)

    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        t = self._signs(np.array([y]), len(scores))[0]
        return np.where(t != 0, self._best(t * scores, alpha, k, C), 0)

    @abstractmethod
    def loss_at(self, margin: np.ndarray) -> np.ndarray:
        """Return the loss of each margin `t s`."""

    @abstractmethod
    def _violation(self, margin: np.ndarray, alpha: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return the violation of the optimality condition of each variable."""

    @abstractmethod
    def _best(self, margin: np.ndarray, alpha: np.ndarray, k: float, C: float) -> np.ndarray:
        """Return the best value of each variable with all others fixed."""


@offered("OvO hinge", "OneVsOneSVC", **ONE_VS_ONE)
@offered("OvR hinge", "OneVsRestSVC", **ONE_VS_REST, from_store=("dual", "pegasos"))
class Hinge(Binary):
    """`max(0, 1 - m)`."""

    loss = "hinge"

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return float(alpha.sum())

    def loss_at(self, margin: np.ndarray) -> np.ndarray:
        return np.maximum(0, 1 - margin)

    def _violation(self, margin: np.ndarray, alpha: np.ndarray, C: np.ndarray) -> np.ndarray:
        g = margin - 1
        return np.where(g < 0, -g * (alpha < C), g * (alpha > 0))

    def _best(self, margin: np.ndarray, alpha: np.ndarray, k: float, C: float) -> np.ndarray:
        return np.clip(alpha - (margin - 1) / k, 0, C)


@offered("OvO squared hinge", "OneVsOneSVC", **ONE_VS_ONE)
@offered(
    "OvR squared hinge",
    "OneVsRestSVC",
    **ONE_VS_REST,
    solvers=("newton",),
    from_store=("dual", "pegasos", "streamsvm"),
)
class SquaredHinge(Binary):
    """`max(0, 1 - m)^2`."""

    loss = "squared_hinge"
    bounded = False

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return float((alpha * (1 - alpha / (4 * C[:, None]))).sum())

    def loss_at(self, margin: np.ndarray) -> np.ndarray:
        return np.square(np.maximum(0, 1 - margin))

    def _violation(self, margin: np.ndarray, alpha: np.ndarray, C: np.ndarray) -> np.ndarray:
        g = margin - 1 + alpha / (2 * C)
        return np.where(g < 0, -g, g * (alpha > 0))

    def _best(self, margin: np.ndarray, alpha: np.ndarray, k: float, C: float) -> np.ndarray:
        return np.maximum(alpha - (margin - 1 + alpha / (2 * C)) / (k + 1 / (2 * C)), 0)


@offered("OvO logistic", "OneVsOneLogistic", **ONE_VS_ONE)
@offered("OvR logistic", "OneVsRestLogistic", **ONE_VS_REST, solvers=("newton",), from_store=("dual", "pegasos"))
class Logistic(Binary):
    """`log(1 + exp(-m))`."""

    loss = "logistic"

    @property
    def sparse_weights(self) -> bool:  # type: ignore[override]
        return self.pairs  # a pair has no weights for features that occur in none of its rows

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        share = alpha / C[:, None]
        return float((C[:, None] * (entr(share) + entr(1 - share))).sum())

    def loss_at(self, margin: np.ndarray) -> np.ndarray:
        return np.logaddexp(0, -margin)

    def _violation(self, margin: np.ndarray, alpha: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.abs(margin + logit(alpha / C))

    def _best(self, margin: np.ndarray, alpha: np.ndarray, k: float, C: float) -> np.ndarray:
        # u = logit(alpha / C) is the root of u + m + k (C expit(u) - alpha), which increases with u
        low, high = -margin - k * (C - alpha), -margin + k * alpha
        for _ in range(60):
            u = (low + high) / 2
            above = u + margin + k * (C * expit(u) - alpha) > 0
            low, high = np.where(above, low, u), np.where(above, u, high)
        return C * expit((low + high) / 2)
