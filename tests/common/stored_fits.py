"""Small stores, and what fits from them have left."""

import numpy as np
import scipy.sparse as sp

from manyclass.data.conversion import Conversion
from manyclass.data.matrix_rows import MatrixRows


def store_of(X, y, path, blocks, dtype=np.float64):
    return Conversion(MatrixRows(X, y, dtype=dtype), path, memory=64 * 10**6, blocks=blocks).run()


def with_constant(X):
    return sp.hstack([X, np.ones((X.shape[0], 1))]).tocsr()


def weights_of(fitted):
    """Of all columns of the model, with those of the constant feature."""
    return np.vstack([sp.csr_matrix(fitted.model_.matrix).toarray(), fitted.model_.intercept])


def variables_of(fitted, store, loss, C=1.0):
    """The dual variables (ids, K) that a warm fit has kept, as the problem's formulas want them."""
    K = len(fitted.classes_)
    nothing = C / (1 + np.exp(20)) if loss == "logistic" else 0.0
    alpha = np.zeros((store.manifest.next_id, K))
    for number, entry in enumerate(store.manifest.blocks):
        ids = store.read(number).ids
        alpha[ids] = nothing  # where all begin
        block = entry.file.removesuffix(".safetensors")
        for name in fitted._dual_state.names():
            if name != block and not name.startswith(f"{block}."):
                continue
            stored = fitted._dual_state.get(name)
            assert stored["ids"].tolist() == ids.tolist()
            # Of all classes, or of a range of them.
            low, high = map(int, name.rpartition(".")[2].split("-")) if name != block else (0, K)
            alpha[ids, low:high] = _values(stored, len(ids), high - low, loss, C)
    return alpha


def _values(stored, rows, K, loss, C):
    if loss == "maxent":
        p = np.exp(stored["variables"].reshape(rows, -1)[:, :K].astype(float))
        return C * p / p.sum(axis=1, keepdims=True)
    if "indptr" in stored:
        return sp.csr_matrix((stored["values"], stored["classes"], stored["indptr"]), (rows, K)).toarray()
    width = 8 if stored["values"].dtype == np.float64 else 16
    bits = np.unpackbits(stored["lanes"].view(np.uint8), bitorder="little").reshape(-1, 16)
    entry, lane = np.nonzero(bits)
    vector = np.repeat(np.arange(len(stored["counts"])), stored["counts"])[entry]
    state = np.full((rows, K), -20.0 if loss == "logistic" else 0.0)
    state[stored["rows"][entry], vector * width + lane] = stored["values"]
    return C / (1 + np.exp(np.minimum(-state, 700))) if loss == "logistic" else state
