"""Losses on the scores themselves, with weights that sum to zero over the classes.

The excess is `e_y = target - s_y` for a row's own class and `e_c = 1 + s_c` for the others. A loss is the sum of all
positive excesses, each with its share of `C_i`, or the largest one, over the own class, the others, or all. Dual
variables are `alpha_c >= 0`, each at most its share of `C_i` (sums), or with a sum of at most `C_i` (maxima).
"""

import numpy as np
from scipy.optimize import brentq

from .problem import Problem, spread
from .registry import offered


def _balance(v: np.ndarray, sign: np.ndarray, caps: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return `clip(v + sign t, 0, caps)` with `sum sign (clip(...) - alpha) = K t`, by the breakpoints of t."""

    def values(t: np.ndarray) -> np.ndarray:
        return np.clip(v + sign * t[:, None], 0, caps)

    def F(t: np.ndarray) -> np.ndarray:  # never increases
        return (values(t) - alpha) @ sign - len(v) * t

    finite = np.isfinite(caps)
    knots = np.unique(np.concatenate([-v * sign, (caps - v)[finite] * sign[finite]]))
    knots = np.concatenate([[knots[0] - 1], knots, [knots[-1] + 1]])
    at = F(knots)
    right = int(np.clip(np.argmax(at <= 0) if at[-1] <= 0 else len(knots) - 1, 1, len(knots) - 1))
    low, high, F_low, F_high = knots[right - 1], knots[right], at[right - 1], at[right]
    t = low if F_low == F_high else low + (high - low) * F_low / (F_low - F_high)
    return values(np.array([t]))[0]


class AbsoluteMargin(Problem):
    """What these losses have in common."""

    kernel = "coupled"
    sparse_weights = False
    grows_with_penalty = True
    #: Shares of `C_i` of the row's own class and of each other class; 0 for no variable.
    own: float = 0.0
    others: float = 0.0
    #: Whether the loss is the largest excess instead of the sum.
    largest: bool = False

    def _own_target(self, K: int) -> float:
        return 1.0

    def _own_class(self, y: np.ndarray, K: int) -> np.ndarray:
        return np.arange(K) == y[:, None]

    def _targets(self, y: np.ndarray, K: int) -> np.ndarray:
        return np.where(self._own_class(y, K), self._own_target(K), 1.0)

    def _shares(self, y: np.ndarray, K: int) -> np.ndarray:
        return np.where(self._own_class(y, K), self.own, self.others)

    def _excess(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        K = scores.shape[1]
        return self._targets(y, K) - np.where(self._own_class(y, K), scores, -scores)

    def cap(self, own: np.ndarray, C: np.ndarray) -> np.ndarray:
        share = np.where(own, self.own, self.others)
        return np.where(share > 0, np.inf, 0.0) if self.largest else share * C

    def total(self, C: np.ndarray) -> np.ndarray:
        return C if self.largest else super().total(C)

    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        weighted = self._shares(y, scores.shape[1]) * np.maximum(self._excess(scores, y), 0)
        return weighted.max(axis=1) if self.largest else weighted.sum(axis=1)

    def coefficients(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        coef = np.where(self._own_class(y, alpha.shape[1]), alpha, -alpha)
        return coef - coef.mean(axis=1, keepdims=True)

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return float((self._targets(y, alpha.shape[1]) * alpha).sum())

    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        e, shares = self._excess(scores, y), self._shares(y, scores.shape[1])
        if not self.largest:
            return (
                np.where(e > 0, e * (alpha < shares * C[:, None] * (1 - 1e-12)), -e * (alpha > 0)) * (shares > 0)
            ).max(axis=1)
        most = np.maximum(np.where(shares > 0, e, -np.inf).max(axis=1), 0)
        least = np.where(alpha > 1e-12 * C[:, None], e, np.inf).min(axis=1)
        return spread(most, least, alpha.sum(axis=1) < C * (1 - 1e-10))

    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        K, label = len(scores), np.array([y])
        sign = np.where(self._own_class(label, K)[0], 1.0, -1.0)
        caps = self.cap(sign > 0, np.array(C))
        v = alpha + self._excess(scores[None], label)[0] / k

        new = _balance(v, sign, caps, alpha)
        if new.sum() <= self.total(np.array(C)):
            return new
        return self._full_simplex(v, sign, alpha, C)

    def _full_simplex(self, v: np.ndarray, sign: np.ndarray, alpha: np.ndarray, C: float) -> np.ndarray:
        """Return the new values if they add up to C: `v_c - x` for the others, and the rest for the row's own."""
        K, own, others = len(v), sign > 0, sign < 0

        def values(x: float) -> np.ndarray:
            new = np.where(others, np.maximum(v - x, 0), 0.0)
            return np.where(own, max(C - new.sum(), 0.0), new) if self.own > 0 else new

        def off(x: float) -> float:
            """Return x minus its value by the condition of the own class; increases with x."""
            new = values(x)
            return float(x - (v - new)[own][0] - 2 / K * sign @ (new - alpha))

        top = float(v[others].max())
        low = brentq(lambda x: np.maximum(v[others] - x, 0).sum() - C, top - 2 * C, top, xtol=1e-15)
        if self.own == 0 or off(low) >= 0:
            return values(low)
        return values(brentq(off, low, top, xtol=1e-15) if off(top) > 0 else top)


@offered("Lee-Lin-Wahba", "MulticlassSVC", solvers=("alternating",))
class LeeLinWahba(AbsoluteMargin):
    """`sum_{c != y} max(0, 1 + s_c)`."""

    name = "llw"
    others = 1.0


@offered("maximum-margin regression", "MulticlassSVC")
class MaximumMarginRegression(AbsoluteMargin):
    """`max(0, 1 - s_y)`."""

    name = "mmr"
    typical_support = 1
    own = 1.0


@offered("reinforced", "MulticlassSVC")
class Reinforced(AbsoluteMargin):
    """`gamma max(0, K - 1 - s_y) + (1 - gamma) sum_{c != y} max(0, 1 + s_c)`."""

    name = "rm"
    parameter_names = ("gamma",)

    def __init__(self, gamma: float = 0.5):
        self.gamma = gamma
        self.own, self.others = gamma, 1 - gamma

    def _own_target(self, K: int) -> float:
        return K - 1.0


@offered("ADM", "MulticlassSVC")
class LargestOfOthers(AbsoluteMargin):
    """`max_{c != y} max(0, 1 + s_c)`: ADM, Dogan et al.'s absolute discriminative maximum."""

    name = "adm"
    typical_support = 16
    others = 1.0
    largest = True


@offered("ATM", "MulticlassSVC")
class LargestOfAll(AbsoluteMargin):
    """`max(max(0, 1 - s_y), max_{c != y} max(0, 1 + s_c))`: ATM, the absolute total maximum."""

    name = "atm"
    typical_support = 16
    own = others = 1.0
    largest = True


@offered("ATS", "MulticlassSVC")
class SumOfAll(AbsoluteMargin):
    """`max(0, 1 - s_y) + sum_{c != y} max(0, 1 + s_c)`: ATS, the absolute total sum."""

    name = "ats"
    own = others = 1.0
