"""PECOS (package libpecos): `XLinearModel` without a tree, i.e. one binary problem per class.

Solver L2R_L2LOSS_SVC_DUAL minimises, for each class, with a dual coordinate descent that adds 0.5 / C to the
diagonal,

    1/2 |w_c|^2 + 1/2 b_c^2 + C sum_i hinge(±(w_c·x_i + b_c))^2

for bias = 1: LIBLINEAR's ``-s 1 -B 1``, the intercept regularised, C = Cp = Cn. It stops at a projected
gradient range of eps = 0.1 or after max_iter = 100 passes, its own defaults.

`threshold` drops smaller weights from the model: by default those below 0.1, which changes the objective value, so
this default is only used when predictions are compared. With 0 the model would also store the zeros: 185 million
entries for 4,796 classes. Here the default is 1e-30, which keeps all weights that are not zero. Classes are the
columns of the label matrix, weights are float32, and the last row of the weight matrix is the intercept.

For prediction, weights are saved and loaded in the fast form (`is_predict_only`), in the default layout, and scores
are not transformed ("noop"): by default, all scores above 1 become equal.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pecos.xmc.base import HierarchicalMLModel, MLModel
from pecos.xmc.xlinear.model import XLinearModel

from benchmarks import prediction
from benchmarks.protocol import Outcome, Request, Task, label_sets, serve

KEEP_ALL_BUT_ZEROS = 1e-30


def prepare(request: Request):
    X, y = request.load_problem()
    Y = label_sets(y).tocsc()
    asked = request.options
    settings = {
        "solver_type": "L2R_L2LOSS_SVC_DUAL",
        "Cp": asked.get("C", 1.0),
        "Cn": asked.get("C", 1.0),
        "bias": 1.0,
        "threshold": asked.get("threshold", KEEP_ALL_BUT_ZEROS),
        "threads": asked["threads"],
    }
    settings |= {name: asked[name] for name in ("eps", "max_iter") if name in asked}
    return X.astype(np.float32), Y, settings


def fit(state):
    X, Y, settings = state
    return XLinearModel.train(X, Y, C=None, **settings)


def outcome(model) -> Outcome:
    weights = model.model.model_chain[0].W
    return Outcome(weights=weights, figures={"density": weights.nnz / np.prod(weights.shape, dtype=float)})


def best(model, X: sp.csr_matrix, k: int) -> np.ndarray:
    scores = model.predict(X.astype(np.float32), only_topk=k, post_processor="noop").tocsr()
    codes = np.full((X.shape[0], k), -1)
    for row, (begin, end) in enumerate(zip(scores.indptr, scores.indptr[1:], strict=False)):
        order = np.argsort(-scores.data[begin:end], kind="stable")
        codes[row, : end - begin] = scores.indices[begin:end][order]
    return codes


def save(model, folder: Path) -> None:
    model.save(str(folder))


def predictor(W: sp.csr_matrix, threads: int) -> prediction.TopK:
    how = MLModel.PredParams(only_topk=prediction.K, post_processor="noop")
    layer = MLModel(W=sp.csc_matrix(W, dtype=np.float32), C=None, bias=1.0, pred_params=how)
    with tempfile.TemporaryDirectory() as folder:
        XLinearModel(HierarchicalMLModel([layer])).save(folder)
        model = XLinearModel.load(folder, is_predict_only=True)

    def topk(rows: sp.csr_matrix) -> np.ndarray:
        # Each row of the result has the best classes first.
        return model.predict(rows, only_topk=prediction.K, threads=threads).indices.reshape(-1, prediction.K)

    return topk


if __name__ == "__main__":
    serve(
        {"train": Task(prepare, fit, outcome, best, save), "predict": prediction.task(predictor)},
        packages=("libpecos", "numpy"),
    )
