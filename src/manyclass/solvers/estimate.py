"""Estimates of what a fit will need, before it starts."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..data import RowMatrix
from ..problems import PROBLEMS, Problem
from .layout import tail_rows
from .solver import TrainingSet

# Share of the rows that support a one-vs-rest class, measured on text: without and with an intercept, which keeps
# most rows of other classes out of the support.
SUPPORT_PER_CLASS = {False: 0.09, True: 0.005}
# Rows of other labels that support a label with an elastic net, measured on text.
SUPPORT_PER_LABEL = 40
LANES = {4: 16, 8: 8}
# Rows whose scores a certificate holds at once, in float64.
CERTIFIED_AT_ONCE = 16
# For one-vs-one to the usual tolerance.
SECONDS_A_PAIR_AND_NONZERO = 1.5e-8
DAY = 86400


class _Fit:
    """What the memory of a fit depends on: its options, and the rows as laid out by `make_layout`."""

    def __init__(self, X: RowMatrix, problem: Any, n_classes: int, dtype: Any, constant: bool, threads: int):
        self.X, self.problem, self.n_classes = X, problem, n_classes
        self.constant, self.threads = constant, threads
        self.value = np.dtype(dtype).itemsize
        self.rows_of = _rows_per_feature(X)
        sparse = problem.kernel == "coupled" and problem.sparse_weights
        tail = tail_rows(n_classes) if sparse else 1
        self.in_head = self.rows_of > tail
        self.heads = int(self.in_head.sum()) + constant
        singles, tails = int((self.rows_of == 1).sum()), self.rows_of[(self.rows_of > 1) & ~self.in_head]
        nonzeros = int(self.rows_of.sum()) + X.n_rows * constant
        # For certificate and model.
        self.rows_by_feature = nonzeros * (4 + self.value)
        # Values of the tail are stored twice, by row and by feature.
        self.data = (nonzeros - singles + int(tails.sum())) * (4 + self.value) + singles * (8 + self.value)
        self.data += X.n_rows * (24 + 2 * self.value) + 8 * (self.heads + 2 * tails.size)

    def used_weights(self, support: float, columns: int) -> int:
        """Return the bytes of the weights of columns with `support` rows each, dense or sparse."""
        nonzeros = _nonzeros_per_column(self.rows_of, self.X.n_rows, support) * columns
        return int(min(self.X.n_features * columns * self.value, nonzeros * (4 + self.value)))


def _rows_per_feature(X: RowMatrix) -> np.ndarray:
    if X.dense is not None:
        return np.count_nonzero(X.dense, axis=0)
    assert X.indices is not None
    return np.bincount(X.indices, minlength=X.n_features)


def _nonzeros_per_column(rows_of: np.ndarray, n_rows: int, support: float) -> float:
    # A feature of r of the n rows is in none of the supporting ones with probability about exp(-support r / n).
    return float((1 - np.exp(-support * rows_of / n_rows)).sum())


def _support_per_class(n_rows: int, constant: bool) -> int:
    return int(n_rows * SUPPORT_PER_CLASS[constant]) + 1


def expected_nonzeros(rows_of: np.ndarray, n_rows: int, n_classes: int, constant: bool) -> float:
    """Return how many weights of one-vs-rest usually differ from 0, given the number of rows of each feature."""
    return _nonzeros_per_column(rows_of, n_rows, _support_per_class(n_rows, constant)) * n_classes


def estimate_memory(
    X: RowMatrix, n_classes: int, *, loss: str, dtype: Any = np.float32, fit_intercept: bool = True, threads: int = 2
) -> dict[str, int]:
    """Estimate the bytes of `data`, `weights`, `dual_variables` and `scratch` of a fit, and their sum `peak`.

    Data and dense weights are counted exactly. The number of dual variables is only known afterwards; the estimate is
    what text usually needs.
    """
    fit = _Fit(X, PROBLEMS[loss], n_classes, dtype, fit_intercept, threads)
    sizes = ESTIMATES[fit.problem.kernel](fit)
    parts = dict(zip(("data", "weights", "dual_variables", "scratch"), map(int, sizes), strict=True))
    return parts | {"peak": sum(parts.values())}


# One function per family of kernels: bytes of data, weights, dual variables and scratch.
_Sizes = tuple[float, float, float, float]


def _coupled(fit: _Fit) -> _Sizes:
    stride = -(-fit.n_classes // LANES[fit.value]) * LANES[fit.value]
    dense = fit.heads if fit.problem.sparse_weights else max(fit.heads, fit.X.n_features)
    support = min(fit.n_classes - 1, fit.problem.usual_support(fit.n_classes))
    dual = fit.X.n_rows * (24 + fit.value + support * (4 + fit.value))
    scratch = fit.rows_by_feature + fit.threads * CERTIFIED_AT_ONCE * stride * 8
    return fit.data, dense * stride * fit.value, dual, scratch


def _max_margin(fit: _Fit) -> _Sizes:
    data, _, dual, scratch = _coupled(fit)
    # A feature has a list of the labels in use by its rows, or a dense row of weights.
    support, dense = fit.problem.usual_support(fit.n_classes), fit.n_classes * fit.value
    listed = fit.rows_of[fit.in_head] * support * (12 + fit.value)
    return data, np.minimum(listed, dense).sum() + dense * fit.constant, dual, scratch


def _binary(fit: _Fit) -> _Sizes:
    n, K, columns = fit.X.n_rows, fit.n_classes, fit.problem.columns(fit.n_classes)
    block = ((fit.heads + n) * fit.value + fit.heads * 8) * LANES[fit.value]
    scratch = fit.rows_by_feature + fit.threads * block
    if not fit.problem.sparse_weights:
        return fit.data, fit.X.n_features * columns * fit.value, 0, scratch
    if fit.problem.pairs:  # as if each class had n / K rows
        return fit.data, fit.used_weights(2 / K * n, columns), n * (K - 1) * (4 + fit.value), scratch
    support = _support_per_class(n, fit.constant)
    return fit.data, fit.used_weights(support, columns), support * columns * (4 + fit.value), scratch


def _sparse_binary(fit: _Fit) -> _Sizes:
    n, K = fit.X.n_rows, fit.n_classes
    weights = fit.used_weights(min(int(SUPPORT_PER_LABEL + 3 * n / K), n), K)
    scratch = fit.threads * (n * 12 + fit.X.n_features * 16) + weights // 2
    return fit.X.nnz * (4 + fit.value), weights, 0, scratch  # data: the rows by feature, beside the caller's rows


ESTIMATES = {
    "coupled": _coupled,
    "maximum_entropy": _coupled,
    "max_margin": _max_margin,
    "binary": _binary,
    "sparse_binary": _sparse_binary,
}


def refuse_absurd_pairs(data: TrainingSet, problem: Problem, *, dtype: np.dtype, threads: int) -> None:
    """Reject one-vs-one if it needs more memory than is free, or more than a day."""
    K = data.n_classes
    needed = estimate_memory(
        data.X, K, loss=problem.name, dtype=dtype, fit_intercept=data.constant != 0, threads=threads
    )["peak"]
    seconds = data.X.nnz * (K - 1) * SECONDS_A_PAIR_AND_NONZERO / threads
    what = f"one-vs-one on {K:,} classes means {problem.columns(K):,} problems"
    advice = "use one-vs-rest, or a loss that trains all classes together, such as ww"
    free = _free_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"{what} and needs about {needed / 1e9:,.1f} GB, but only {free / 1e9:,.1f} GB are free; {advice}"
        )
    if seconds > DAY:
        raise ValueError(f"{what} and would take about {seconds / 3600:,.0f} hours; {advice}")


def _free_memory() -> int | None:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None
