"""Predict sets of labels as sparse matrices with one column per class."""

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..data import RowMatrix

if TYPE_CHECKING:
    from .linear import LinearModel

# Maximum number of scores in memory when all scores of a row are needed.
SCORES_AT_ONCE = 1 << 24


def predict_sets(
    model: "LinearModel", X: RowMatrix, *, k: int | None = None, threshold: float = 0.0, n_jobs: int | None = None
) -> sp.csr_matrix:
    """Predict as ones the `k` labels with the largest scores for each row, or all with scores above the threshold."""
    found = topk_matrix(model, X, k, n_jobs=n_jobs) if k is not None else scores_above(model, X, threshold, n_jobs)
    return sp.csr_matrix((np.ones(found.nnz, np.int32), found.indices, found.indptr), shape=found.shape)


def scores_above(model: "LinearModel", X: RowMatrix, threshold: float, n_jobs: int | None = None) -> sp.csr_matrix:
    """Return the scores above a threshold, computed a few rows at a time to limit memory."""
    parts = []
    at_once = max(1, SCORES_AT_ONCE // model.n_classes)
    for begin in range(0, max(1, X.shape[0]), at_once):  # a rank may have no rows
        scores = model.scores(X[begin : begin + at_once], n_jobs=n_jobs)
        rows, codes = np.nonzero(scores > threshold)
        parts.append(sp.csr_matrix((scores[rows, codes], (rows, codes)), shape=scores.shape))
    return sp.csr_matrix(sp.vstack(parts, format="csr"))


def topk_matrix(model: "LinearModel", X: RowMatrix, k: int, *, n_jobs: int | None = None) -> sp.csr_matrix:
    """Return the scores of the k best classes of each row, with exactly k stored entries per row."""
    codes, scores = model.topk(X, k, n_jobs=n_jobs)
    ascending = np.argsort(codes, axis=1)
    indices, values = (np.take_along_axis(array, ascending, axis=1).reshape(-1) for array in (codes, scores))
    indptr = np.arange(0, codes.size + 1, k)
    return sp.csr_matrix((values, indices, indptr), shape=(codes.shape[0], model.n_classes))
