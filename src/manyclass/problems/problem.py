"""What is minimised: the contract between a loss and everything to its right."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

Rows = np.ndarray  # or a scipy sparse matrix: only `X @ W` and `X.T @ A` are used


class Problem(ABC):
    """One loss: `1/2 |W|^2 + sum_i C_i loss(scores_i, y_i)` and its dual, as formulas on whole arrays.

    These are the formulas that the compiled kernels are tested against, written for reading and for small
    problems: scores and dual variables are dense `(n, K)` arrays, where K is what `columns` gives. Shapes:
    `X (n, d)`, `W (d, K)`, `alpha (n, K)`, `y (n,)` codes, `C (n,)` penalties.
    """

    name: str
    #: The family of kernels that trains it: "coupled", "maximum_entropy" or "max_margin" (all classes of a row at
    #: once), or "binary".
    kernel: ClassVar[str]
    #: Whether rare features can go without dense weights: not where all weights are in use.
    sparse_weights: ClassVar[bool] = True
    #: Whether a fit with a larger penalty had best begin at larger dual variables: where most stand at their bounds.
    grows_with_penalty: ClassVar[bool] = False
    #: Dual variables above 0 per row, as seen on text, for estimates of memory; None for all classes.
    typical_support: ClassVar[int | None] = None
    #: Classes that may join a row in one visit, where early on nearly all of them are tied; None for any number.
    most_new: ClassVar[int | None] = None

    @abstractmethod
    def losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each row, before it is multiplied by `C_i`."""

    @abstractmethod
    def coefficients(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        """`coef (n, K)` with `W = X' coef`, or with what `shrink` makes of it."""

    @abstractmethod
    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        """The dual value without its `-1/2 |W|^2`."""

    @abstractmethod
    def violations(self, scores: np.ndarray, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Largest violation of the optimality conditions in each row."""

    @abstractmethod
    def solve_row(self, scores: np.ndarray, alpha: np.ndarray, y: int, k: float, C: float) -> np.ndarray:
        """Best new dual variables `(K,)` of one row with all others fixed; `k = x.x > 0`."""

    def cap(self, own: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Upper bound of each variable; `own`: whether its class is the row's own."""
        return np.full(np.shape(own), np.inf)

    def total(self, C: np.ndarray) -> np.ndarray:
        """Upper bound of the sum of a row's variables."""
        return np.full(np.shape(C), np.inf)

    def columns(self, n_classes: int) -> int:
        """Columns of weights, scores and dual variables: the classes, for one-vs-one their pairs."""
        return n_classes

    def loss_at_zero(self, n_classes: int) -> float:
        """Loss of a row at weights 0; of binary problems, in one of them."""
        return float(self.losses(np.zeros((1, n_classes)), np.zeros(1, np.int64))[0])

    def usual_support(self, n_classes: int) -> int:
        """How many dual variables of a row are above 0, usually."""
        return self.typical_support or n_classes

    def shrink(self, V: np.ndarray) -> np.ndarray:
        """Weights of `V = X' coef`: V itself, unless the problem has an l1 term."""
        return V

    def weights(self, alpha: np.ndarray, X: Rows, y: np.ndarray) -> np.ndarray:
        """Weights `(d, K)` of the dual variables."""
        return self.shrink(X.T @ self.coefficients(alpha, y))

    def primal(self, W: np.ndarray, X: Rows, y: np.ndarray, C: np.ndarray) -> float:
        """Value of the objective at any weights."""
        return 0.5 * float(np.sum(np.square(W))) + float(C @ self.losses(X @ W, y))

    def dual(self, alpha: np.ndarray, X: Rows, y: np.ndarray, C: np.ndarray) -> float:
        """Value of the dual objective at a feasible point."""
        W = self.weights(alpha, X, y)
        return self.dual_gain(alpha, y, C) - 0.5 * float(np.sum(np.square(W)))
