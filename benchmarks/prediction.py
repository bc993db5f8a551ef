"""Top-5 prediction, measured in the same way for all libraries: all rows in one call, or one call per row.

All get the same weights, (d + 1) x K with the intercept in the last row, and must predict the same. Every environment
imports this file, so it may only need NumPy and SciPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import numpy as np
import scipy.sparse as sp

from benchmarks.protocol import Outcome, Request, Task, load_rows, load_weights

K = 5
SINGLE_ROWS = 2000
# Calls with all rows; the median counts.
ROUNDS = 5
# Slow libraries are measured less often: not again after PATIENCE seconds, but at least LEAST times.
PATIENCE, LEAST = 20.0, 3

# Returns the codes (n x k) of the best classes of some rows.
TopK = Callable[[sp.csr_matrix], np.ndarray]


@dataclass
class Prediction:
    """A model and the rows to predict, with the seconds and the first class of each call."""

    topk: TopK
    parts: list[sp.csr_matrix]
    codes: np.ndarray
    seconds: list[float] = field(default_factory=list)
    correct: list[np.ndarray] = field(default_factory=list)


def prepare(request: Request, make: Callable[[sp.csr_matrix, int], TopK]) -> Prediction:
    """Load rows and weights, build a model (`make` takes weights and threads), and predict once without measuring."""
    X, codes = load_rows(request.options["rows"])
    single = request.options["single"]
    # One row is not enough work for two threads: they would only wait for each other.
    threads = 1 if single else request.options["threads"]
    topk = make(sp.csr_matrix(load_weights(request.options["weights"])), threads)
    if single:
        parts, codes = [X[i] for i in range(min(SINGLE_ROWS, X.shape[0]))], codes[:SINGLE_ROWS]
    else:
        parts = [X] * ROUNDS
    topk(parts[0])
    return Prediction(topk, parts, codes)


def predict(prediction: Prediction) -> Prediction:
    for rows in prediction.parts:
        if sum(prediction.seconds) > PATIENCE and len(prediction.seconds) >= LEAST:
            break
        start = time.perf_counter()
        best = prediction.topk(rows)
        prediction.seconds.append(time.perf_counter() - start)
        prediction.correct.append(best[:, 0])
    return prediction


def outcome(prediction: Prediction) -> Outcome:
    rows = prediction.parts[0].shape[0]
    single = rows == 1
    found = np.concatenate(prediction.correct) if single else prediction.correct[0]
    a_row = median(prediction.seconds) / rows
    figures = {"microseconds a row": 1e6 * a_row, "accuracy": float(np.mean(found == prediction.codes[: found.size]))}
    if single:
        figures["microseconds, 99th percentile"] = 1e6 * float(np.percentile(prediction.seconds, 99))
    return Outcome(figures=figures)


def task(make: Callable[[sp.csr_matrix, int], TopK]) -> Task:
    """Return the task that measures a library, given how it builds a model."""
    return Task(lambda request: prepare(request, make), predict, outcome)
