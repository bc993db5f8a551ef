"""Every loss with its estimator, for tests that run over all of them, and small problems."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.estimators import ESTIMATORS, estimator_for

LOSSES = list(ESTIMATORS)


def slow_if(values, *slow):
    """Return parameters of a test; those in `slow` are left to `make test-all`."""
    return [pytest.param(value, marks=pytest.mark.slow) if value in slow else value for value in values]


def make(loss, **parameters):
    """Return the estimator of a loss; the default of C is the same for all."""
    return estimator_for(loss, **{"C": 1.0} | parameters)


def dual_variables(state, columns):
    """Return the dual variables of a fit `(n, columns)`, in the form of the problem's formulas."""
    shape = (state["indptr"].size - 1, columns)
    return sp.csr_matrix((state["values"], state["classes"], state["indptr"]), shape).toarray()


def text_like(n=120, d=60, K=7, seed=0, nnz=6):
    """Return sparse rows of unit length with a class signal, and features of one row, of a few and of many."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    y[:K] = np.arange(K)
    common = np.minimum((d * rng.power(0.4, (n, nnz))).astype(int), d - 1)
    columns = np.column_stack([common, y % d]).ravel()
    X = sp.csr_matrix((np.ones(columns.size), (np.repeat(np.arange(n), nnz + 1), columns)), (n, d))
    X.data = rng.uniform(0.5, 1.5, X.nnz)
    norms = np.sqrt(X.multiply(X).sum(axis=1)).A1
    X = sp.csr_matrix(sp.diags(1 / norms) @ X)
    X.sort_indices()
    return X, y
