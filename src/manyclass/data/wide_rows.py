"""Reduce rows with very many features to those that occur, so that only these are trained and scored."""

import numpy as np

from .matrix import RowMatrix

# With fewer features than this, anything stored per feature is small.
MANY = 1 << 22
# Reduce the rows if there are more than this many features per feature that occurs.
TOO_MANY = 8


def used_features(rows: RowMatrix) -> np.ndarray | None:
    """Return the features that occur, ascending, if they are few out of very many; otherwise None.

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
    """Return the rows with only these features, renumbered from 0.

    Parameters
    ----------
    rows : RowMatrix
        Sparse or dense rows.
    features : int64 ndarray
        The features to keep, ascending.
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
