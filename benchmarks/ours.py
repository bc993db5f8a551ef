"""manyclass itself, measured by the protocol of all solvers: a fit, predictions, or reading LIBSVM text.

The time of a fit is that of ``fit``, including the certificate.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import manyclass
from benchmarks import prediction
from benchmarks.protocol import Outcome, Request, Task, serve
from manyclass.data import load_svmlight
from manyclass.estimators import estimator_for, select_C
from manyclass.model import LinearModel


def make(options: dict[str, Any]):
    """Return the named estimator, or the one for a loss."""
    options = dict(options)
    name = options.pop("estimator", None)
    return getattr(manyclass, name)(**options) if name else estimator_for(**options)


def prepare(request: Request):
    X, y = request.load_problem()
    return make(request.options), X, y


def fit(state):
    classifier, X, y = state
    return classifier.fit(X, y)


def outcome(classifier) -> Outcome:
    weights = classifier.model_.weights
    if classifier.fit_intercept and weights.shape[0] == classifier.n_features_in_:
        intercept = np.asarray(classifier.model_.intercept).reshape(1, -1)
        weights = sp.vstack([weights, intercept]) if sp.issparse(weights) else np.vstack([weights, intercept])
    certificate = classifier.certificate_
    figures = {name: float(getattr(certificate, name)) for name in ("primal", "dual", "gap", "violation")}
    return Outcome(
        weights=weights,
        iterations=int(np.max(classifier.n_iter_)),
        certificate={name: value for name, value in figures.items() if math.isfinite(value)},
        memory={name: int(size) for name, size in getattr(classifier, "memory_", {}).items()},
        figures={f"seconds of {name}": taken for name, taken in getattr(classifier, "times_", {}).items()}
        | {"density": classifier.model_.density, "weight_bytes": classifier.model_.nbytes}
        | _of_labels(classifier),
    )


def _of_labels(classifier) -> dict[str, float]:
    """Summarise the certificates of all labels."""
    told = getattr(classifier, "label_certificates_", None)
    if told is None:
        return {}
    gaps = (told["primal"] - told["dual"]) / np.maximum(np.maximum(abs(told["primal"]), abs(told["dual"])), 1e-12)
    return {"largest gap of a label": float(gaps.max()), "support": float(told["support"].sum())}


def best_labels(classifier, X: sp.csr_matrix, k: int) -> np.ndarray:
    labels, _ = classifier.predict_topk(X, min(k, len(classifier.classes_)))
    return labels


def save(classifier, folder: Path) -> None:
    manyclass.save_model(classifier.model_, folder / "model.manyclass")


def prepare_search(request: Request):
    X, y = request.load_problem()
    options = dict(request.options)
    folds, Cs = options.pop("folds"), options.pop("Cs")
    return estimator_for(**options), X, y, Cs, folds


def search(state):
    estimator, X, y, Cs, folds = state
    return select_C(estimator, X, y, Cs, cv=folds)


def best(found) -> Outcome:
    return Outcome(note=f"best C {found.best_C:g}, accuracy {found.means.max():.4f}")


def prepare_reading(request: Request) -> str:
    return request.options["path"]


def outcome_of_reading(rows) -> Outcome:
    X, _ = rows
    return Outcome(note=f"{X.shape[0]} rows, {X.nnz} non-zeros")


def predictor(W: sp.csr_matrix, threads: int) -> prediction.TopK:
    model = LinearModel(W[:-1], W[-1].toarray().ravel(), np.arange(W.shape[1]))
    return lambda rows: model.topk(rows, prediction.K, n_jobs=threads)[0]


if __name__ == "__main__":
    serve(
        {
            "train": Task(prepare, fit, outcome, best_labels, save),
            "search": Task(prepare_search, search, best),
            "predict": prediction.task(predictor),
            "read": Task(prepare_reading, load_svmlight, outcome_of_reading),
        },
        packages=("manyclass",),
    )
