"""The contract of all losses: what is minimised, as formulas."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

Rows = np.ndarray  # or a scipy sparse matrix: only `X @ W` and `X.T @ A` are used


def spread(largest: np.ndarray, least: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Return the violation of rows whose variables have a bounded sum.

    `largest` is the largest excess of all variables, at least 0, and `least` the smallest of those in use. With
    `slack`, the sum is below its bound, and the rest is the variable of "no violation", whose excess is 0.
    """
    return largest - np.minimum(np.where(slack, np.minimum(least, 0), least), largest)


class Problem(ABC):
    """One loss: `1/2 |W|^2 + sum_i C_i loss(scores_i, y_i)` and its dual, as formulas on whole arrays.

    The compiled kernels are tested against these formulas, which are meant for reading and for small problems: scores
    and dual variables are dense `(n, K)` arrays, where K is the number of `columns`. Shapes: `X (n, d)`, `W (d, K)`,
    `alpha (n, K)`, `y (n,)` codes, `C (n,)` penalties.
    """

    name: str
    #: The family of kernels that trains it: "coupled", "maximum_entropy" or "max_margin" (all classes of a row at
    #: once), "binary" or "sparse_binary".
    kernel: ClassVar[str]
    #: Names of its parameters, which are attributes here and parameters of the estimator.
    parameter_names: ClassVar[tuple[str, ...]] = ()
    #: Whether each column of weights is trained independently of the others: by workers, or in batches of classes.
    separate: ClassVar[bool] = False
    #: Whether several processes can train one fit.
    distributed: ClassVar[bool] = True
    #: Whether rare features can do without dense weights; not if all weights are in use.
    sparse_weights: ClassVar[bool] = True
    #: Whether a fit with a larger penalty should start from larger dual variables, because most are at their bounds.
    grows_with_penalty: ClassVar[bool] = False
    #: Number of dual variables above 0 per row, measured on text, for estimates of memory; None for all classes.
    typical_support: ClassVar[int | None] = None
    #: Most classes that may join a row in one visit, for losses with nearly all classes tied early on; None for any.
    most_new: ClassVar[int | None] = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of its parameters."""
        return {name: getattr(self, name) for name in self.parameter_names}

    @abstractmethod
    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the loss of each row, before it is multiplied by `C_i`."""

    @abstractmethod
    def coefficients(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return `coef (n, K)` with `W = shrink(X' coef)`."""

    @abstractmethod
    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        """Return the dual value without the term `-1/2 |W|^2`."""

    @abstractmethod
    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return the largest violation of the optimality conditions of each row."""

    @abstractmethod
    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        """Return the best dual variables `(K,)` of one row with all other rows fixed; `k = x.x > 0`."""

    def cap(self, own: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return the upper bound of each variable; `own` says whether its class is the row's own."""
        return np.full(np.shape(own), np.inf)

    def total(self, C: np.ndarray) -> np.ndarray:
        """Return the upper bound of the sum of each row's variables."""
        return np.full(np.shape(C), np.inf)

    def columns(self, n_classes: int) -> int:
        """Return the number of columns of weights, scores and dual variables: classes, or pairs for one-vs-one."""
        return n_classes

    def loss_at_zero(self, n_classes: int) -> float:
        """Return the loss of a row at weights 0; for binary losses, that of a single problem."""
        return float(self.losses(np.zeros((1, n_classes)), np.zeros(1, np.int64))[0])

    def usual_support(self, n_classes: int) -> int:
        """Return the usual number of dual variables above 0 per row."""
        return self.typical_support or n_classes

    def shrink(self, V: np.ndarray) -> np.ndarray:
        """Return the weights of `V = X' coef`: V itself, unless there is an l1 term."""
        return V

    def weights(self, alpha: np.ndarray, X: Rows, y: np.ndarray) -> np.ndarray:
        """Return the weights `(d, K)` of the dual variables."""
        return self.shrink(X.T @ self.coefficients(alpha, y))

    def primal(self, W: np.ndarray, X: Rows, y: np.ndarray, C: np.ndarray) -> float:
        """Return the objective at any weights."""
        return 0.5 * float(np.sum(np.square(W))) + float(C @ self.losses(X @ W, y))

    def dual(self, alpha: np.ndarray, X: Rows, y: np.ndarray, C: np.ndarray) -> float:
        """Return the dual objective at a feasible point."""
        W = self.weights(alpha, X, y)
        return self.dual_gain(alpha, y, C) - 0.5 * float(np.sum(np.square(W)))
