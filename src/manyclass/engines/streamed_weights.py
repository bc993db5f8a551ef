"""The weights of a model from those that a stream holds: dense, or sparse where that is smaller."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..solvers import Stream, StreamShape

# Bytes up to which a model is dense whatever its zeros, as in feature_weights.hpp.
SMALL_MODEL = 1 << 24
# Features whose weights are turned into those of the model at once.
FEATURES_AT_ONCE = 4096


def assemble_weights(
    fit: Stream, shape: StreamShape, singles: Sequence[tuple[np.ndarray, ...]], dtype: np.dtype
) -> np.ndarray | sp.csr_matrix:
    """Put weights together, by features.

    Parameters
    ----------
    fit : Stream
        It holds those of the features that several rows have.
    shape : StreamShape
    singles : sequence of tuples
        What `Stream.single_weights` has given for all rows.
    dtype : numpy dtype
        Of the weights.

    Returns
    -------
    ndarray or csr_matrix of shape (features, K)
    """
    features, K = shape.places.features, shape.n_classes
    heads = np.full(features, -1, np.int64)
    heads[shape.places.head_features()] = np.arange(shape.places.heads)
    of_one_row = _join(singles, dtype)
    counts = np.zeros(features, np.int64)
    counts[of_one_row.features] = np.diff(of_one_row.indptr)
    for chosen, found in _of_heads(fit, heads):
        counts[chosen] = np.count_nonzero(found, axis=1)
    dense = features * K * dtype.itemsize
    if dense <= SMALL_MODEL or int(counts.sum()) * (4 + dtype.itemsize) >= dense:
        weights = np.zeros((features, K), dtype)
        for chosen, found in _of_heads(fit, heads):
            weights[chosen] = found
        weights[np.repeat(of_one_row.features, np.diff(of_one_row.indptr)), of_one_row.classes] = of_one_row.values
        return weights
    indptr = np.concatenate([[0], np.cumsum(counts)])
    classes, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], dtype)
    for chosen, found in _of_heads(fit, heads):
        row, column = np.nonzero(found)
        place = indptr[chosen][row] + np.arange(row.size) - np.searchsorted(row, row)
        classes[place], values[place] = column, found[row, column]
    place = np.repeat(indptr[of_one_row.features] - of_one_row.indptr[:-1], np.diff(of_one_row.indptr))
    place += np.arange(of_one_row.values.size)
    classes[place], values[place] = of_one_row.classes, of_one_row.values
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    sparse = sp.csr_matrix((features, K), dtype=dtype)
    sparse.data, sparse.indices, sparse.indptr = values, classes, indptr
    return sparse


def _of_heads(fit: Stream, heads: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some features that have weights in the stream, and these, a part after the other."""
    for low in range(0, heads.size, FEATURES_AT_ONCE):
        chosen = np.flatnonzero(heads[low : low + FEATURES_AT_ONCE] >= 0) + low
        yield chosen, fit.weights_of(heads[chosen])


@dataclass(frozen=True)
class _OfOneRow:
    """Weights of features that only one row has, by ascending features."""

    features: np.ndarray
    indptr: np.ndarray
    classes: np.ndarray
    values: np.ndarray


def _join(parts: Sequence[tuple[np.ndarray, ...]], dtype: np.dtype) -> _OfOneRow:
    if not parts:
        none = np.empty(0, np.int64)
        return _OfOneRow(none, np.zeros(1, np.int64), none, np.empty(0, dtype))
    features = np.concatenate([part[0] for part in parts])
    lengths = np.concatenate([np.diff(part[1]) for part in parts])
    classes, values = (np.concatenate([part[place] for part in parts]) for place in (2, 3))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    # With its shape: all of these weights may be 0.
    matrix = sp.csr_matrix((values, classes, indptr), shape=(features.size, classes.max(initial=0) + 1))
    order = np.argsort(features)
    matrix = matrix[order]
    return _OfOneRow(features[order], matrix.indptr.astype(np.int64), matrix.indices, matrix.data)
