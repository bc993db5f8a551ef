"""A tree over the labels of a model: the best ones of a row without scoring all.

It is an index, built from the weights of a trained model alone. Which labels are looked at is a guess by beam search;
the scores that are given are the model's own.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core
from ..solvers.solver import native
from .label_order import LabelOrder
from .linear import ROWS_AT_ONCE, LinearModel
from .threads import thread_count
from .weights import as_matrix

BRANCHING = 128
BEAM = 20
MOST_BRANCHES = 1 << 16


class LabelTree:
    """Finds the best labels of rows by beam search.

    Labels are the leaves of a balanced tree. A node has the elementwise maximum of the positive weights of its
    labels, so that for rows without negative values its score is no less than theirs. At each level the children of
    the `beam` best nodes are scored; at the last one these are labels, with their exact scores.

    Parameters
    ----------
    model : LinearModel
        Its weights are copied, by label: the copy takes `nbytes`.
    order : LabelOrder, optional
        None for that of the model, `model.tree`.
    n_jobs : int, optional
        Threads; None for all cores.

    Attributes
    ----------
    model : LinearModel
    order : LabelOrder
        To be kept with the model: `model.tree = tree.order`.
    """

    def __init__(self, model: LinearModel, order: LabelOrder | None = None, *, n_jobs: int | None = None):
        order = model.tree if order is None else order
        if order is None:
            raise ValueError(
                "the model has no tree over its labels; build one with LabelTree.build or `manyclass index`"
            )
        order.check(model.n_classes)
        weights, threads = _by_label(model), thread_count(n_jobs)
        branching = _even_branching(model.n_classes, order.branching)
        self.model, self.order = model, order
        self._kernel = native(core, "LabelTree", model.dtype)(
            *weights, model.n_features, order.labels, model.intercept, branching, threads
        )

    @classmethod
    def build(
        cls, model: LinearModel, *, branching: int = BRANCHING, seed: int = 0, n_jobs: int | None = None
    ) -> "LabelTree":
        """Cluster the labels of a model.

        Parameters
        ----------
        model : LinearModel
        branching : int
            The children of a node at the most, 2 or more.
        seed : int
            Of the first guesses of the clustering; for a seed the tree is the same for any number of threads.
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        LabelTree
        """
        if not 2 <= branching <= MOST_BRANCHES:
            raise ValueError(f"branching must be between 2 and {MOST_BRANCHES}, got {branching}")
        weights, threads = _by_label(model), thread_count(n_jobs)
        even = _even_branching(model.n_classes, branching)
        labels = core.cluster_labels(*weights, model.n_features, even, seed % 2**64, threads)
        return cls(model, LabelOrder(labels, branching), n_jobs=n_jobs)

    @property
    def levels(self) -> int:
        """How many times a search goes down from a node to its children."""
        return int(self._kernel.levels)

    @property
    def nbytes(self) -> int:
        """Memory of the tree."""
        return int(self._kernel.nbytes) + self.order.labels.nbytes

    def topk(self, X: Any, k: int, *, beam: int = BEAM, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find k labels of each row with large scores, often the largest ones.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        k : int
            At most the number of labels.
        beam : int
            The nodes kept at each level, and more where these have fewer than k labels. The number of labels makes it
            exact.
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        codes : int32 ndarray of shape (n, k)
            Positions in `model.classes`, best first; of equal scores the lower one first.
        scores : ndarray of shape (n, k)
        """
        model = self.model
        if not 1 <= k <= model.n_classes:
            raise ValueError(f"k must be between 1 and the number of classes, {model.n_classes}; got {k}")
        if beam < 1:
            raise ValueError(f"beam must be at least 1, got {beam}")
        rows = model.prepare(X)
        codes = np.empty((rows.n_rows, k), np.int32)
        scores = np.empty((rows.n_rows, k), model.dtype)
        whole = rows.as_csr() if rows.is_sparse else None
        for begin in range(0, rows.n_rows, ROWS_AT_ONCE):
            end = begin + ROWS_AT_ONCE
            part = sp.csr_matrix(rows.dense[begin:end]) if whole is None else whole  # type: ignore[index]
            ptr = part.indptr if whole is None else whole.indptr[begin : end + 1]
            self._kernel.best_labels(
                ptr.astype(np.int64, copy=False),
                part.indices,
                part.data,
                model.n_features,
                beam,
                codes[begin:end],
                scores[begin:end],
                thread_count(n_jobs),
            )
        return codes, scores

    def recall(self, X: Any, k: int, *, beam: int = BEAM, n_jobs: int | None = None) -> float:
        """Share of the k best labels of the rows that `topk` finds, the mean over the rows.

        Parameters
        ----------
        X, k, beam, n_jobs
            As for `topk`.

        Returns
        -------
        float
        """
        rows = self.model.prepare(X)
        exact = self.model.topk(rows, k, n_jobs=n_jobs)[0]
        return recall_of(exact, self.topk(rows, k, beam=beam, n_jobs=n_jobs)[0])


def recall_of(exact: np.ndarray, found: np.ndarray) -> float:
    """Share of the codes in `exact` (n, k) that their row in `found` (n, k) has."""
    both = np.sort(np.hstack([exact, found]), axis=1)
    return float((both[:, 1:] == both[:, :-1]).sum() / exact.size)


def _by_label(model: LinearModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if model.pairs:
        raise ValueError("a one-vs-one model has weights for pairs of classes, over which there is no tree")
    weights = sp.csc_matrix(as_matrix(model.weights))
    weights.sort_indices()
    return weights.indptr.astype(np.int64, copy=False), weights.indices.astype(np.int32, copy=False), weights.data


def _even_branching(n_classes: int, most: int) -> int:
    """The least branching with which the tree is as deep as with the one asked for: all levels divide alike."""
    depth = 1
    while most**depth < n_classes:
        depth += 1
    branching = 2
    while branching**depth < n_classes:
        branching += 1
    return branching
