"""How good predictions are. Classes are codes 0..K-1; -1 stands for a class that the model does not know."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike


def _same_rows(y_true: ArrayLike, predicted: ArrayLike, ndim: int) -> tuple[np.ndarray, np.ndarray]:
    truth, found = np.asarray(y_true), np.asarray(predicted)
    if truth.ndim != 1 or found.ndim != ndim or truth.shape[0] != found.shape[0]:
        raise ValueError(
            f"the true classes have the shape {truth.shape}, the predicted ones {found.shape}; "
            f"expected (n,) and {'(n, k)' if ndim == 2 else '(n,)'}"
        )
    if truth.size == 0:
        raise ValueError("there are no rows to evaluate; pass at least one")
    return truth, found


def error_rate(y_true: ArrayLike, predicted: ArrayLike) -> float:
    """Share of the rows whose predicted class is wrong.

    Parameters
    ----------
    y_true, predicted : array-like of int of shape (n,)
        Codes of the classes.

    Returns
    -------
    float
    """
    truth, found = _same_rows(y_true, predicted, 1)
    return float(np.mean((truth != found) | (truth < 0)))


def topk_error(y_true: ArrayLike, topk: ArrayLike) -> float:
    """Share of the rows whose class is not among the k predicted ones.

    Parameters
    ----------
    y_true : array-like of int of shape (n,)
        Codes of the classes.
    topk : array-like of int of shape (n, k)
        Codes of the k best classes of each row.

    Returns
    -------
    float
    """
    truth, found = _same_rows(y_true, topk, 2)
    hit = (found == truth[:, None]).any(axis=1) & (truth >= 0)
    return float(1 - np.mean(hit))


def f1_scores(y_true: ArrayLike, predicted: ArrayLike, n_classes: int) -> tuple[float, float]:
    """Micro- and macro-averaged F1.

    Parameters
    ----------
    y_true, predicted : array-like of int of shape (n,)
        Codes of the classes. A true code of -1 counts as a missed row, but is no class of its own.
    n_classes : int
        Number of classes.

    Returns
    -------
    micro : float
        F1 of all decisions together; with one class a row, the share of rows that are right.
    macro : float
        Mean over the classes that occur among the true or the predicted ones.
    """
    truth, found = _same_rows(y_true, predicted, 1)
    right = np.bincount(found[truth == found], minlength=n_classes)
    given = np.bincount(truth[truth >= 0], minlength=n_classes)
    named = np.bincount(found, minlength=n_classes)
    occurs = (given + named) > 0
    by_class = 2 * right[occurs] / (given + named)[occurs]
    return float(right.sum() / truth.size), float(by_class.mean())


def precisions_at_k(labels: sp.csr_matrix, topk: ArrayLike, ks: Sequence[int]) -> list[float]:
    """Of the k best classes of a row, the share that is among its labels: the mean over the rows.

    Parameters
    ----------
    labels : csr_matrix of shape (n, K)
        Not zero where a row has the label.
    topk : array-like of int of shape (n, at least the largest k)
        Codes of the best classes of each row, best first.
    ks : sequence of int

    Returns
    -------
    list of float
    """
    best = np.asarray(topk)
    if best.ndim != 2 or best.shape[0] != labels.shape[0] or best.shape[0] == 0:
        raise ValueError(
            f"labels of shape {labels.shape} and predictions of shape {best.shape} do not belong together"
        )
    rows = np.repeat(np.arange(best.shape[0]), best.shape[1])
    hits = np.asarray(labels[rows, best.reshape(-1)] != 0).reshape(best.shape)
    return [float(hits[:, :k].mean()) for k in ks]
