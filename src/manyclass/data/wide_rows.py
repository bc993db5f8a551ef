"""Rows of very many features of which few occur: only these are trained and scored."""

import numpy as np

from .matrix import RowMatrix

# With fewer features than this, whatever is kept for each of them is small.
MANY = 1 << 22
# A feature that does not occur should cost less than one that does: so many times as many are too many.
TOO_MANY = 8


def used_features(rows: RowMatrix) -> np.ndarray | None:
    """The features that occur, ascending, if they are few of very many; None for all others.

    Parameters
    ----------
    rows : RowMatrix

    Returns
    -------
    int64 ndarray or None
    """
    if rows.indices is None or rows.n_features < MANY:
        return None
    used = np.unique(rows.indices).astype(np.int64)
    return used if used.size * TOO_MANY < rows.n_features else None


def narrow_rows(rows: RowMatrix, features: np.ndarray) -> RowMatrix:
    """Rows with some of their features, numbered as these are.

    Parameters
    ----------
    rows : RowMatrix
        Sparse or dense.
    features : int64 ndarray
        Ascending.
    """
    if rows.dense is not None:
        return RowMatrix(rows.n_rows, features.size, dense=rows.dense[:, features], longest=rows.longest)
    assert rows.indptr is not None and rows.indices is not None and rows.values is not None
    places = np.searchsorted(features, rows.indices)
    known = places < features.size
    known[known] = features[places[known]] == rows.indices[known]
    kind = rows.indices.dtype
    if known.all():
        return RowMatrix(
            rows.n_rows, features.size, rows.indptr, places.astype(kind), rows.values, None, rows.copies, rows.longest
        )
    before = np.concatenate([[0], np.cumsum(known)]).astype(kind)
    arrays = before[rows.indptr], places[known].astype(kind), rows.values[known]
    return RowMatrix(rows.n_rows, features.size, *arrays, None, rows.copies, rows.longest)
