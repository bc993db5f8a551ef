"""Rows scaled to length 1."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from .matrix import RowMatrix, check_matrix

# Values that are looked at in float64 at a time.
VALUES_AT_ONCE = 1 << 20


class UnitRows(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scales each row to length 1; rows of zeros stay as they are.

    This is what `manyclass train --normalize` does. scikit-learn's `Normalizer` gives the same up to rounding, except
    for rows whose squares are beyond the range of their type, which it sets to zero or leaves as they are.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def fit(self, X: Any, y: Any = None) -> "UnitRows":
        """Remember the number of features; there is nothing to learn.

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
        """Scale rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            It is not changed.

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
        assert rows.indptr is not None and rows.values is not None
        values = rows.values.copy()
        scale_to_unit_length(rows.indptr, values)
        return replace(rows, values=values).as_csr()

    def _check(self, X: Any, *, reset: bool) -> RowMatrix:
        if sp.issparse(X):  # whose values are checked once, below
            return check_matrix(validate_data(self, X, reset=reset, skip_check_array=True))
        return check_matrix(validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C"))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def scale_to_unit_length(indptr: np.ndarray, values: np.ndarray) -> None:
    """Scale rows in place.

    Parameters
    ----------
    indptr : integer ndarray of shape (n + 1,)
        Where each row begins and the last one ends, from 0 on.
    values : float ndarray
        Of all rows, one after the other.
    """
    begin, n = 0, indptr.size - 1
    while begin < n:
        # A row at least, and as many as have the values.
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
    # First by a power of two, which rounds nothing, so that no square is too large or too small.
    values = np.ldexp(values, -np.frexp(np.maximum.reduceat(np.abs(values), starts))[1][row_of])
    # One value after the other, unlike `reduceat`: stored zeros make no difference then, not even in the last bit.
    lengths = np.sqrt(np.bincount(row_of, values * values, n))
    lengths[lengths == 0] = 1
    return values / lengths[row_of]
