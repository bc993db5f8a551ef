"""Convert texts to rows without a vocabulary, by hashing words to columns."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval

from .text_features import TextTransformer, as_texts

HASH_BITS = 20


class HashedText(TextTransformer):
    """Convert texts to features of hashed lower-cased words.

    Counts are dampened to 1 + log(count), and rows are scaled to unit length. The values are float32. Nothing is
    learned from the texts, so they can be read one at a time. Words whose hashes collide share a feature.

    Parameters
    ----------
    hash_bits : int, default=20
        The rows have 2 ** hash_bits columns.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"hash_bits": [Interval(Integral, 1, 30, closed="both")]}

    def __init__(self, *, hash_bits: int = HASH_BITS):
        self.hash_bits = hash_bits

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return 1 << self.hash_bits

    def fit(self, X: Any, y: Any = None) -> "HashedText":
        """Check the parameters. There is nothing to learn.

        Parameters
        ----------
        X, y : ignored

        Returns
        -------
        self
        """
        self._validate_params()
        return self

    def _rows_of(self, X: Any) -> sp.csr_matrix:
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
        tags.requires_fit = False
        return tags
