"""Measure the quality of predictions.

Classes are codes 0..K-1; -1 stands for a class that the model does not know. Label sets are a sparse indicator matrix
of shape (n, K). No array has rows times labels entries. The formulas are in docs/metrics.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ._native import core
from .model.threads import thread_count

# The sums over the rows that the core returns for each k, in its order.
SUMS = ("hits", "gain", "recall", "weighted_hits", "weighted_gain", "best_hits", "best_gain")


def _same_rows(y_true: ArrayLike, predicted: ArrayLike, ndim: int) -> tuple[np.ndarray, np.ndarray]:
    truth, found = np.asarray(y_true), np.asarray(predicted)
    if truth.ndim != 1 or found.ndim != ndim or truth.shape[0] != found.shape[0]:
        raise ValueError(
            f"the true classes have shape {truth.shape}, the predicted ones {found.shape}; "
            f"expected (n,) and {'(n, k)' if ndim == 2 else '(n,)'}"
        )
    if truth.size == 0:
        raise ValueError("there are no rows to evaluate; pass at least one")
    return truth, found


def error_rate(y_true: ArrayLike, predicted: ArrayLike) -> float:
    """Return the fraction of rows whose predicted class is wrong.

    Parameters
    ----------
    y_true, predicted : array-like of int of shape (n,)
        Class codes.

    Returns
    -------
    float
    """
    truth, found = _same_rows(y_true, predicted, 1)
    return float(np.mean((truth != found) | (truth < 0)))


def topk_error(y_true: ArrayLike, topk: ArrayLike) -> float:
    """Return the fraction of rows whose class is not among the k predicted ones.

    Parameters
    ----------
    y_true : array-like of int of shape (n,)
        Class codes.
    topk : array-like of int of shape (n, k)
        Codes of the k best classes per row.

    Returns
    -------
    float
    """
    truth, found = _same_rows(y_true, topk, 2)
    hit = (found == truth[:, None]).any(axis=1) & (truth >= 0)
    return float(1 - np.mean(hit))


def f1_scores(y_true: ArrayLike, predicted: ArrayLike, n_classes: int) -> tuple[float, float]:
    """Return micro- and macro-averaged F1.

    Parameters
    ----------
    y_true, predicted : array-like of int of shape (n,)
        Class codes. A true code of -1 counts as a missed row, but not as a class.
    n_classes : int
        Number of classes.

    Returns
    -------
    micro : float
        F1 over all decisions; with one class per row, the fraction of correct rows.
    macro : float
        Mean F1 of the classes that occur among the true or the predicted ones.
    """
    truth, found = _same_rows(y_true, predicted, 1)
    right = np.bincount(found[truth == found], minlength=n_classes)
    given = np.bincount(truth[truth >= 0], minlength=n_classes)
    named = np.bincount(found, minlength=n_classes)
    occurs = (given + named) > 0
    by_class = 2 * right[occurs] / (given + named)[occurs]
    return float(right.sum() / truth.size), float(by_class.mean())


# ---- Label sets


@dataclass(frozen=True)
class RankingMetrics:
    """Measures of ranked labels; each maps k to a value.

    Attributes
    ----------
    precision : dict of int to float
        P@k: the fraction of the k best labels that the row has, averaged over the rows.
    ndcg : dict of int to float
        nDCG@k: hits discounted by `1 / log2(place + 1)`, relative to the best order, averaged over the rows.
    recall : dict of int to float
        The fraction of the row's labels that are among the k best, averaged over the rows.
    coverage : dict of int to float
        The fraction of the labels occurring in `labels` that are among the k best of at least one row that has them.
    ps_precision, ps_ndcg : dict of int to float, or None
        PSP@k and PSnDCG@k: each hit is divided by the propensity of its label, and the sum over all rows by the
        largest possible sum. None without propensities.
    """

    precision: dict[int, float]
    ndcg: dict[int, float]
    recall: dict[int, float]
    coverage: dict[int, float]
    ps_precision: dict[int, float] | None = None
    ps_ndcg: dict[int, float] | None = None


def ranking_metrics(
    labels: Any,
    topk: ArrayLike,
    ks: Sequence[int] = (1, 3, 5),
    *,
    propensity: ArrayLike | None = None,
    unknown: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> RankingMetrics:
    """Measure the best labels per row against the row's own labels, in one pass.

    In a row without labels, nothing counts as found. The result is bit for bit the same for any number of threads.

    Parameters
    ----------
    labels : sparse matrix of shape (n, K)
        Non-zero where a row has the label.
    topk : array-like of int of shape (n, at least the largest k)
        Codes of the best labels per row, best first and without duplicates; -1 for none.
    ks : sequence of int
        The values of k to report.
    propensity : array-like of shape (K,), optional
        The propensity of each label, as returned by `propensities`.
    unknown : array-like of int of shape (n,), optional
        Number of labels per row besides those in `labels`, such as labels that no training row had. They cannot be
        found, but count as labels of the row, with the smallest propensity of all.
    n_jobs : int, optional
        Number of threads; None for all cores.

    Returns
    -------
    RankingMetrics
    """
    truth = _label_sets(labels)
    n, K = truth.shape
    best = _check_topk(topk, truth.shape, ks)
    more = None if unknown is None else _check_unknown(unknown, n)
    weight = None if propensity is None else 1 / _check_propensity(propensity, K)
    heaviest = 1.0 if weight is None else float(weight.max())
    table, first_hit = np.zeros((best.shape[1], len(SUMS))), np.full(K, best.shape[1], np.int32)
    core.ranking_sums(_arrays(truth), best, more, weight, heaviest, table, first_hit, thread_count(n_jobs))
    sums = dict(zip(SUMS, table.T, strict=True))
    occurs = np.bincount(truth.indices, minlength=K) > 0

    def at(values: np.ndarray) -> dict[int, float]:
        return {int(k): float(values[k - 1]) for k in ks}

    def relative(found: np.ndarray, possible: np.ndarray) -> dict[int, float]:
        return at(np.divide(found, possible, out=np.zeros_like(found), where=possible > 0))

    places = np.arange(1, best.shape[1] + 1)
    hit = np.cumsum(np.bincount(first_hit[occurs], minlength=places.size)[: places.size])
    return RankingMetrics(
        precision=at(sums["hits"] / (n * places)),
        ndcg=at(sums["gain"] / n),
        recall=at(sums["recall"] / n),
        coverage=at(hit / max(1, occurs.sum())),
        ps_precision=None if weight is None else relative(sums["weighted_hits"], sums["best_hits"]),
        ps_ndcg=None if weight is None else relative(sums["weighted_gain"], sums["best_gain"]),
    )


def precisions_at_k(labels: Any, topk: ArrayLike, ks: Sequence[int]) -> list[float]:
    """Return P@k for each k; see `ranking_metrics`."""
    precision = ranking_metrics(labels, topk, ks).precision
    return [precision[k] for k in ks]


def propensities(label_counts: ArrayLike, n: int, A: float = 0.55, B: float = 1.5) -> np.ndarray:
    """Estimate how likely each label is to be recorded where it applies. Rare labels are missed more often.

    The model of Jain, Prabhu and Varma (KDD 2016) is

        p_l = 1 / (1 + C (N_l + B)^-A),      C = (log n - 1) (B + 1)^A,

    with C at least 0, so that p does not exceed 1 for n = 1 and 2.

    Parameters
    ----------
    label_counts : array-like of int of shape (K,)
        N: the number of training rows per label.
    n : int
        Number of training rows.
    A, B : float
        Usually 0.55 and 1.5; 0.5 and 0.4 for Wikipedia's categories, 0.6 and 2.6 for Amazon's products.

    Returns
    -------
    ndarray of shape (K,)
    """
    counts = np.asarray(label_counts, np.float64)
    if counts.ndim != 1 or (counts < 0).any() or n < 1:
        raise ValueError(
            "propensities need a non-negative count per label and the number of rows they were counted in; "
            f"got counts of shape {counts.shape} and n = {n}"
        )
    C = max(0.0, np.log(n) - 1) * (B + 1) ** A
    return 1 / (1 + C * (counts + B) ** -A)


def label_f1_scores(
    labels: Any, predicted: Any, *, unknown: ArrayLike | None = None, n_jobs: int | None = None
) -> tuple[float, float]:
    """Return micro- and macro-averaged F1, `2 right / (true + predicted)`, of label sets.

    Parameters
    ----------
    labels, predicted : sparse matrices of shape (n, K)
        Non-zero where a row has the label, and where it was predicted.
    unknown : array-like of int of shape (n,), optional
        Number of labels per row besides those in `labels`; they count as missed in the micro-average.
    n_jobs : int, optional
        Number of threads; None for all cores.

    Returns
    -------
    micro : float
        F1 over all decisions.
    macro : float
        Mean F1 of the labels that occur among the true or the predicted ones.
    """
    truth, found = _label_sets(labels), _label_sets(predicted)
    if truth.shape != found.shape or truth.shape[0] == 0:
        raise ValueError(f"labels of shape {truth.shape} and predicted ones of shape {found.shape} do not match")
    n, K = truth.shape
    missed = 0 if unknown is None else int(_check_unknown(unknown, n).sum(dtype=np.int64))
    right = np.zeros(K, np.int64)
    core.count_matches(*_arrays(truth), *_arrays(found), right, thread_count(n_jobs))
    named = np.bincount(truth.indices, minlength=K) + np.bincount(found.indices, minlength=K)
    occurs = named > 0
    micro = 2 * right.sum() / max(1, named.sum() + missed)
    macro = (2 * right[occurs] / named[occurs]).mean() if occurs.any() else 0.0
    return float(micro), float(macro)


def _label_sets(labels: Any) -> sp.csr_matrix:
    """Return the labels of each row, ascending and without duplicates. The input is not modified."""
    sets = sp.csr_matrix(labels)
    if not sets.has_canonical_format or (sets.data == 0).any():
        sets = sets.copy()
        sets.sum_duplicates()
        sets.eliminate_zeros()
    return sets


def _arrays(sets: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    return sets.indptr.astype(np.int64, copy=False), sets.indices.astype(np.int32, copy=False)


def _check_topk(topk: ArrayLike, shape: tuple[int, int], ks: Sequence[int]) -> np.ndarray:
    best = np.asarray(topk)
    if best.ndim != 2 or best.shape[0] != shape[0] or best.shape[0] == 0:
        raise ValueError(f"labels of shape {shape} and predictions of shape {best.shape} do not match")
    if len(ks) == 0 or min(ks) < 1 or max(ks) > best.shape[1]:
        raise ValueError(f"k must be between 1 and {best.shape[1]}, the labels predicted per row; got {list(ks)}")
    if best.dtype.kind not in "iu" or best.min() < -1 or best.max() >= shape[1]:
        raise ValueError(f"predictions must be label codes, 0 to {shape[1] - 1}, or -1 for none")
    return np.ascontiguousarray(best[:, : max(ks)], np.int32)


def _check_unknown(unknown: ArrayLike, n: int) -> np.ndarray:
    more = np.asarray(unknown)
    if more.shape != (n,) or more.dtype.kind not in "iu" or (more < 0).any():
        raise ValueError(f"unknown must be a number of labels for each of the {n} rows; got shape {more.shape}")
    return np.ascontiguousarray(more, np.int32)


def _check_propensity(propensity: ArrayLike, K: int) -> np.ndarray:
    p = np.ascontiguousarray(propensity, np.float64)
    if p.shape != (K,) or not ((p > 0) & (p <= 1)).all():
        raise ValueError(f"propensity must have {K} numbers in (0, 1], one per label; got shape {p.shape}")
    return p
