"""Lee-Lin-Wahba for a small C: all dual variables are at their bounds, so the weights are known."""

import numpy as np
import scipy.sparse as sp

from .solver import TrainingSet

ROWS_AT_ONCE = 1024


def bounds_are_optimal(data: TrainingSet) -> bool:
    """Whether `alpha_ic = C_i` for all other classes c is the optimum of "llw".

    The weights are then `w_c = S_c - S / K`, where `S_c` is the sum of `C_i x_i` over the rows of class c, and S that
    over all rows. They are optimal if no score of another class is below -1. Rows are checked in chunks: for a large
    C the first chunk decides.
    """
    X = sp.csr_matrix(data.X.as_csr(), dtype=np.float64)
    if data.constant:
        X = sp.csr_matrix(sp.hstack([X, np.full((X.shape[0], 1), data.constant)]))
    rows = np.arange(data.X.n_rows)
    to_class = sp.csr_matrix((data.C, (data.codes, rows)), shape=(data.n_classes, len(rows)))
    sums = sp.csr_matrix(to_class @ X)
    mean = np.asarray(sums.sum(axis=0)).ravel() / data.n_classes
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        part = X[begin : begin + ROWS_AT_ONCE]
        scores = (part @ sums.T).toarray() - (part @ mean)[:, None]
        scores[np.arange(part.shape[0]), data.codes[begin : begin + ROWS_AT_ONCE]] = 0
        if scores.min() < -1:
            return False
    return True


def state_at_bounds(data: TrainingSet) -> dict[str, np.ndarray]:
    """Return the dual variables at their bounds, as CSR arrays."""
    n, K = data.X.n_rows, data.n_classes
    others = np.arange(K) != data.codes[:, None]
    classes = np.broadcast_to(np.arange(K, dtype=np.int32), (n, K))[others]
    return {
        "indptr": np.arange(n + 1, dtype=np.int64) * (K - 1),
        "classes": classes,
        "values": np.repeat(data.C, K - 1),
    }
