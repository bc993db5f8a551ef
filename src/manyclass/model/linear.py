"""A trained linear model: weights by features, scores, the best classes."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core
from ..data import RowMatrix, TextFeatures, check_matrix

# Rows scored by one call into the core: Ctrl-C is answered in between.
ROWS_AT_ONCE = 4096


def thread_count(n_jobs: int | None) -> int:
    """Translate scikit-learn's `n_jobs`: None and -1 mean all the cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one thread or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


@dataclass
class LinearModel:
    """Scores are `X @ weights + intercept`; the class with the largest one is predicted.

    Attributes
    ----------
    weights : ndarray or csr_matrix of shape (n_features, K), float32 or float64
        One row a feature: that is how they are read when a sparse row is scored.
    intercept : ndarray of shape (K,)
        Minus infinity marks a class that was never trained (an interrupted one-vs-rest fit): it is never
        predicted.
    classes : ndarray of shape (K,)
        The labels.
    settings : dict
        How it was trained; plain values that JSON can hold.
    certificate : dict
        Primal, dual, gap and violation at the end of training.
    text : TextFeatures, optional
        How raw text becomes rows of features, if the model was trained on text.
    """

    weights: Any
    intercept: np.ndarray
    classes: np.ndarray
    settings: dict[str, Any] = field(default_factory=dict)
    certificate: dict[str, Any] = field(default_factory=dict)
    text: TextFeatures | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.weights.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.weights.shape[1])

    @property
    def dtype(self) -> np.dtype:
        """Type of the weights."""
        return self.weights.dtype

    @property
    def is_sparse(self) -> bool:
        """Whether only non-zero weights are stored."""
        return sp.issparse(self.weights)

    @property
    def density(self) -> float:
        """Share of the weights that are not zero."""
        nonzero = self.weights.nnz if self.is_sparse else int(np.count_nonzero(self.weights))
        return nonzero / max(1, self.n_features * self.n_classes)

    @property
    def nbytes(self) -> int:
        """Memory of weights and intercept."""
        w = self.weights
        stored = w.data.nbytes + w.indices.nbytes + w.indptr.nbytes if self.is_sparse else w.nbytes
        return int(stored + self.intercept.nbytes)

    def scores(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Score every row for every class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        ndarray of shape (n, K)
        """
        rows = self._check(X)
        out = np.empty((rows.n_rows, self.n_classes), self.dtype)
        for part, begin, end in _parts(rows):
            self._score(part, None, out[begin:end], thread_count(n_jobs))
        return out

    def topk(self, X: Any, k: int, *, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best classes of each row, without ever holding all scores.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        k : int
            At most the number of classes.
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        codes : int32 ndarray of shape (n, k)
            Positions in `classes`, best first; of equal scores the lower one first.
        scores : ndarray of shape (n, k)
        """
        if not 1 <= k <= self.n_classes:
            raise ValueError(f"k must be between 1 and the number of classes, {self.n_classes}; got {k}")
        rows = self._check(X)
        codes = np.empty((rows.n_rows, k), np.int32)
        scores = np.empty((rows.n_rows, k), self.dtype)
        for part, begin, end in _parts(rows):
            self._score(part, codes[begin:end], scores[begin:end], thread_count(n_jobs))
        return codes, scores

    def predict(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Give the best class of each row."""
        return self.classes[self.topk(X, 1, n_jobs=n_jobs)[0][:, 0]]

    def _check(self, X: Any) -> RowMatrix:
        rows = check_matrix(X)
        if rows.n_features != self.n_features:
            raise ValueError(
                f"X has {rows.n_features} features, but LinearModel is expecting {self.n_features} features as input"
            )
        return rows

    def _score(self, part: sp.csr_matrix, codes: np.ndarray | None, scores: np.ndarray, threads: int) -> None:
        given = (part.indptr.astype(np.int64, copy=False), part.indices, part.data)
        w = self.weights
        if self.is_sparse:
            stored = (w.indptr.astype(np.int64, copy=False), w.indices.astype(np.int32, copy=False), w.data)
            core.score_sparse(*given, *stored, self.intercept, codes, scores, threads)
        else:
            core.score_dense(*given, w, self.intercept, codes, scores, threads)


def _parts(rows: RowMatrix) -> Iterator[tuple[sp.csr_matrix, int, int]]:
    whole = rows.as_csr() if rows.is_sparse else None
    for begin in range(0, rows.n_rows, ROWS_AT_ONCE):
        end = min(rows.n_rows, begin + ROWS_AT_ONCE)
        if whole is None:
            assert rows.dense is not None
            yield sp.csr_matrix(rows.dense[begin:end]), begin, end
            continue
        # A view of these rows: only the row pointers are copied.
        ptr = whole.indptr[begin : end + 1]
        part = sp.csr_matrix((end - begin, rows.n_features), dtype=whole.dtype)
        part.indptr = ptr - ptr[0]
        part.indices, part.data = whole.indices[ptr[0] : ptr[-1]], whole.data[ptr[0] : ptr[-1]]
        yield part, begin, end
