"""napkinXC (package napkinxc): one binary problem per label by its own copy of LIBLINEAR, divided among threads.

By default it scales rows to unit length, adds a constant feature of 1 and minimises for each label

    1/2 |w_c|^2 + C sum_i log(1 + exp(-t_ic w_c·x_i)),    C = 10

by dual coordinate descent (L2R_LR_DUAL) to a tolerance of 0.1 or for 100 passes; with loss = "l2" the squared hinge
(L2R_L2LOSS_SVC_DUAL). Then it drops weights below 0.1. `OVR` takes rows with one label, `BR` with any number; both
train the same. A fit includes the conversion of the rows and the writing of the model, which is kept on disk.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from napkinxc.models import BR, OVR

from benchmarks.protocol import Outcome, Request, Task, label_sets, serve


def prepare(request: Request):
    X, y = request.load_problem()
    kind = BR if sp.issparse(y) else OVR
    # Next to the reply: the parent removes both.
    model = kind(str(Path(request.reply).parent / "model"), **request.options)
    return model, sp.csr_matrix(X, dtype=np.float32), label_sets(y)


def fit(state):
    model, X, Y = state
    model.fit(X, Y)
    return model


def outcome(model) -> Outcome:
    return Outcome()


def best(model, X: sp.csr_matrix, k: int) -> np.ndarray:
    codes = np.full((X.shape[0], k), -1)
    for row, found in enumerate(model.predict(sp.csr_matrix(X, dtype=np.float32), top_k=k)):
        codes[row, : len(found)] = found
    return codes


def save(model, folder: Path) -> None:
    shutil.copytree(model.get_params()["output"], folder, dirs_exist_ok=True)


if __name__ == "__main__":
    serve({"train": Task(prepare, fit, outcome, best, save)}, packages=("napkinxc", "numpy"))
