"""TF-IDF features of words."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils.validation import check_is_fitted


def as_texts(texts: Any) -> list[Any]:
    """Return the elements as a list; unless each is a text, raise an error that names the row."""
    if isinstance(texts, str | bytes):
        raise ValueError("a single text was given; pass a list of texts, such as [text]")
    if getattr(texts, "ndim", 1) != 1:
        raise ValueError(f"texts must be a list or one column, got an array or table of shape {texts.shape}")
    found = list(texts)
    for row, text in enumerate(found):
        if not isinstance(text, str | bytes):
            raise ValueError(
                f"row {row} is {text!r}, of type {type(text).__name__}, not a text; remove it or fill it in"
            )
    return found


class TextTransformer(TransformerMixin, BaseEstimator):
    """Base class of the steps that convert texts to rows."""

    def transform(self, X: Any) -> sp.csr_matrix:
        """Convert texts to rows. Words without a column are ignored.

        Parameters
        ----------
        X : iterable of str
            The texts.

        Returns
        -------
        csr_matrix of shape (n_texts, n_features), float32
        """
        return self._rows_of(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class TextFeatures(TextTransformer):
    """Convert texts to TF-IDF features of lower-cased words.

    Counts are dampened to 1 + log(count), and rows are scaled to unit length. The values are float32.

    Parameters
    ----------
    min_df : int or float, default=1
        Ignore words that occur in fewer texts than this. A float is a fraction of the texts.

    Attributes
    ----------
    vectorizer_ : TfidfVectorizer
        Holds the vocabulary and the IDF weights.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "min_df": [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="both")]
    }

    def __init__(self, *, min_df: int | float = 1):
        self.min_df = min_df

    def fit(self, X: Any, y: Any = None) -> "TextFeatures":
        """Learn the vocabulary and IDF weights.

        Parameters
        ----------
        X : iterable of str
            The training texts.
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix:
        """Learn the vocabulary and IDF weights, and return the rows of the texts.

        Parameters
        ----------
        X, y : as for `fit`

        Returns
        -------
        csr_matrix of shape (n_texts, n_words), float32
        """
        self._validate_params()
        vectorizer = self.new_vectorizer()
        rows = vectorizer.fit_transform(as_texts(X))
        self.vectorizer_ = vectorizer
        return _scaled(rows)

    def _rows_of(self, X: Any) -> sp.csr_matrix:
        check_is_fitted(self)
        return _scaled(self.vectorizer_.transform(as_texts(X)))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the word of each column.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str of shape (n_words,)
        """
        check_is_fitted(self)
        return self.vectorizer_.get_feature_names_out()

    def new_vectorizer(self, vocabulary: dict[str, int] | None = None) -> TfidfVectorizer:
        """Return an unfitted vectorizer with these settings."""
        return TfidfVectorizer(
            lowercase=True, sublinear_tf=True, norm=None, dtype=np.float32, min_df=self.min_df, vocabulary=vocabulary
        )


def _scaled(rows: sp.csr_matrix) -> sp.csr_matrix:
    # fit_transform and transform order the words differently; sort so that rounding of the lengths does not differ.
    rows.sort_indices()
    return normalize(rows, copy=False)
