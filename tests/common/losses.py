"""Every loss with its estimator, so that one suite runs over all of them; and small problems to run it on."""

import numpy as np
import scipy.sparse as sp

from manyclass.estimators import ESTIMATORS, estimator_for

LOSSES = list(ESTIMATORS)


def make(loss, **parameters):
    """The estimator of a loss, with the same C for all of them if none is given."""
    return estimator_for(loss, **{"C": 1.0} | parameters)


def dual_variables(state, columns):
    """The dual variables of a fit `(n, columns)`, as the problem's formulas want them."""
    shape = (state["indptr"].size - 1, columns)
    return sp.csr_matrix((state["values"], state["classes"], state["indptr"]), shape).toarray()


def text_like(n=120, d=60, K=7, seed=0, nnz=6):
    """Sparse rows of unit length with a class signal; features of one row, of a few and of many."""
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
