"""Rows that come a block at a time, from anywhere: dual variables come and go with them, weights stay.

A pass visits every block once, in an order that the caller chooses. A certificate takes further passes without
visits: one or several that add up the weights of the dual variables in float64, for a range of classes each, and
one that scores all rows.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .solver import Certificate, Progress, StopRule

Variables = dict[str, np.ndarray]

# Rounds within a block that end by themselves do so at this share of the gap that the first one has seen.
SETTLED = 0.1
MOST_ROUNDS = 10


@dataclass(frozen=True)
class RowBlock:
    """Rows as the kernels want them.

    Attributes
    ----------
    layout : Layout32 or Layout64
        A solver that loads it has the rows until it unloads them.
    label_ptr, labels : ndarray
        The labels of all rows one after the other, and where each row's begin.
    C : ndarray of shape (n,)
        Penalties; 0 for rows that take no part.
    ends : tuple of int
        The rows may be those of several parts, each with variables of its own: where each of them ends.
    number : int
        For seeds.
    """

    layout: Any
    label_ptr: np.ndarray
    labels: np.ndarray
    C: np.ndarray
    ends: tuple[int, ...]
    number: int

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Where each part begins and ends."""
        return list(itertools.pairwise((0, *self.ends)))

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.C.size)


@dataclass(frozen=True)
class StreamShape:
    """What is known of all rows before the first block comes.

    Attributes
    ----------
    places : FeaturePlaces
        Which features have weights in memory.
    n_classes : int
    width : float
        Features of a row, on average.
    constant : float
        Value of the constant feature; 0 for none.
    n_rows : int
    first_class : int
        Of a range of classes: where it begins among all of them.
    """

    places: Any
    n_classes: int
    width: float
    constant: float
    n_rows: int
    first_class: int = 0


class Stream(Protocol):
    """A solver that is given its rows block by block."""

    progress: Progress

    @property
    def unsettled(self) -> bool:
        """Whether variables that were kept have to be loaded once more with `project` before a certificate."""
        ...

    def load(self, block: RowBlock, variables: Sequence[Variables | None], *, project: bool = False) -> None:
        """Go on with these rows and the variables of their parts, or None for parts that have none yet.

        `project` brings variables of other penalties to the feasible set.
        """
        ...

    def unload(self) -> None:
        """Give the rows back, for other solvers to load."""
        ...

    def only_rows(self, variables: Variables, rows: np.ndarray, before: int) -> Variables:
        """Those of some of the rows that they belong to.

        Parameters
        ----------
        variables : dict of arrays
        rows : ndarray
            Which of the rows, ascending.
        before : int
            How many rows they belong to.
        """
        ...

    def visit(self, rule: StopRule, rounds: int | str, pass_number: int) -> None:
        """Visit the rows: some rounds, or "tol", until they gain little."""
        ...

    def variables(self) -> list[Variables]:
        """Those of the rows that are loaded, by their parts."""
        ...

    def end_pass(self, rule: StopRule) -> None:
        """All blocks have been visited."""
        ...

    def begin_certificate(self) -> None:
        """Forget what was added up for another one."""
        ...

    def add_to(self, exact: Any) -> None:
        """Add the rows that are loaded to exact weights."""
        ...

    def set_weights(self, exact: Any) -> None:
        """Take over exact weights, rounded."""
        ...

    def measure(self) -> None:
        """Add what the rows that are loaded give to the certificate."""
        ...

    def certificate(self, rule: StopRule) -> Certificate:
        """End a certificate: all ranges of classes were set, all rows measured."""
        ...

    def best_classes(self) -> np.ndarray:
        """The class of each row that is loaded with the largest score."""
        ...

    def single_weights(self) -> tuple[np.ndarray, ...]:
        """Weights of features that only one row has: features, pointers, classes, values."""
        ...

    def weights_of(self, shared: np.ndarray) -> np.ndarray:
        """Weights of some features for all classes, by their places: in the head, or behind it in the tail."""
        ...

    def forget_lists(self) -> None:
        """Give back the memory of weights in lists, which are no longer needed."""
        ...

    @property
    def listed(self) -> int:
        """How many weights are in lists."""
        ...

    @property
    def weight_bytes(self) -> int:
        """Of the weights."""
        ...
