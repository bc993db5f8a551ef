"""What the result of a fit becomes: a model, with its certificate as plain values."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import Chain
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
    """Make a model of weights, the last of which, if there is a constant feature, are its own.

    Parameters
    ----------
    result : Result
    classes : ndarray of shape (K,)
    settings : dict
        How it was trained.
    dtype : numpy dtype
        Of intercepts.
    constant : float, optional
        The value of the constant feature.
    pairs : bool
        Whether weights are of pairs of classes.
    chain : Chain
        The steps that the rows have gone through.

    Returns
    -------
    LinearModel
    """
    weights: Any = result.weights
    intercept = np.zeros(weights.shape[1], dtype)
    if constant is not None:
        weights, last = _split_last_row(weights)
        intercept[:] = last * constant
    if not pairs:  # a pair without weights has no vote
        intercept[result.untrained] = -np.inf
    return LinearModel(weights, intercept, classes, settings, certificate_values(result), chain)


def certificate_values(result: Result) -> dict[str, Any]:
    """Of the model file: plain values."""
    found = result.certificate
    certificate = {name: getattr(found, name) for name in ("primal", "dual", "gap", "violation")}
    return certificate | {"exit_reason": found.exit_reason, "message": found.message, "epochs": result.n_iter}


def count_kept(data: TrainingSet, columns: int) -> int:
    """How many weights a model can have: all, or of reduced features those of the class's own rows."""
    if not data.reduced:
        return data.X.n_features * columns
    X = data.X.as_csr()
    # Stored zeros are not values.
    present = sp.csr_matrix((X.data != 0, X.indices, X.indptr), shape=X.shape).astype(np.int32)
    ptr, of_class = data.rows_by_class()
    own = sp.csr_matrix((np.ones(of_class.size, np.int32), of_class, ptr), shape=(data.n_classes, data.X.n_rows))
    return int(((own @ present) > 0).nnz)


def _split_last_row(weights: Any) -> tuple[Any, np.ndarray]:
    """All rows but the last, as a view, and the last one; scipy's own slicing would copy all of them."""
    if not sp.issparse(weights):
        return weights[:-1], weights[-1]
    end = weights.indptr[-2]
    last = np.zeros(weights.shape[1], weights.dtype)
    last[weights.indices[end:]] = weights.data[end:]
    rest = sp.csr_matrix((weights.shape[0] - 1, weights.shape[1]), dtype=weights.dtype)
    rest.data, rest.indices, rest.indptr = weights.data[:end], weights.indices[:end], weights.indptr[:-1]
    return rest, last
