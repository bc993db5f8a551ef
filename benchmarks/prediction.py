"""Top-5 prediction, measured in the same way for all: all rows in one call, or one call per row.

The weights are (d + 1) x K with the intercept in the last row, and the same for all; so is what they predict.
This file is imported in every environment: it needs NumPy and SciPy and nothing else.
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
# Who is slow is asked less often: after these seconds no more, but so many times at least.
PATIENCE, LEAST = 20.0, 3

# Gives the codes (n x k) of the best classes of some rows.
TopK = Callable[[sp.csr_matrix], np.ndarray]


@dataclass
class Prediction:
    """Who predicts, and for which rows; `seconds` are of each call."""

    topk: TopK
    parts: list[sp.csr_matrix]
    codes: np.ndarray
    seconds: list[float] = field(default_factory=list)
    correct: list[np.ndarray] = field(default_factory=list)


def prepare(request: Request, make: Callable[[sp.csr_matrix, int], TopK]) -> Prediction:
    """Load rows and weights, make a model of them (`make` gets weights and threads), and predict once unmeasured."""
    X, codes = load_rows(request.options["rows"])
    single = request.options["single"]
    # A row alone is no work for two threads: they would only wait for each other.
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
    """The task of one who predicts."""
    return Task(lambda request: prepare(request, make), predict, outcome)
