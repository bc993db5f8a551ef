"""What every solver takes, gives and promises."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from ..data import RowMatrix

Stop = Literal["gap", "kkt"]


@dataclass(frozen=True)
class TrainingSet:
    """The rows to learn from, frozen.

    Attributes
    ----------
    X : RowMatrix
        n rows.
    codes : int32 ndarray of shape (n,)
        Their classes, 0..n_classes-1; empty where rows have sets of labels.
    C : ndarray of shape (n,)
        Their penalties `C * sample weight * class weight`, all positive.
    n_classes : int
        K; classes without rows are allowed.
    constant : float
        Value of the constant feature; 0 for none.
    reduced : bool
        Feature reduction: a class has weights only for features that some of its rows have.
    Y : csr_matrix of shape (n, n_classes), optional
        The sets of labels of the rows, where they may have any number: ones, indices sorted, none twice.
    """

    X: RowMatrix
    codes: np.ndarray
    C: np.ndarray
    n_classes: int
    constant: float = 0.0
    reduced: bool = False
    Y: sp.csr_matrix | None = None

    def labels_by_row(self) -> tuple[np.ndarray, np.ndarray]:
        """The labels of each row, one row after the other.

        Returns
        -------
        ptr : int64 ndarray of shape (n + 1,)
            Where the labels of each row begin.
        labels : int32 ndarray
        """
        if self.Y is not None:
            return self.Y.indptr.astype(np.int64), self.Y.indices.astype(np.int32)
        return np.arange(self.codes.size + 1), self.codes

    def rows_by_class(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of each class, one class after the other.

        Returns
        -------
        ptr : int64 ndarray of shape (n_classes + 1,)
            Where the rows of each class begin.
        rows : int32 ndarray
            Ascending within a class.
        """
        if self.Y is not None:
            by_class = self.Y.tocsc()
            by_class.sort_indices()
            return by_class.indptr.astype(np.int64), by_class.indices.astype(np.int32)
        counts = np.bincount(self.codes, minlength=self.n_classes)
        return np.concatenate([[0], np.cumsum(counts)]), np.argsort(self.codes, kind="stable").astype(np.int32)


@dataclass(frozen=True)
class Certificate:
    """How good a solution is, in float64 and over all variables, shrunken ones included.

    Attributes
    ----------
    primal : float
        The objective at the model's weights.
    dual : float
        The dual objective at the (feasible) dual variables: no weights whatever have a lower primal value.
    violation : float
        The largest violation of the optimality conditions.
    exit_reason : str
        "converged", "max_iter", "time_limit", "one_pass" (of a method that makes no more) or "interrupted".
    message : str
        What was reached, and for a fit that did not converge what to change.
    """

    primal: float
    dual: float
    violation: float
    exit_reason: str = ""
    message: str = ""

    @property
    def gap(self) -> float:
        """Relative duality gap, `(primal - dual) / max(|primal|, |dual|)`; 0 where both are 0."""
        larger = max(abs(self.primal), abs(self.dual))
        return (self.primal - self.dual) / larger if larger != 0 else 0.0


@dataclass(frozen=True)
class StopRule:
    """When a fit is done: relative duality gap ("gap") or largest violation ("kkt") at most `tol`."""

    stop: Stop
    tol: float

    def met(self, certificate: Certificate) -> bool:
        """Whether a certificate satisfies the rule."""
        return (certificate.gap if self.stop == "gap" else certificate.violation) <= self.tol


@dataclass(frozen=True)
class Progress:
    """Where a solver stands, as it sees it itself while it works.

    Attributes
    ----------
    epochs : float
        Passes over all rows so far.
    primal, dual, violation : float
        Estimates from the rows as they were visited; NaN before the first pass has ended.
    active : float
        Share of the work that is still being visited.
    ready : bool
        The solver believes that the stopping rule is met: time for a certificate.
    pass_ended : bool
        A pass has ended; a line for the history.
    exhausted : str, optional
        Why more passes would change nothing, whether the rule is met or not: an `exit_reason`.
    """

    epochs: float
    primal: float
    dual: float
    violation: float
    active: float
    ready: bool
    pass_ended: bool
    exhausted: str | None = None


class Solver(ABC):
    """A fit that can be advanced, certified and turned into weights at any time."""

    @abstractmethod
    def advance(self, rule: StopRule) -> Progress:
        """Do a bounded piece of work."""

    @abstractmethod
    def certificate(self) -> Certificate:
        """Certify the current state."""

    def meets(self, rule: StopRule, found: Certificate) -> bool:
        """Whether the fit is done, given its certificate."""
        return rule.met(found)

    @abstractmethod
    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, K)` of the current state. Training cannot go on afterwards."""

    def untrained(self) -> np.ndarray:
        """Classes that no step has touched yet."""
        return np.empty(0, np.int64)

    def by_label(self) -> np.ndarray | None:
        """How each label ended, where labels end by themselves; see `LabelBlocks`."""
        return None

    @abstractmethod
    def memory(self) -> dict[str, int]:
        """Bytes of data, weights and dual variables while training."""

    @abstractmethod
    def state(self) -> Any:
        """The dual variables, as the next fit on these rows takes them."""

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Start from these dual variables."""
        raise NotImplementedError(f"{type(self).__name__} is given its dual variables when it is made")

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Everything that is needed to resume with the same bits; may be asked for between calls of `advance`.

        Of several processes each gives its part, which may be nothing. Arrays may be the solver's own memory: they
        hold until its next call.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps its dual variables in files of its own")

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        """Resume from a checkpoint of the same problem, whatever its number of threads and processes was.

        Parameters
        ----------
        parts : sequence of dict of arrays
            Of all processes that wrote it.

        Returns
        -------
        Progress
            Where it stood after its last `advance`.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps its dual variables in files of its own")
