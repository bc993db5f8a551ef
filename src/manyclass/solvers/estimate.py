"""What a fit will take, told before it starts."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..data import RowMatrix
from ..problems import PROBLEMS, Binary, Problem, SparseBinary
from .layout import tail_rows
from .solver import TrainingSet

# Seen on text, for estimates only: share of the rows that support a one-vs-rest class, without and with an intercept
# (which lets most rows of other classes rest at once).
SUPPORT_OF_A_CLASS = {False: 0.09, True: 0.005}
# Of a label with an elastic net: rows of others whose features have weights.
SUPPORT_OF_A_LABEL = 40
LANES = {4: 16, 8: 8}
# Rows whose scores a certificate holds at once, in float64.
CERTIFIED_AT_ONCE = 16
# One-vs-one: of a fit to the usual tolerance.
SECONDS_A_PAIR_AND_NONZERO = 1.5e-8
A_DAY = 86400


def _feature_rows(X: RowMatrix) -> np.ndarray:
    if X.is_sparse:
        assert X.indices is not None
        return np.bincount(X.indices, minlength=X.n_features)
    assert X.dense is not None
    return np.count_nonzero(X.dense, axis=0)


def support_of_a_class(n_rows: int, constant: bool) -> int:
    """How many rows support a class of one-vs-rest, usually."""
    return int(n_rows * SUPPORT_OF_A_CLASS[constant]) + 1


def expected_nonzeros(rows_of: np.ndarray, n_rows: int, n_classes: int, constant: bool) -> float:
    """How many weights of one-vs-rest are not 0, usually.

    Parameters
    ----------
    rows_of : ndarray
        How many rows each feature occurs in.
    n_rows, n_classes : int
    constant : bool
        Whether there is a constant feature.
    """
    # A feature in r of the n rows is in none of the supporting ones with probability about exp(-support r / n).
    support = support_of_a_class(n_rows, constant)
    return float((1 - np.exp(-support * rows_of / n_rows)).sum()) * n_classes


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
    problem = PROBLEMS[loss]
    coupled, sparse = not isinstance(problem, Binary), problem.sparse_weights
    tail = tail_rows(n_classes) if problem.kernel == "coupled" and sparse else 1
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
        if problem.kernel == "max_margin":  # lists of the labels in use by a feature's rows, or dense rows
            listed = np.minimum(rows_of[in_head] * problem.usual_support(n_classes) * (12 + value), n_classes * value)
            weights = int(listed.sum()) + n_classes * value * fit_intercept
        dual = n * (24 + value + min(n_classes - 1, problem.usual_support(n_classes)) * (4 + value))
    elif not sparse:
        weights, dual = X.n_features * n_classes * value, 0
        scratch += threads * ((heads + n) * value + heads * 8) * LANES[value]
    elif isinstance(problem, SparseBinary):
        data = X.nnz * (4 + value)  # the rows by features; the rows themselves are the caller's
        support = int(SUPPORT_OF_A_LABEL + 3 * n / n_classes)
        nonzeros = float((1 - np.exp(-min(support, n) * rows_of / n)).sum()) * n_classes
        weights, dual = int(min(X.n_features * n_classes * value, nonzeros * (4 + value))), 0
        scratch = threads * (n * 12 + X.n_features * 16) + weights // 2
    elif isinstance(problem, Binary) and problem.pairs:
        dual = n * (n_classes - 1) * (4 + value)
        # As if all classes had n / K rows: see below.
        nonzeros = float((1 - np.exp(-2 / n_classes * rows_of)).sum()) * problem.columns(n_classes)
        weights = int(min(X.n_features * problem.columns(n_classes) * value, nonzeros * (4 + value)))
        scratch += threads * ((heads + n) * value + heads * 8) * LANES[value]
    else:
        dual = support_of_a_class(n, fit_intercept) * n_classes * (4 + value)
        nonzeros = expected_nonzeros(rows_of, n, n_classes, fit_intercept)
        weights = int(min(X.n_features * n_classes * value, nonzeros * (4 + value)))
        scratch += threads * ((heads + n) * value + heads * 8) * LANES[value]
    parts = {"data": data, "weights": weights, "dual_variables": dual, "scratch": scratch}
    return {name: int(size) for name, size in parts.items()} | {"peak": int(sum(parts.values()))}


def refuse_absurd_pairs(data: TrainingSet, problem: Problem, *, dtype: np.dtype, threads: int) -> None:
    """Say no to one-vs-one where the number of classes makes it hopeless, with the figures.

    Raises
    ------
    ValueError
        If the fit would take more memory than is free, or more than a day.
    """
    K = data.n_classes
    needed = estimate_memory(
        data.X, K, loss=problem.name, dtype=dtype, fit_intercept=data.constant != 0, threads=threads
    )["peak"]
    seconds = data.X.nnz * (K - 1) * SECONDS_A_PAIR_AND_NONZERO / threads
    what = f"one-vs-one on {K:,} classes is {problem.columns(K):,} problems"
    advice = "use one-vs-rest, or an all-in-one loss"
    free = _free_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"{what}, and needs about {needed / 1e9:,.1f} GB of which {free / 1e9:,.1f} GB are free; {advice}"
        )
    if seconds > A_DAY:
        raise ValueError(f"{what}, and would take about {seconds / 3600:,.0f} hours; {advice}")


def _free_memory() -> int | None:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None
