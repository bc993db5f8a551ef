"""Turn scores into probabilities with a rule of one or two numbers, stored in the model."""

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax

METHODS = ("softmax", "sigmoid")


def probabilities(rule: dict[str, Any], scores: np.ndarray) -> np.ndarray:
    """Turn scores of shape (n, K), minus infinity for untrained classes, into probabilities of the same type.

    The rule is `{"method": "softmax", "slope": a}`: proportional to `exp(a s)`; or
    `{"method": "sigmoid", "slope": a, "offset": b}`: proportional to `1 / (1 + exp(-a s - b))`, or equal to it
    with `"alone": True` (for sets of labels).
    """
    if rule["method"] == "softmax":
        return softmax(scores * scores.dtype.type(rule["slope"]), axis=1)
    alone = expit(scores * scores.dtype.type(rule["slope"]) + scores.dtype.type(rule["offset"]))
    if rule.get("alone", False):
        return alone
    sums = alone.sum(axis=1)
    found = np.divide(alone, sums[:, None], out=np.empty_like(alone), where=sums[:, None] > 0)
    ruled_out = sums == 0  # every class underflowed
    found[ruled_out] = np.exp(log_probabilities(rule, scores[ruled_out]))
    return found


def log_probabilities(rule: dict[str, Any], scores: np.ndarray) -> np.ndarray:
    """Turn scores directly into logarithms of probabilities. Parameters as for `probabilities`."""
    scaled = scores * scores.dtype.type(rule["slope"])
    if rule["method"] == "softmax":
        return log_softmax(scaled, axis=1)
    alone = log_expit(scaled + scores.dtype.type(rule["offset"]))
    if rule.get("alone", False):
        return alone
    sums = logsumexp(alone, axis=1, keepdims=True)
    # If no class was trained, all are equally likely.
    equal = np.full_like(alone, -np.log(alone.shape[1]))
    return np.subtract(alone, sums, out=equal, where=np.isfinite(sums))
