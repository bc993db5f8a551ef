"""From raw text to rows without a vocabulary: each word has the column that its hash says."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval

from .text_features import as_texts

HASH_BITS = 20


class HashedText(TransformerMixin, BaseEstimator):
    """Hashed lower-cased words with 1 + log(count), rows of length 1, in float32.

    Nothing is learned from texts, so they can be read one at a time; words that share a column by chance are one
    feature.

    Parameters
    ----------
    hash_bits : int
        There are 2 ** hash_bits columns.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"hash_bits": [Interval(Integral, 1, 30, closed="both")]}

    def __init__(self, *, hash_bits: int = HASH_BITS):
        self.hash_bits = hash_bits

    @property
    def n_features(self) -> int:
        """Columns of a row."""
        return 1 << self.hash_bits

    def fit(self, X: Any, y: Any = None) -> "HashedText":
        """Check the parameters; there is nothing to learn.

        Parameters
        ----------
        X, y : ignored

        Returns
        -------
        self
        """
        self._validate_params()
        return self

    def transform(self, X: Any) -> sp.csr_matrix:
        """Give the rows of texts.

        Parameters
        ----------
        X : iterable of str

        Returns
        -------
        csr_matrix of shape (n_texts, 2 ** hash_bits), float32
        """
        self._validate_params()
        vectorizer = HashingVectorizer(
            n_features=self.n_features, lowercase=True, norm=None, alternate_sign=False, dtype=np.float32
        )
        rows = vectorizer.transform(as_texts(X))
        rows.sort_indices()
        np.log(rows.data, out=rows.data)
        rows.data += 1
        return normalize(rows, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags
