"""scikit-learn's reader of LIBSVM text. (Its `LinearSVC` is LIBLINEAR, which is measured directly.)"""

from __future__ import annotations

from sklearn.datasets import load_svmlight_file

from benchmarks.protocol import Outcome, Request, Task, serve


def prepare(request: Request) -> str:
    return request.options["path"]


def fit(path: str):
    return load_svmlight_file(path)


def outcome(rows) -> Outcome:
    X, _ = rows
    return Outcome(note=f"{X.shape[0]} rows, {X.nnz} non-zeros")


if __name__ == "__main__":
    serve({"read": Task(prepare, fit, outcome)}, packages=("scikit-learn",))
