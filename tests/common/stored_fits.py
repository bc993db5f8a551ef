"""Small stores, and checks of fits from them."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data.conversion import Conversion
from manyclass.data.matrix_rows import MatrixRows
from manyclass.problems import PROBLEMS, Reinforced


def store_of(X, y, path, blocks, dtype=np.float64):
    return Conversion(MatrixRows(X, y, dtype=dtype), path, memory=64 * 10**6, blocks=blocks).run()


def with_constant(X):
    return sp.hstack([X, np.ones((X.shape[0], 1))]).tocsr()


def weights_of(fitted):
    """Return all columns of the model, with the weights of the constant feature as last row."""
    return np.vstack([sp.csr_matrix(fitted.model_.matrix).toarray(), fitted.model_.intercept])


def assert_same_bits(models):
    """Assert that models have the same weights and certificate."""
    for other in models[1:]:
        np.testing.assert_array_equal(weights_of(models[0]), weights_of(other))
        assert models[0].certificate_ == other.certificate_


def memory_needed(message):
    """Return the bytes that a rejected fit asks for, rounded up."""
    needed, unit = re.search(r"memory is not enough: the fit needs ([\d.]+) (kB|MB)", message).groups()
    return int(float(needed) * {"kB": 1e3, "MB": 1e6}[unit] * 1.01) + 100


def assert_certificate_follows_from_formulas(fitted, store, loss, X, y, C=1.0):
    """Compare the certificate of a warm fit with the formulas, on its weights and its dual variables alone.

    X and y have all rows that ever were in the store, by id.
    """
    ids = np.sort(np.concatenate([store.read(number).ids for number in range(store.n_blocks)]))
    problem, found = Reinforced(0.5) if loss == "rm" else PROBLEMS[loss], fitted.certificate_
    X = with_constant(X[ids]) if fitted.fit_intercept else X[ids]
    y, alpha = np.searchsorted(fitted.classes_, y[ids]), variables_of(fitted, store, loss, C)[ids]
    C, W = np.broadcast_to(C, ids.size), weights_of(fitted)[: X.shape[1]]
    np.testing.assert_allclose(W, problem.weights(alpha, X, y), rtol=1e-9, atol=1e-12)
    assert found.primal == pytest.approx(problem.primal(W, X, y, C), rel=1e-9)
    assert found.dual == pytest.approx(problem.dual(alpha, X, y, C), rel=1e-9, abs=1e-12)
    worst = problem.violations(X @ W, alpha, y, C).max()
    assert found.violation == pytest.approx(worst, rel=1e-6, abs=1e-9)


def variables_of(fitted, store, loss, C=1.0):
    """Return the dual variables (ids, K) kept by a fit with `warm_start`, in the form of the problem's formulas."""
    K = len(fitted.classes_)
    nothing = C / (1 + np.exp(20)) if loss == "logistic" else 0.0
    alpha = np.zeros((store.manifest.next_id, K))
    for number, entry in enumerate(store.manifest.blocks):
        ids = store.read(number).ids
        alpha[ids] = nothing  # the initial values
        block = entry.file.removesuffix(".safetensors")
        for name in fitted._dual_state.names():
            if name != block and not name.startswith(f"{block}."):
                continue
            stored = fitted._dual_state.get(name)
            assert stored["ids"].tolist() == ids.tolist()
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
