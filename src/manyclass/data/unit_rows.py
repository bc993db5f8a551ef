"""Scale rows to unit length."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from .matrix import RowMatrix, check_matrix

# Values converted to float64 at a time.
VALUES_AT_ONCE = 1 << 20


class UnitRows(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale each row to unit length. Rows of zeros stay unchanged.

    `manyclass train --normalize` does the same. scikit-learn's `Normalizer` agrees up to rounding, except for rows
    whose squares overflow or underflow their type, which it sets to zero or leaves unchanged.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def fit(self, X: Any, y: Any = None) -> "UnitRows":
        """Record the number of features. There is nothing to learn.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : ignored

        Returns
        -------
        self
        """
        self._check(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows scaled to unit length.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            The rows. They are not modified.

        Returns
        -------
        csr_matrix or ndarray of shape (n, d), float32 or float64
        """
        rows = self._check(X, reset=False)
        if rows.dense is not None:
            scaled = rows.dense.copy()
            n, d = scaled.shape
            scale_to_unit_length(np.arange(n + 1) * d, scaled.reshape(-1))
            return scaled
        indptr, _, values = rows.csr_arrays
        values = values.copy()
        scale_to_unit_length(indptr, values)
        return replace(rows, values=values).as_csr()

    def _check(self, X: Any, *, reset: bool) -> RowMatrix:
        if sp.issparse(X):  # check_matrix checks the values, so skip scikit-learn's check
            return check_matrix(validate_data(self, X, reset=reset, skip_check_array=True))
        return check_matrix(validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C"))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def scale_to_unit_length(indptr: np.ndarray, values: np.ndarray) -> None:
    """Scale rows to unit length in place. `indptr` holds the offsets of the rows in `values`, starting at 0."""
    begin, n = 0, indptr.size - 1
    while begin < n:
        # At least one row, and as many as fit.
        end = max(begin + 1, int(np.searchsorted(indptr, indptr[begin] + VALUES_AT_ONCE, side="right")) - 1)
        bounds = indptr[begin : end + 1]
        part = values[bounds[0] : bounds[-1]]
        part[:] = _scaled(bounds - bounds[0], part.astype(np.float64))
        begin = end


def _scaled(indptr: np.ndarray, values: np.ndarray) -> np.ndarray:
    counts = np.diff(indptr)
    starts = indptr[:-1][counts > 0]
    row_of, n = np.repeat(np.arange(starts.size), counts[counts > 0]), starts.size
    if not n:
        return values
    # Scale by a power of two first, which is exact, so that no square overflows or underflows.
    values = np.ldexp(values, -np.frexp(np.maximum.reduceat(np.abs(values), starts))[1][row_of])
    # bincount adds values in order, unlike `reduceat`, so stored zeros do not change even the last bit.
    lengths = np.sqrt(np.bincount(row_of, values * values, n))
    lengths[lengths == 0] = 1
    return values / lengths[row_of]
