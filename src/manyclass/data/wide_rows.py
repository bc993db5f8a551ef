"""Reduce rows with very many features to those that occur, so that only these are trained and scored."""

from dataclasses import replace

import numpy as np

from .matrix import RowMatrix, chosen_entries

# With fewer features than this, anything stored per feature is small.
MANY = 1 << 22
# Reduce the rows if there are more than this many features per feature that occurs.
TOO_MANY = 8


def used_features(rows: RowMatrix) -> np.ndarray | None:
    """Return the features that occur, ascending, if they are few out of very many; otherwise None."""
    if rows.indices is None or rows.n_features < MANY:
        return None
    used = np.unique(rows.indices).astype(np.int64)
    return used if used.size * TOO_MANY < rows.n_features else None


def narrow_rows(rows: RowMatrix, features: np.ndarray) -> RowMatrix:
    """Return the rows with only these features, which must be ascending, renumbered from 0."""
    if rows.dense is not None:
        return RowMatrix(rows.n_rows, features.size, dense=rows.dense[:, features], longest=rows.longest)
    indptr, indices, values = rows.csr_arrays
    places = np.searchsorted(features, indices)
    known = places < features.size
    known[known] = features[places[known]] == indices[known]
    if not known.all():
        indptr, places, values = chosen_entries(known, indptr, places, values)
    indptr, places = indptr.astype(rows.csr_arrays[0].dtype, copy=False), places.astype(indices.dtype)
    return replace(rows, n_features=features.size, indptr=indptr, indices=places, values=values)
