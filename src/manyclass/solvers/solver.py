"""The contract of all solvers: what they are given, and what they return."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from ..data import RowMatrix

Stop = Literal["gap", "kkt"]


@dataclass(frozen=True)
class TrainingSet:
    """The rows to train on.

    Attributes
    ----------
    X : RowMatrix
        n rows.
    codes : int32 ndarray of shape (n,)
        Class of each row, 0..n_classes-1; empty if rows have sets of labels.
    C : ndarray of shape (n,)
        Penalty of each row, `C * sample weight * class weight`; positive.
    n_classes : int
        K; classes without rows are allowed.
    constant : float
        Value of the constant feature; 0 for none.
    reduced : bool
        Feature reduction: a class has weights only for the features of its own rows.
    Y : csr_matrix of shape (n, n_classes), optional
        Set of labels of each row, as ones; indices are sorted and unique.
    """

    X: RowMatrix
    codes: np.ndarray
    C: np.ndarray
    n_classes: int
    constant: float = 0.0
    reduced: bool = False
    Y: sp.csr_matrix | None = None

    def labels_by_row(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of each row, one row after the other.

        Returns
        -------
        ptr : int64 ndarray of shape (n + 1,)
            Start of the labels of each row.
        labels : int32 ndarray
        """
        if self.Y is not None:
            return self.Y.indptr.astype(np.int64), self.Y.indices.astype(np.int32)
        return np.arange(self.codes.size + 1), self.codes

    def rows_by_class(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where the rows of each class begin, and the rows, ascending within a class."""
        if self.Y is not None:
            by_class = self.Y.tocsc()
            by_class.sort_indices()
            return by_class.indptr.astype(np.int64), by_class.indices.astype(np.int32)
        counts = np.bincount(self.codes, minlength=self.n_classes)
        return np.concatenate([[0], np.cumsum(counts)]), np.argsort(self.codes, kind="stable").astype(np.int32)


@dataclass(frozen=True)
class Certificate:
    """How good a solution is, computed in float64 over all variables, including those left out by shrinking.

    Attributes
    ----------
    primal : float
        Objective at the weights of the model.
    dual : float
        Dual objective at the (feasible) dual variables: no weights have a smaller primal value than this.
    violation : float
        Largest violation of the optimality conditions.
    exit_reason : str
        "converged", "max_iter", "time_limit", "one_pass" (for methods with a single pass) or "interrupted".
    message : str
        What was reached and, if the fit did not converge, what to change.
    """

    primal: float
    dual: float
    violation: float
    exit_reason: str = ""
    message: str = ""

    @classmethod
    def total(cls, parts: Collection[Any]) -> "Certificate":
        """Add up independent problems, each with `primal`, `dual` and `violation`."""
        primal, dual = (math.fsum(getattr(part, name) for part in parts) for name in ("primal", "dual"))
        return cls(primal, dual, max((part.violation for part in parts), default=0.0))

    @property
    def gap(self) -> float:
        """Relative duality gap, `(primal - dual) / max(|primal|, |dual|)`; 0 if both are 0."""
        larger = max(abs(self.primal), abs(self.dual))
        return (self.primal - self.dual) / larger if larger != 0 else 0.0


@dataclass(frozen=True)
class StopRule:
    """When to stop: relative duality gap ("gap") or largest violation ("kkt") at most `tol`."""

    stop: Stop
    tol: float

    def met(self, certificate: Certificate) -> bool:
        """Whether a certificate meets the rule."""
        return (certificate.gap if self.stop == "gap" else certificate.violation) <= self.tol


@dataclass(frozen=True)
class Progress:
    """Progress of a solver, by its own estimate.

    Attributes
    ----------
    epochs : float
        Number of passes over all rows so far.
    primal, dual, violation : float
        Estimates from the visits of rows; NaN until the first pass has ended.
    active : float
        Share of the work that is still left.
    ready : bool
        Whether the solver expects a certificate to meet the rule.
    pass_ended : bool
        Whether a pass has ended, which adds a line to the history.
    exhausted : str, optional
        An `exit_reason` if more passes would change nothing, even if the rule is not met.
    """

    epochs: int | float
    primal: float
    dual: float
    violation: float
    active: float
    ready: bool
    pass_ended: bool
    exhausted: str | None = None


class Solver(ABC):
    """A fit that can be advanced, certified and turned into weights at any time."""

    #: Whether classes are finished one after another, which `Progress.active` then counts.
    by_classes: ClassVar[bool] = False

    @abstractmethod
    def advance(self, rule: StopRule) -> Progress:
        """Do a bounded piece of work."""

    @abstractmethod
    def certificate(self) -> Certificate:
        """Return the certificate of the current state."""

    def meets(self, rule: StopRule, found: Certificate) -> bool:
        """Whether the fit meets the rule, given its certificate."""
        return rule.met(found)

    @abstractmethod
    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Return the weights `(features, K)` of the current state. Training cannot continue afterwards."""

    def untrained(self) -> np.ndarray:
        """Return the classes that have not been trained at all."""
        return np.empty(0, np.int64)

    def by_label(self) -> np.ndarray | None:
        """Return the exit status per label if labels are trained separately; see `ElasticNetBlocks`."""
        return None

    @abstractmethod
    def memory(self) -> dict[str, int]:
        """Return the bytes of data, weights and dual variables during training."""

    @abstractmethod
    def state(self) -> Any:
        """Return the dual variables, from which another fit on these rows can start."""

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Start from these dual variables."""
        raise NotImplementedError(f"{type(self).__name__} takes its dual variables when it is created")

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Return everything needed to resume with the same bits, between two calls of `advance`.

        Each process returns its own part, which may be empty. Arrays may be the solver's own memory, valid until its
        next call.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps its dual variables in files of its own")

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        """Resume from a checkpoint of the same problem, written with any number of threads and processes.

        Takes the parts of all processes that wrote it; returns the last progress before it.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps its dual variables in files of its own")
