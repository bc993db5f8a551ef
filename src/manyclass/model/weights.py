"""The forms in which a model stores its weights, and scoring without expanding them.

A model's `weights` are one of

| | |
|---|---|
| `ndarray` | dense, float32 or float64 |
| `csr_matrix` | sparse, float32 or float64 |
| `SparseWeights` | sparse, of any type that a model file can hold |
| `WideWeights` | one of these, for the few of very many features that have weights |
| `JoinedWeights` | some of these side by side: a model in shards |

all of shape (features, columns), read by features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data import RowMatrix
from ..data.matrix import csr_of, index_type
from ..data.wide_rows import narrow_rows

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
NARROW = (np.dtype(np.float16), np.dtype(np.int8))


@dataclass(frozen=True)
class SparseWeights:
    """Sparse weights `values * scale[column]`, in arrays that may be mapped from a file.

    Attributes
    ----------
    indices
        Columns, ascending within a feature, as int32 or uint16.
    values
        float32 or float64; or float16 or int8, with scores in float32.
    scale
        Factor per column, for int8 values only.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    columns: int
    scale: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Features and columns."""
        return self.indptr.size - 1, self.columns

    @property
    def dtype(self) -> np.dtype:
        """The type of scores."""
        return self.values.dtype if self.values.dtype in FLOATS else np.dtype(np.float32)

    def tocsr(self) -> sp.csr_matrix:
        """Convert to a csr_matrix of float32 or float64, sharing the arrays where possible."""
        values = self.values.astype(self.dtype, copy=False)
        if self.scale is not None:
            values *= self.scale[self.indices]
        # SciPy wants one type for both index arrays, and the row pointers are cheaper to copy.
        indptr: np.ndarray = self.indptr.astype(index_type(self.indptr[-1]), copy=False)
        return csr_of(indptr, self.indices.astype(np.int32, copy=False), values, self.shape)


@dataclass(frozen=True)
class WideWeights:
    """Weights for a few of very many features; memory depends only on the number of features with weights.

    Attributes
    ----------
    features
        The features with weights, ascending.
    part
        Their weights.
    """

    features: np.ndarray
    part: Any
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        """Features and columns."""
        return self.n_features, self.part.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """The type of scores."""
        return self.part.dtype

    def narrow(self, rows: RowMatrix) -> RowMatrix:
        """Restrict rows to the features with weights, renumbered to match `part`."""
        return narrow_rows(rows, self.features)

    def tocsr(self) -> sp.csr_matrix:
        """Expand to all features, which takes memory for each of them."""
        part = sp.csr_matrix(as_matrix(self.part))
        counts = np.zeros(self.n_features + 1, part.indptr.dtype)
        counts[self.features + 1] = np.diff(part.indptr)
        return csr_of(np.cumsum(counts, out=counts), part.indices, part.data, self.shape)


@dataclass(frozen=True)
class JoinedWeights:
    """Parts with consecutive columns, joined side by side without copying."""

    parts: Sequence[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Features and columns."""
        return self.parts[0].shape[0], sum(part.shape[1] for part in self.parts)

    @property
    def dtype(self) -> np.dtype:
        """The type of scores."""
        return self.parts[0].dtype


def as_matrix(weights: Any) -> Any:
    """Return any weights as one array or csr_matrix of floats, copying only if needed."""
    if isinstance(weights, JoinedWeights):
        if is_sparse(weights):
            return sp.hstack([sp.csr_matrix(as_matrix(part)) for part in weights.parts], format="csr")
        return np.hstack(weights.parts)
    return weights.tocsr() if isinstance(weights, SparseWeights | WideWeights) else weights


def as_stored(weights: Any) -> Any:
    """Return the weights of one part, for all features, in the form of a model file: an array or `SparseWeights`."""
    if isinstance(weights, WideWeights):
        weights = weights.tocsr()
    if not sp.issparse(weights):
        return weights
    if not weights.has_sorted_indices:
        weights = weights.sorted_indices()
    indptr = np.ascontiguousarray(weights.indptr, np.int64)
    return SparseWeights(indptr, np.ascontiguousarray(weights.indices, np.int32), weights.data, weights.shape[1])


def is_sparse(weights: Any) -> bool:
    """Whether only nonzero weights are stored, in any of the parts."""
    if isinstance(weights, JoinedWeights):
        return any(map(is_sparse, weights.parts))
    return not isinstance(weights, np.ndarray)


def _stored_parts(weights: Any) -> list[Any]:
    """Return the arrays, csr_matrix and `SparseWeights` that the weights consist of."""
    if isinstance(weights, JoinedWeights):
        return list(chain.from_iterable(map(_stored_parts, weights.parts)))
    return _stored_parts(weights.part) if isinstance(weights, WideWeights) else [weights]


def value_type(weights: Any) -> np.dtype:
    """Return the type of the stored values."""
    part = _stored_parts(weights)[0]
    return part.values.dtype if isinstance(part, SparseWeights) else part.dtype


def nonzeros(weights: Any) -> int:
    """Return the number of nonzero weights."""
    parts = _stored_parts(weights)
    return sum(part.indices.size if is_sparse(part) else int(np.count_nonzero(part)) for part in parts)


def nbytes(weights: Any) -> int:
    """Return the total size of all arrays in bytes."""
    if isinstance(weights, JoinedWeights):
        return sum(map(nbytes, weights.parts))
    if isinstance(weights, WideWeights):
        return weights.features.nbytes + nbytes(weights.part)
    if isinstance(weights, np.ndarray):
        return weights.nbytes
    values = weights.values if isinstance(weights, SparseWeights) else weights.data
    scale = getattr(weights, "scale", None)
    return sum(array.nbytes for array in (weights.indptr, weights.indices, values, scale) if array is not None)


def column_of(weights: Any, column: int) -> np.ndarray:
    """Return the weights of one column, for all features."""
    if isinstance(weights, JoinedWeights):
        for part in weights.parts:
            if column < part.shape[1]:
                return column_of(part, column)
            column -= part.shape[1]
    if isinstance(weights, np.ndarray):
        return weights[:, column]
    stored = as_stored(weights)
    places = np.flatnonzero(stored.indices == column)
    found = np.zeros(stored.shape[0], stored.dtype)
    found[np.searchsorted(stored.indptr, places, side="right") - 1] = stored.values[places]
    return found if stored.scale is None else found * stored.scale[column]


def make_scorer(weights: Any, intercept: np.ndarray) -> Any:
    """Create the native scorer, which uses the arrays without copying. For `WideWeights` it expects narrowed rows."""
    if isinstance(weights, WideWeights):
        weights = weights.part
    scorer = native(core, "Scorer", weights.dtype)(weights.shape[0])
    begin = 0
    for part in weights.parts if isinstance(weights, JoinedWeights) else [weights]:
        end = begin + part.shape[1]
        stored, constants = as_stored(part), np.ascontiguousarray(intercept[begin:end], weights.dtype)
        if isinstance(stored, SparseWeights):
            half = stored.values.dtype == np.float16
            values: Any = stored.values.view(np.uint16) if half else stored.values
            scorer.add_sparse(stored.indptr, stored.indices, values, constants, stored.scale)
        else:
            scorer.add_dense(np.ascontiguousarray(stored), constants)
        begin = end
    return scorer
