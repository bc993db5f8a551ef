"""Compress weights: drop small ones, and store values in one or two bytes and class indices in two where they fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.matrix import chosen_entries, pointers
from .weights import SparseWeights, WideWeights, as_matrix, as_stored, nbytes

TYPES = ("float16", "int8")
# The largest 8-bit integer whose negative also fits.
LARGEST = 127


def compress_weights(weights: Any, *, dtype: str | None, prune: float, keep: int | None) -> Any:
    """Drop small weights and convert the rest to a smaller type; parameters as for `LinearModel.compress`."""
    if dtype is not None and dtype not in TYPES:
        raise ValueError(f"dtype must be float16, int8 or None, got {dtype!r}")
    if not prune >= 0:
        raise ValueError(f"prune must be 0 or more, got {prune!r}")
    if keep is not None and keep < 1:
        raise ValueError(f"keep must be 1 or more weights per class, got {keep!r}")
    if isinstance(weights, WideWeights):
        return replace(weights, part=compress_weights(weights.part, dtype=dtype, prune=prune, keep=keep))
    matrix = sp.csr_matrix(as_matrix(weights))
    matrix = _chosen(matrix, (np.abs(matrix.data) >= prune) & (matrix.data != 0))
    if keep is not None:
        matrix = _chosen(matrix, _largest_of_column(matrix, keep))
    if dtype is not None:
        return _narrow(matrix, dtype)
    dense_bytes = matrix.shape[0] * matrix.shape[1] * matrix.dtype.itemsize
    return matrix if nbytes(matrix) < dense_bytes else matrix.toarray()


def _chosen(matrix: sp.csr_matrix, chosen: np.ndarray) -> sp.csr_matrix:
    indptr, indices, values = chosen_entries(chosen, matrix.indptr, matrix.indices, matrix.data)
    return sp.csr_matrix((values, indices, indptr), shape=matrix.shape)


def _largest_of_column(matrix: sp.csr_matrix, count: int) -> np.ndarray:
    # By column, then largest first; ties go to the first feature.
    order = np.lexsort((-np.abs(matrix.data), matrix.indices))
    begin = pointers(np.bincount(matrix.indices, minlength=matrix.shape[1]))
    rank = np.arange(order.size) - begin[matrix.indices[order]]
    chosen = np.zeros(order.size, bool)
    chosen[order[rank < count]] = True
    return chosen


def _narrow(matrix: sp.csr_matrix, dtype: str) -> SparseWeights:
    scale = None
    if dtype == "float16":
        largest = np.abs(matrix.data).max(initial=0)
        if largest > np.finfo(np.float16).max:
            raise ValueError(f"a weight of size {largest:g} does not fit in float16; use int8, which scales weights")
        values = matrix.data.astype(np.float16)
    else:
        most = np.zeros(matrix.shape[1])
        np.maximum.at(most, matrix.indices, np.abs(matrix.data))
        scale = (most / LARGEST).astype(np.float32)
        per_step = np.divide(1, scale, out=np.zeros(scale.size), where=scale > 0)
        steps = np.rint(matrix.data * per_step[matrix.indices])
        values = np.clip(steps, -LARGEST, LARGEST).astype(np.int8)
    matrix.data = values.astype(np.float32)  # scipy has no float16
    stored = as_stored(_chosen(matrix, values != 0))
    fits = matrix.shape[1] <= np.iinfo(np.uint16).max + 1
    indices = stored.indices.astype(np.uint16) if fits else stored.indices
    return SparseWeights(stored.indptr, indices, values[values != 0], matrix.shape[1], scale)
