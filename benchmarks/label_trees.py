"""``python -m benchmarks.label_trees``: the share of the exact best five labels that a tree finds, and its speed.

    python -m benchmarks.label_trees --labels 50000              random weights around cluster centres
    python -m benchmarks.label_trees --model MODEL --rows FILE   a model, and rows in svmlight text

It uses one thread and measures processor time, which other programs affect less than wall-clock time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyclass.data import load_svmlight
from manyclass.model import LabelTree, LinearModel, load_model
from manyclass.model.label_tree import BRANCHING, recall_of

LABELS_PER_CENTRE = 20
SHARED, OWN, NEGATIVE = 30, 20, 30
TIMED_AT_LEAST = 1.0


def clustered_model(labels: int, rows: int, seed: int = 0) -> tuple[LinearModel, sp.csr_matrix]:
    """Return a model with 80 weights per label, and rows of 50 features, 30 of which speak for one label.

    Labels have half of the 60 features of their centre, with similar weights, and some of their own. There are as
    many features as labels, and feature frequencies follow those of words, `1 / rank^0.9`.
    """
    rng = np.random.default_rng(seed)
    d = max(10_000, labels)
    popularity = np.cumsum(1 / np.arange(1, d + 1) ** 0.9)

    def draw(*shape: int) -> np.ndarray:
        return np.searchsorted(popularity, rng.random(shape) * popularity[-1]).clip(max=d - 1)

    centres = max(1, labels // LABELS_PER_CENTRE)
    of = rng.integers(centres, size=labels)
    kept = np.argsort(rng.random((labels, 2 * SHARED)), axis=1)[:, :SHARED]
    shared = np.take_along_axis(draw(centres, 2 * SHARED)[of], kept, 1)
    strength = np.take_along_axis(rng.gamma(2, 0.5, (centres, 2 * SHARED))[of], kept, 1)
    features = np.hstack([shared, draw(labels, OWN), draw(labels, NEGATIVE)])
    values = np.hstack(
        [
            strength * rng.gamma(4, 0.25, strength.shape),
            rng.gamma(2, 0.5, (labels, OWN)),
            -rng.gamma(2, 0.15, (labels, NEGATIVE)),
        ]
    )
    owner = np.repeat(np.arange(labels), features.shape[1])
    weights = sp.csr_matrix((values.ravel(), (features.ravel(), owner)), (d, labels), np.float32)
    speaking = features[rng.integers(labels, size=rows)][:, : SHARED + OWN]
    speaking = np.take_along_axis(speaking, rng.integers(SHARED + OWN, size=(rows, 30)), 1)
    words = np.hstack([speaking, draw(rows, 20)])
    X = sp.csr_matrix((rng.gamma(2, 0.5, words.size), (np.repeat(np.arange(rows), 50), words.ravel())), (rows, d))
    return LinearModel(weights, np.full(labels, -0.5, np.float32), np.arange(labels)), X.astype(np.float32)


def processor_time(task: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a task and its time per call, repeating it for about a second."""
    calls, begin = 0, time.process_time()
    while True:
        found, calls = task(), calls + 1
        if (spent := time.process_time() - begin) >= TIMED_AT_LEAST:
            return found, spent / calls


def report(model: LinearModel, X: sp.csr_matrix, branching: int, beams: list[int]) -> list[str]:
    """Return the lines of a Markdown table, below a line with the sizes and times of the tree."""
    (exact, _), plain = processor_time(lambda: model.topk(X, 5, n_jobs=1))
    begin = time.process_time()
    tree = LabelTree.build(model, branching=branching, n_jobs=1)
    build = time.process_time() - begin
    begin = time.process_time()
    tree = LabelTree(model, tree.order, n_jobs=1)
    load = time.process_time() - begin
    lines = [
        f"{model.n_classes:,} labels, {X.shape[0]:,} rows with {X.nnz / X.shape[0]:.0f} features; model "
        f"{model.nbytes / 1e6:.0f} MB; tree of {tree.levels} levels, {tree.nbytes / 1e6:.0f} MB, "
        f"clustered in {build:.1f} s, loaded in {load:.1f} s",
        "",
        "| beam | best label found | best five found | microseconds per row | times faster |",
        "|---|---|---|---|---|",
    ]
    for beam in beams:
        (found, _), spent = processor_time(lambda: tree.topk(X, 5, beam=beam, n_jobs=1))  # noqa: B023
        best, five = recall_of(exact[:, :1], found[:, :1]), recall_of(exact, found)
        speed = f"{1e6 * spent / X.shape[0]:.0f} | {plain / spent:.1f}"
        lines.append(f"| {beam} | {100 * best:.1f} % | {100 * five:.1f} % | {speed} |")
    return [*lines, f"| exact | 100 % | 100 % | {1e6 * plain / X.shape[0]:.0f} | 1 |"]


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label_trees", description=__doc__)
    parser.add_argument("--labels", type=int, default=50_000, help="number of labels with random weights (50000)")
    parser.add_argument("--model", help="a model file, instead of random weights")
    parser.add_argument("--rows", help="rows for --model")
    parser.add_argument("--branching", type=int, default=BRANCHING, help=f"children per node ({BRANCHING})")
    parser.add_argument("--beams", default="5,10,20,50,100", help="beam widths (5,10,20,50,100)")
    asked = parser.parse_args(arguments)
    if asked.model is None:
        model, X = clustered_model(asked.labels, 2000)
    else:
        model = load_model(asked.model)
        X = load_svmlight(asked.rows, n_features=model.n_features)[0]
    print("\n".join(report(model, X, asked.branching, [int(beam) for beam in asked.beams.split(",")])))


if __name__ == "__main__":
    main()
