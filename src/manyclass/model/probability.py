"""From the scores of a row to probabilities: a rule with one or two numbers, which a model carries with it."""

from typing import Any

import numpy as np
from scipy.special import expit, softmax

METHODS = ("softmax", "sigmoid")


def probabilities(rule: dict[str, Any], scores: np.ndarray) -> np.ndarray:
    """Turn scores into probabilities.

    Parameters
    ----------
    rule : dict
        `{"method": "softmax", "slope": a}`: proportional to `exp(a s)`; or
        `{"method": "sigmoid", "slope": a, "offset": b}`: proportional to `1 / (1 + exp(-a s - b))`, or with
        `"alone": True`, where rows have sets of labels, equal to it.
    scores : ndarray of shape (n, K)
        Minus infinity for classes that were never trained.

    Returns
    -------
    ndarray of shape (n, K), of the type of the scores
    """
    if rule["method"] == "softmax":
        return softmax(scores * scores.dtype.type(rule["slope"]), axis=1)
    alone = expit(scores * scores.dtype.type(rule["slope"]) + scores.dtype.type(rule["offset"]))
    if rule.get("alone", False):
        return alone
    sums = alone.sum(axis=1, keepdims=True)
    # Every class may have ruled a row out to the last bit.
    return np.divide(alone, sums, out=np.full_like(alone, 1 / alone.shape[1]), where=sums > 0)
