"""scikit-learn's reader of LIBSVM text, multinomial logistic regression (lbfgs), one-vs-one and grid search, scores.

There are no intercepts, except in scores. `LinearSVC` alone is LIBLINEAR, which is measured directly.

The k best classes come from `decision_function` and `argpartition`, with weights as `sparsify` stores them, for as
many rows at a time as there is room for scores.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC

from benchmarks import prediction
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
    if request.options.get("estimator") == "one-vs-one":
        return OneVsOneClassifier(LinearSVC(fit_intercept=False)), X, y
    return LogisticRegression(C=request.options.get("C", 1.0), fit_intercept=False, max_iter=1000), X, y


def train(state):
    model, X, y = state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def weights(model) -> Outcome:
    if isinstance(model, OneVsOneClassifier):
        # Here the second class is the positive one; in manyclass it is the first.
        return Outcome(weights=-np.stack([binary.coef_[0] for binary in model.estimators_], axis=1))
    return Outcome(weights=model.coef_.T, iterations=int(model.n_iter_.max()))


def prepare_search(request: Request):
    X, y = request.load_problem()
    folds = KFold(request.options["folds"], shuffle=True, random_state=0)
    search = GridSearchCV(
        LinearSVC(fit_intercept=False), {"C": request.options["Cs"]}, cv=folds, n_jobs=2, refit=False
    )
    return search, X, y


def best(search) -> Outcome:
    found = search.cv_results_["mean_test_score"]
    return Outcome(note=f"best C {search.best_params_['C']:g}, accuracy {found.max():.4f}")


SCORES_AT_ONCE = 1 << 24


def predictor(W, threads: int) -> prediction.TopK:
    model = LinearSVC()
    model.coef_, model.intercept_ = W[:-1].T.tocsr(), W[-1].toarray().ravel()
    model.classes_ = np.arange(W.shape[1])
    at_once = max(1, SCORES_AT_ONCE // W.shape[1])

    def topk(rows) -> np.ndarray:
        return np.concatenate([best_of(rows[i : i + at_once]) for i in range(0, rows.shape[0], at_once)])

    def best_of(rows) -> np.ndarray:
        scores = model.decision_function(rows)
        best = np.argpartition(-scores, prediction.K, axis=1)[:, : prediction.K]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return np.take_along_axis(best, order, axis=1)

    return topk


if __name__ == "__main__":
    serve(
        {
            "read": Task(prepare, fit, outcome),
            "train": Task(prepare_training, train, weights),
            "search": Task(prepare_search, train, best),
            "predict": prediction.task(predictor),
        },
        packages=("scikit-learn",),
    )
