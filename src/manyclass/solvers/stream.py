"""Rows that arrive block by block: each block brings its dual variables and takes them away, weights stay.

A pass visits every block once, in an order chosen by the caller. A certificate loads all blocks again: once per range
of classes to add up the weights of the dual variables in float64, and once to score all rows.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problems import Problem
from .options import SolverOptions
from .solver import Certificate, Progress, StopRule

Variables = dict[str, np.ndarray]

# With `rounds="tol"`, stop visiting a block when a round sees this share of the gap that the first one saw.
SETTLED = 0.1
MOST_ROUNDS = 10


@dataclass(frozen=True)
class RowBlock:
    """Rows as laid out for the kernels.

    Attributes
    ----------
    layout : Layout32 or Layout64
        Holds the rows, except while a solver has loaded them.
    label_ptr, labels : ndarray
        Start of each row's labels, and the labels of all rows.
    C : ndarray of shape (n,)
        Penalties; 0 for rows to leave out.
    ends : tuple of int
        End of each part of the rows; parts have separate variables.
    number : int
        Number of the block, for seeds.
    """

    layout: Any
    label_ptr: np.ndarray
    labels: np.ndarray
    C: np.ndarray
    ends: tuple[int, ...]
    number: int

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Begin and end of each part."""
        return list(itertools.pairwise((0, *self.ends)))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.C.size)


@dataclass(frozen=True)
class StreamShape:
    """What is known of all rows before the first block arrives.

    Attributes
    ----------
    places : FeaturePlaces
        Features with weights in memory.
    n_classes : int
    width : float
        Mean number of features per row.
    constant : float
        Value of the constant feature; 0 for none.
    n_rows : int
    first_class : int
        First class, if this is a range of all classes.
    """

    places: Any
    n_classes: int
    width: float
    constant: float
    n_rows: int
    first_class: int = 0


class Stream(ABC):
    """A solver that loads its rows block by block into `_kernel`."""

    progress: Progress
    #: Whether stored variables have to be loaded with `project` once more before a certificate.
    unsettled = False
    #: Number of weights in lists.
    listed = 0
    _kernel: Any
    _block: RowBlock

    def __init__(self, problem: Problem, shape: StreamShape, options: SolverOptions, interrupt: Any):
        self._problem, self._K = problem, shape.n_classes
        self._dtype, self._seed, self._threads = np.dtype(options.dtype), options.seed, options.threads
        self._interrupt = interrupt
        self._heads = shape.places.heads

    @abstractmethod
    def load(self, block: RowBlock, variables: Sequence[Variables | None], *, project: bool = False) -> None:
        """Load rows and the variables of their parts, or None for parts without variables.

        `project` projects variables of other penalties onto the feasible set.
        """

    def unload(self) -> None:
        """Return the rows to their layout, so that other solvers can load them."""
        self._kernel.return_rows(self._block.layout)

    @abstractmethod
    def only_rows(self, variables: Variables, rows: np.ndarray, before: int) -> Variables:
        """Return the variables of some rows, ascending, of the `before` rows that `variables` belong to."""

    @abstractmethod
    def visit(self, rule: StopRule, rounds: int | str, pass_number: int) -> None:
        """Visit the loaded rows this many times, or for "tol" until visits gain little."""

    @abstractmethod
    def variables(self) -> list[Variables]:
        """Return the variables of the loaded rows, by part."""

    @abstractmethod
    def end_pass(self, rule: StopRule) -> None:
        """End a pass after all blocks have been visited."""

    @abstractmethod
    def begin_certificate(self) -> None:
        """Start a new certificate."""

    def add_to(self, exact: Any) -> None:
        """Add the loaded rows to exact weights."""
        self._kernel.add_to(exact, self._threads)

    @abstractmethod
    def set_weights(self, exact: Any) -> None:
        """Set the weights to exact ones, rounded."""

    @abstractmethod
    def measure(self) -> None:
        """Add the loaded rows to the certificate."""

    @abstractmethod
    def certificate(self, rule: StopRule) -> Certificate:
        """Return the certificate, after all ranges of classes have been set and all rows measured."""

    def best_classes(self) -> np.ndarray:
        """Return the class with the largest score of each loaded row."""
        return self._kernel.best_classes(self._threads)

    def single_weights(self) -> tuple[np.ndarray, ...]:
        """Return the weights of features that occur in only one row: features, pointers, classes, values."""
        return self._kernel.single_weights()

    @abstractmethod
    def weights_of(self, shared: np.ndarray) -> np.ndarray:
        """Return the weights of some features for all classes; places of the tail follow those of the head."""

    def forget_lists(self) -> None:  # noqa: B027
        """Free the weights in lists."""

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights."""
        return self._kernel.weight_bytes
