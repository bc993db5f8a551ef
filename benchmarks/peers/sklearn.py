"""scikit-learn's reader of LIBSVM text, and its multinomial logistic regression (lbfgs, no intercept).

Its `LinearSVC` is LIBLINEAR, which is measured directly.
"""

from __future__ import annotations

from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

from benchmarks.protocol import Outcome, Request, Task, serve


def prepare(request: Request) -> str:
    return request.options["path"]


def fit(path: str):
    return load_svmlight_file(path)


def outcome(rows) -> Outcome:
    X, _ = rows
    return Outcome(note=f"{X.shape[0]} rows, {X.nnz} non-zeros")


def prepare_training(request: Request):
    X, y = request.load_problem()
    return LogisticRegression(C=request.options.get("C", 1.0), fit_intercept=False, max_iter=1000), X, y


def train(state):
    model, X, y = state
    return model.fit(X, y)


def weights(model) -> Outcome:
    return Outcome(weights=model.coef_.T, iterations=int(model.n_iter_.max()))


if __name__ == "__main__":
    serve(
        {"read": Task(prepare, fit, outcome), "train": Task(prepare_training, train, weights)},
        packages=("scikit-learn",),
    )
