"""The layout of training rows: waves, ranges of classes, and which features have dense weights."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data.matrix import csr_of
from ..problems import Problem
from .solver import TrainingSet

# Rows per wave.
WAVE = 32
DENSE_WAVE = 8  # for losses whose rows change most classes, and so interfere more with each other
# Use waves if rows take at least this many multiplications, because threads meet three times per wave.
WORTH_SHARING = 20_000
CLASSES_PER_VECTOR = 16
# One row with a rare feature costs as much as reading this many dense weights: if the feature's weights are computed
# from the row's dual variables, and if they are looked up in a list.
FOLLOWED = 150
LISTED = 300


def tail_rows(n_classes: int, dearer: int = FOLLOWED) -> int:
    """Return the largest number of rows of a feature without dense weights.

    The weights of such features are computed from the dual variables of their rows, or are in short lists. Each row
    then costs about as much as reading `dearer` dense weights.
    """
    return int(np.clip(n_classes // dearer, 1, 64))


def wave_size(data: TrainingSet, problem: Problem) -> int:
    """Return the number of rows per wave: 1 if a row is too little work to be shared among threads."""
    work = (data.X.nnz / max(1, data.X.n_rows) + (data.constant != 0)) * data.n_classes
    rows = WAVE if problem.sparse_weights else DENSE_WAVE
    return rows if work >= WORTH_SHARING and data.X.n_rows >= 4 * rows else 1


def class_bounds(n_classes: int, processes: int) -> list[int]:
    """Return where the classes of each process begin and the last ones end, in whole vectors of the kernels."""
    vectors = -(-n_classes // CLASSES_PER_VECTOR)
    return [min(n_classes, p * vectors // processes * CLASSES_PER_VECTOR) for p in range(processes + 1)]


def make_layout(data: TrainingSet, dtype: np.dtype, tail: int) -> Any:
    """Return the kernels' own copy of the rows."""
    X: sp.csr_matrix = data.X.as_csr()
    return native(core, "Layout", dtype)(
        X.indptr.astype(np.int64, copy=False), X.indices, X.data, data.X.n_features, data.constant, tail
    )


def as_matrix(found: Any, n_features: int, n_classes: int) -> np.ndarray | sp.csr_matrix:
    """Return the weights of a kernel as a matrix: dense, or from the arrays of a sparse one."""
    if isinstance(found, np.ndarray):
        return found
    indptr, classes, values = found
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # scipy needs the same type for both index arrays
    return csr_of(indptr, classes, values, (n_features, n_classes))
