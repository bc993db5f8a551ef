"""A tree over the labels of a model, which finds the best labels of a row without scoring all of them.

The tree is an index built only from the weights of a trained model. Beam search decides which labels to score, so
some of the best may be missed; the scores returned are exactly those of the model.
"""

from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from .label_order import LabelOrder
from .linear import ROWS_AT_ONCE, LinearModel
from .threads import thread_count
from .weights import as_matrix

BRANCHING = 128
BEAM = 20
MOST_BRANCHES = 1 << 16


class LabelTree:
    """Find the best labels of rows by beam search.

    Labels are the leaves of a balanced tree. The weights of a node are the elementwise maximum of the positive
    weights of its labels, so for rows without negative values its score is an upper bound on theirs. At each level
    the children of the `beam` best nodes are scored. At the last level these are labels, with their exact scores.

    Parameters
    ----------
    model : LinearModel
        The model to index. Its weights are copied label by label, which takes `nbytes` of memory.
    order : LabelOrder, optional
        Order of the leaves. None uses the order stored in `model.tree`.
    n_jobs : int, optional
        Number of threads; None for all cores.

    Attributes
    ----------
    model : LinearModel
        The indexed model.
    order : LabelOrder
        The order of the leaves. Store it with the model by `model.tree = tree.order`.
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
        """Build a tree by clustering the labels of a model.

        Parameters
        ----------
        model : LinearModel
        branching : int
            Maximum number of children per node, at least 2.
        seed : int
            Seed for initialising the clusters. The tree is the same for any number of threads.
        n_jobs : int, optional
            Number of threads; None for all cores.

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
        """Depth of the tree: how many times a search descends from a node to its children."""
        return int(self._kernel.levels)

    @property
    def nbytes(self) -> int:
        """Memory used by the tree, in bytes."""
        return int(self._kernel.nbytes) + self.order.labels.nbytes

    def topk(self, X: Any, k: int, *, beam: int = BEAM, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find k labels with large scores for each row, usually the largest ones.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        k : int
            At most the number of labels.
        beam : int
            Number of nodes kept at each level, raised where these have fewer than k labels. A beam as large as the
            number of labels makes the search exact.
        n_jobs : int, optional
            Number of threads; None for all cores.

        Returns
        -------
        codes : int32 ndarray of shape (n, k)
            Positions in `model.classes`, best first; ties in ascending order of position.
        scores : ndarray of shape (n, k)
        """
        model = self.model
        if beam < 1:
            raise ValueError(f"beam must be at least 1, got {beam}")
        rows = model.prepare(X)
        codes, scores = model.room_for_best(rows, k)
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
        """Return the share of the k best labels that `topk` finds, averaged over the rows.

        Parameters
        ----------
        X, k, beam, n_jobs : as for `topk`

        Returns
        -------
        float
        """
        rows = self.model.prepare(X)
        exact = self.model.topk(rows, k, n_jobs=n_jobs)[0]
        return recall_of(exact, self.topk(rows, k, beam=beam, n_jobs=n_jobs)[0])


def recall_of(exact: np.ndarray, found: np.ndarray) -> float:
    """Return the share of the codes in `exact` (n, k) that occur in the same row of `found` (n, k)."""
    both = np.sort(np.hstack([exact, found]), axis=1)
    return float((both[:, 1:] == both[:, :-1]).sum() / exact.size)


def _by_label(model: LinearModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if model.pairs:
        raise ValueError("a one-vs-one model has weights for pairs of classes, so it cannot have a tree over labels")
    weights = sp.csc_matrix(as_matrix(model.weights))
    weights.sort_indices()
    return weights.indptr.astype(np.int64, copy=False), weights.indices.astype(np.int32, copy=False), weights.data


def _even_branching(n_classes: int, most: int) -> int:
    """Return the smallest branching that gives the same depth as `most`, so that all levels are balanced."""
    depth = next(depth for depth in count(1) if most**depth >= n_classes)
    return next(branching for branching in count(2) if branching**depth >= n_classes)
