"""LIBLINEAR (package liblinear-official), one thread.

``-s 4`` minimises the Crammer-Singer objective, ``-s 3`` and ``-s 1`` one binary problem per class:

    -s 3    1/2 |w_c|^2 + C sum_i hinge(±w_c·x_i)
    -s 1    1/2 |w_c|^2 + C sum_i hinge(±w_c·x_i)^2

By default there is no bias (``-B -1``), and the tolerance is LIBLINEAR's own (``-e 0.1``). The model has its classes
in the order of their first rows, and its weights feature-major in float64. The time excludes the conversion of the
sparse matrix to LIBLINEAR's node lists, which happens in Python.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from liblinear.liblinearutil import parameter, problem, train

from benchmarks.protocol import Outcome, Request, Task, serve


def prepare(request: Request, extra: str = ""):
    X, y = request.load_problem()
    asked = request.options
    options = f"-s {asked['solver']} -c {asked.get('C', 1.0)} -B {asked.get('bias', -1)} -q {extra}"
    if "eps" in asked:
        options += f" -e {asked['eps']}"
    # The wrapper only takes the older matrix classes, and its nodes hold doubles in any case.
    return problem(y.astype(np.float64), sp.csr_matrix(X)), parameter(options)


def fit(state):
    rows, options = state
    return train(rows, options)


def outcome(model) -> Outcome:
    labels = np.array(model.get_labels())
    if len(labels) < 3:
        raise ValueError("LIBLINEAR stores two classes as one weight vector: measure three classes or more")
    features = model.nr_feature + (1 if model.bias >= 0 else 0)
    w = np.ctypeslib.as_array(model.w, (features, len(labels)))
    return Outcome(weights=w[:, np.argsort(labels)])


if __name__ == "__main__":
    serve({"train": Task(prepare, fit, outcome)}, packages=("liblinear-official",))
