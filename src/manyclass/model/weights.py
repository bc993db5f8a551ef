"""The weights of a model as they are stored, and what predicts from them without expanding them.

A model's `weights` are one of

| | |
|---|---|
| `ndarray` | dense, float32 or float64 |
| `csr_matrix` | sparse, float32 or float64 |
| `NarrowWeights` | sparse, in half precision or integers of 8 bits |
| `JoinedWeights` | some of these side by side: a model in shards |

all of shape (features, columns), read by features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core


@dataclass(frozen=True)
class NarrowWeights:
    """Sparse weights `values * scale[class]`, where the values are narrower than float32.

    Attributes
    ----------
    indptr : int64 ndarray of shape (features + 1,)
    indices : int32 ndarray
        Classes, ascending within a feature.
    values : float16 or int8 ndarray
    scale : float32 ndarray of shape (columns,) or None
        One a class, for integers.
    columns : int
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    scale: np.ndarray | None
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Features and columns."""
        return self.indptr.size - 1, self.columns

    @property
    def dtype(self) -> np.dtype:
        """The type of scores."""
        return np.dtype(np.float32)

    def tocsr(self) -> sp.csr_matrix:
        """All of them in float32."""
        values = self.values.astype(np.float32)
        if self.scale is not None:
            values *= self.scale[self.indices]
        return csr_of(values, self.indices, self.indptr, self.columns)


@dataclass(frozen=True)
class JoinedWeights:
    """Weights of consecutive columns side by side, each part as it is."""

    parts: Sequence[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Features and columns."""
        return self.parts[0].shape[0], sum(part.shape[1] for part in self.parts)

    @property
    def dtype(self) -> np.dtype:
        """The type of scores."""
        return self.parts[0].dtype

    def joined(self) -> Any:
        """All of them in memory, sparse if some part is: an array or a csr_matrix."""
        if any(is_sparse(part) for part in self.parts):
            return sp.hstack([sp.csr_matrix(matrix_of(part)) for part in self.parts], format="csr")
        return np.hstack(self.parts)


def csr_of(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, columns: int) -> sp.csr_matrix:
    """A csr_matrix of these arrays.

    scipy's constructor would copy the indices to make both kinds of one type; assigning does not, and the row
    pointers are the smaller ones to copy.
    """
    matrix = sp.csr_matrix((indptr.size - 1, columns), dtype=values.dtype)
    fits = indptr[-1] <= np.iinfo(np.int32).max
    matrix.data, matrix.indices, matrix.indptr = values, indices, indptr.astype(np.int32) if fits else indptr
    return matrix


def matrix_of(weights: Any) -> Any:
    """Any weights as an array or a csr_matrix of floats, which is a copy if they are stored otherwise."""
    if isinstance(weights, JoinedWeights):
        return weights.joined()
    return weights.tocsr() if isinstance(weights, NarrowWeights) else weights


def is_sparse(weights: Any) -> bool:
    """Whether only the weights that are not zero are stored; of several parts, of any."""
    if isinstance(weights, JoinedWeights):
        return any(is_sparse(part) for part in weights.parts)
    return not isinstance(weights, np.ndarray)


def nonzeros(weights: Any) -> int:
    """How many weights are not zero."""
    if isinstance(weights, JoinedWeights):
        return sum(nonzeros(part) for part in weights.parts)
    return weights.indices.size if is_sparse(weights) else int(np.count_nonzero(weights))


def nbytes(weights: Any) -> int:
    """Bytes of all arrays."""
    if isinstance(weights, JoinedWeights):
        return sum(nbytes(part) for part in weights.parts)
    if isinstance(weights, NarrowWeights):
        scale = 0 if weights.scale is None else weights.scale.nbytes
        return weights.values.nbytes + weights.indices.nbytes + weights.indptr.nbytes + scale
    if sp.issparse(weights):
        return weights.data.nbytes + weights.indices.nbytes + weights.indptr.nbytes
    return weights.nbytes


def make_scorer(weights: Any, intercept: np.ndarray) -> Any:
    """The core's view of a model, which predicts from the arrays as they are."""
    scorer = (core.Scorer32 if weights.dtype == np.float32 else core.Scorer64)(weights.shape[0])
    begin = 0
    for part in weights.parts if isinstance(weights, JoinedWeights) else [weights]:
        end = begin + part.shape[1]
        _add_part(scorer, part, np.ascontiguousarray(intercept[begin:end], weights.dtype))
        begin = end
    return scorer


def _add_part(scorer: Any, part: Any, intercept: np.ndarray) -> None:
    if isinstance(part, NarrowWeights):
        values = part.values.view(np.uint16) if part.values.dtype == np.float16 else part.values
        scorer.add_sparse(part.indptr, part.indices, values, intercept, part.scale)
    elif sp.issparse(part):
        if not part.has_sorted_indices:
            part = part.sorted_indices()
        indices = np.ascontiguousarray(part.indices, np.int32)
        scorer.add_sparse(np.ascontiguousarray(part.indptr, np.int64), indices, part.data, intercept)
    else:
        scorer.add_dense(np.ascontiguousarray(part), intercept)
