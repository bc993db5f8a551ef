"""How training rows are laid out, and what memory a fit will take."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core
from ..data import RowMatrix
from ..problems import PROBLEMS, Problem
from .solver import TrainingSet, native

# Seen on text, for estimates only: classes in use by a row of a coupled loss; share of the rows that support a
# one-vs-rest class, without and with an intercept (which lets most rows of other classes rest at once).
TYPICAL_SUPPORT = {"ww": 40, "cs": 16, "mmr": 1, "adm": 16, "atm": 16}  # of the others: all classes
SUPPORT_OF_A_CLASS = {False: 0.09, True: 0.005}
LANES = {4: 16, 8: 8}
# Rows of a wave, and the multiplications of a row from which waves pay: its threads meet three times a wave.
WAVE = 32
DENSE_WAVE = 8  # where a row changes most classes: rows of a wave take more from each other
WORTH_SHARING = 20_000
# Rows whose scores a certificate holds at once, in float64.
CERTIFIED_AT_ONCE = 16


def tail_rows(n_classes: int) -> int:
    """Features in at most this many rows get no dense weights.

    Their weights come from the dual variables of these rows. Following one such row costs about as much as
    reading 150 dense weights.
    """
    return int(np.clip(n_classes // 150, 1, 64))


def wave_size(data: TrainingSet, problem: Problem) -> int:
    """Rows that move together: one where a row is too little work to be shared out among threads."""
    work = (data.X.nnz / max(1, data.X.n_rows) + (data.constant != 0)) * data.n_classes
    rows = WAVE if problem.sparse_weights else DENSE_WAVE
    return rows if work >= WORTH_SHARING and data.X.n_rows >= 4 * rows else 1


def make_layout(data: TrainingSet, dtype: np.dtype, tail: int) -> Any:
    """The kernels' own copy of the rows."""
    X: sp.csr_matrix = data.X.as_csr()
    return native(core, "Layout", dtype)(
        X.indptr.astype(np.int64, copy=False), X.indices, X.data, data.X.n_features, data.constant, tail
    )


def gather_weights(kernel: Any, n_features: int, n_classes: int, threads: int) -> np.ndarray | sp.csr_matrix:
    """Build the model's weights from the dual variables: sparse where that is smaller."""
    found = kernel.weights(n_features, threads)
    if isinstance(found, np.ndarray):
        return found
    indptr, classes, values = found
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # scipy wants both index arrays of one type, and classes are int32
    # Assigned, not passed to the constructor: it would copy the arrays to change the type of the indices.
    weights = sp.csr_matrix((n_features, n_classes), dtype=values.dtype)
    weights.data, weights.indices, weights.indptr = values, classes, indptr
    return weights


def _feature_rows(X: RowMatrix) -> np.ndarray:
    if X.is_sparse:
        assert X.indices is not None
        return np.bincount(X.indices, minlength=X.n_features)
    assert X.dense is not None
    return np.count_nonzero(X.dense, axis=0)


def estimate_memory(
    X: RowMatrix,
    n_classes: int,
    *,
    loss: str,
    dtype: Any = np.float32,
    fit_intercept: bool = True,
    threads: int = 2,
) -> dict[str, int]:
    """Estimate the memory of a fit before it starts.

    Data and weights are counted exactly; the number of dual variables is only known afterwards, and is taken
    from what text problems usually need.

    Parameters
    ----------
    X : RowMatrix
        The rows.
    n_classes : int
        Number of classes.
    loss : str
        A name in `manyclass.problems.PROBLEMS`.
    dtype : numpy dtype
        Type of the weights.
    fit_intercept : bool
        Whether there is a constant feature.
    threads : int
        Threads of the fit.

    Returns
    -------
    dict
        Bytes of `data`, `weights`, `dual_variables`, `scratch`, and their sum, `peak`.
    """
    value = np.dtype(dtype).itemsize
    rows_of = _feature_rows(X)
    coupled, sparse = PROBLEMS[loss].kernel != "one_vs_rest", PROBLEMS[loss].sparse_weights
    tail = tail_rows(n_classes) if coupled and sparse else 1
    in_head, in_tail = rows_of > tail, (rows_of > 1) & (rows_of <= tail)
    heads, tails, singles = int(in_head.sum()) + fit_intercept, int(in_tail.sum()), int((rows_of == 1).sum())
    n = X.n_rows
    head_nnz, tail_nnz = int(rows_of[in_head].sum()) + n * fit_intercept, int(rows_of[in_tail].sum())
    data = (head_nnz + 2 * tail_nnz) * (4 + value) + singles * (8 + value) + n * (24 + 2 * value)
    data += 8 * (heads + 2 * tails)
    stride = -(-n_classes // LANES[value]) * LANES[value]
    scratch = (head_nnz + tail_nnz + singles) * (4 + value)  # the rows by features, for certificate and model
    if coupled:
        scratch += threads * CERTIFIED_AT_ONCE * stride * 8
        weights = (heads if sparse else max(heads, X.n_features)) * stride * value
        dual = n * (24 + value + min(n_classes - 1, TYPICAL_SUPPORT.get(loss, n_classes)) * (4 + value))
    elif not sparse:
        weights, dual = X.n_features * n_classes * value, 0
        scratch += threads * ((heads + n) * value + heads * 8) * LANES[value]
    else:
        support = int(n * SUPPORT_OF_A_CLASS[fit_intercept]) + 1
        dual = support * n_classes * (4 + value)
        # A feature in r of the n rows is in none of the supporting ones with probability about exp(-support r / n).
        nonzeros = float((1 - np.exp(-support * rows_of / n)).sum()) * n_classes
        weights = int(min(X.n_features * n_classes * value, nonzeros * (4 + value)))
        scratch += threads * ((heads + n) * value + heads * 8) * LANES[value]
    parts = {"data": data, "weights": weights, "dual_variables": dual, "scratch": scratch}
    return {name: int(size) for name, size in parts.items()} | {"peak": int(sum(parts.values()))}
