"""Turn the result of a fit into a model, with its certificate as plain values."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import Chain
from ..data.matrix import csr_of
from ..engines import Result
from ..model import LinearModel
from ..solvers import TrainingSet


def as_model(
    result: Result,
    classes: np.ndarray,
    settings: dict[str, Any],
    *,
    dtype: np.dtype,
    constant: float | None,
    pairs: bool,
    chain: Chain,
) -> LinearModel:
    """Build a model from the result of a fit, with intercepts of type `dtype`.

    `constant` is the value of the constant feature, whose weights are the last row of `result.weights`; None if there
    is none. With `pairs`, the weights belong to pairs of classes.
    """
    weights: Any = result.weights
    intercept = np.zeros(weights.shape[1], dtype)
    if constant is not None:
        weights, last = _split_last_row(weights)
        intercept[:] = last * constant
    if not pairs:  # an untrained pair casts no vote
        intercept[result.untrained] = -np.inf
    return LinearModel(weights, intercept, classes, settings, certificate_values(result), chain)


def certificate_values(result: Result) -> dict[str, Any]:
    """Return the certificate as plain values for the model file."""
    found = result.certificate
    certificate = {name: getattr(found, name) for name in ("primal", "dual", "gap", "violation")}
    return certificate | {"exit_reason": found.exit_reason, "message": found.message, "epochs": result.n_iter}


def count_kept(data: TrainingSet, columns: int) -> int:
    """Count the weights a model may have: all, or those of features in the class's own rows if reduced."""
    if not data.reduced:
        return data.X.n_features * columns
    X = data.X.as_csr()
    # Explicitly stored zeros do not count.
    present = sp.csr_matrix((X.data != 0, X.indices, X.indptr), shape=X.shape).astype(np.int32)
    ptr, of_class = data.rows_by_class()
    own = sp.csr_matrix((np.ones(of_class.size, np.int32), of_class, ptr), shape=(data.n_classes, data.X.n_rows))
    return int(((own @ present) > 0).nnz)


def _split_last_row(weights: Any) -> tuple[Any, np.ndarray]:
    """Split off the last row. The others are a view, because scipy's own slicing would copy them."""
    if not sp.issparse(weights):
        return weights[:-1], weights[-1]
    end = weights.indptr[-2]
    last = np.zeros(weights.shape[1], weights.dtype)
    last[weights.indices[end:]] = weights.data[end:]
    shape = weights.shape[0] - 1, weights.shape[1]
    return csr_of(weights.indptr[:-1], weights.indices[:end], weights.data[:end], shape), last
