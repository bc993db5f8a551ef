"""How training rows are laid out."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..problems import Problem
from .solver import TrainingSet

# Rows of a wave, and the multiplications of a row from which waves pay: its threads meet three times a wave.
WAVE = 32
DENSE_WAVE = 8  # where a row changes most classes: rows of a wave take more from each other
WORTH_SHARING = 20_000
CLASSES_A_VECTOR = 16
# Dense weights that cost as much as the dual variables of a row, where these stand for weights.
FOLLOWED = 150
# The same where the weights that a row has caused are looked up in the list of a rare feature.
LISTED = 300


def tail_rows(n_classes: int, dearer: int = FOLLOWED) -> int:
    """Features in at most this many rows get no dense weights.

    Their weights come from the dual variables of these rows, or are in short lists: what one such row causes costs
    about as much as reading `dearer` dense weights.
    """
    return int(np.clip(n_classes // dearer, 1, 64))


def wave_size(data: TrainingSet, problem: Problem) -> int:
    """Rows that move together: one where a row is too little work to be shared out among threads."""
    work = (data.X.nnz / max(1, data.X.n_rows) + (data.constant != 0)) * data.n_classes
    rows = WAVE if problem.sparse_weights else DENSE_WAVE
    return rows if work >= WORTH_SHARING and data.X.n_rows >= 4 * rows else 1


def class_bounds(n_classes: int, processes: int) -> list[int]:
    """Where the classes of each process begin, and where the last one's end: at whole vectors of the kernels."""
    vectors = -(-n_classes // CLASSES_A_VECTOR)
    return [min(n_classes, p * vectors // processes * CLASSES_A_VECTOR) for p in range(processes + 1)]


def make_layout(data: TrainingSet, dtype: np.dtype, tail: int) -> Any:
    """The kernels' own copy of the rows."""
    X: sp.csr_matrix = data.X.as_csr()
    return native(core, "Layout", dtype)(
        X.indptr.astype(np.int64, copy=False), X.indices, X.data, data.X.n_features, data.constant, tail
    )


def as_matrix(found: Any, n_features: int, n_classes: int) -> np.ndarray | sp.csr_matrix:
    """The weights that a kernel gives: dense, or the arrays of a sparse matrix where that is smaller."""
    if isinstance(found, np.ndarray):
        return found
    indptr, classes, values = found
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # scipy wants both index arrays of one type, and classes are int32
    # Assigned, not passed to the constructor: it would copy the arrays to change the type of the indices.
    weights = sp.csr_matrix((n_features, n_classes), dtype=values.dtype)
    weights.data, weights.indices, weights.indptr = values, classes, indptr
    return weights
