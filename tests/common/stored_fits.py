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
    """With those of the constant feature."""
    return np.vstack([fitted.coef_.T, fitted.intercept_])


def variables_of(fitted, store, loss, C=1.0):
    """The dual variables (ids, K) that a warm fit has kept, as the problem's formulas want them."""
    K = len(fitted.classes_)
    alpha = np.zeros((store.manifest.next_id, K))
    for number, entry in enumerate(store.manifest.blocks):
        stored = fitted._dual_state.get(entry.file.removesuffix(".safetensors"))
        ids = store.read(number).ids
        if stored is None:  # never visited: where all begin
            alpha[ids] = C / (1 + np.exp(20)) if loss == "logistic" else 0
            continue
        assert stored["ids"].tolist() == ids.tolist()
        if loss == "maxent":
            p = np.exp(stored["variables"].reshape(len(ids), -1)[:, :K].astype(float))
            alpha[ids] = C * p / p.sum(axis=1, keepdims=True)
        elif "indptr" in stored:
            found = sp.csr_matrix((stored["values"], stored["classes"], stored["indptr"]), (len(ids), K))
            alpha[ids] = found.toarray()
        else:
            width = 8 if stored["values"].dtype == np.float64 else 16
            bits = np.unpackbits(stored["lanes"].view(np.uint8), bitorder="little").reshape(-1, 16)
            entry, lane = np.nonzero(bits)
            vector = np.repeat(np.arange(len(stored["counts"])), stored["counts"])[entry]
            state = np.full((len(ids), K), -20.0 if loss == "logistic" else 0.0)
            state[stored["rows"][entry], vector * width + lane] = stored["values"]
            alpha[ids] = C / (1 + np.exp(-state)) if loss == "logistic" else state
    return alpha
