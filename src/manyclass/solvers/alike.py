"""Rows that are alike except for their length, so that a step for one of them undoes that for another."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from .solver import TrainingSet

#: Smallest cosine of rows that are alike.
ALIKE = 0.8
#: Alike rows are found through rare features: features of at most this many rows, which contribute at least `SHARED`
#: to the cosine.
RARE = 64
SHARED = 0.2
#: Larger groups are split.
MOST_ROWS = 32
ROWS_AT_ONCE = 1024


def groups_of_alike_rows(data: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
    """Return groups of two or more rows, each linked to the next by a cosine of at least `ALIKE`.

    Group g has the rows `rows[ptr[g] : ptr[g + 1]]` of the result `ptr, rows`.
    """
    X = sp.csr_matrix(data.X.as_csr(), dtype=np.float64, copy=True)
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() + data.constant**2
    X = sp.csr_matrix(sp.diags_array(1 / np.sqrt(np.where(squares > 0, squares, 1))) @ X)
    constant = np.where(squares > 0, data.constant / np.sqrt(np.where(squares > 0, squares, 1)), 0)
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    rare = sp.csr_matrix(X[:, (frequency > 1) & (frequency <= RARE)])
    by_feature = sp.csc_matrix(rare.T)
    firsts, seconds = [], []
    for begin in range(0, X.shape[0], ROWS_AT_ONCE):
        products = sp.coo_matrix(rare[begin : begin + ROWS_AT_ONCE] @ by_feature)
        first = products.row + begin
        likely = (products.data >= SHARED) & (first < products.col)
        first, second = first[likely], products.col[likely]
        cosine = np.asarray(X[first].multiply(X[second]).sum(axis=1)).ravel() + constant[first] * constant[second]
        firsts.append(first[cosine >= ALIKE])
        seconds.append(second[cosine >= ALIKE])
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    links = sp.coo_matrix((np.ones(len(first)), (first, second)), shape=(X.shape[0], X.shape[0]))
    _, label = connected_components(links, directed=False)
    rows = np.flatnonzero(np.bincount(label)[label] > 1)
    rows = rows[np.argsort(label[rows], kind="stable")]
    borders = [*np.flatnonzero(np.diff(label[rows], prepend=-1)), len(rows)]
    ptr = [b for begin, end in pairwise(borders) for b in range(begin, end, MOST_ROWS)]
    return np.array([*ptr, len(rows)], np.int64), rows.astype(np.int64)
