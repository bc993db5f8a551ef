"""From raw text to rows without a vocabulary: each word has the column that its hash tells."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

HASH_BITS = 20
TENSOR = "text.hashing"


class HashedText:
    """Hashed lower-cased words with 1 + log(count), rows of length 1, in float32.

    Nothing is learned from texts, so they can be read one at a time; words that share a column by chance are one
    feature.

    Parameters
    ----------
    hash_bits : int
        There are 2 ** hash_bits columns.
    """

    words: np.ndarray | None = None  # a hash does not tell them

    def __init__(self, *, hash_bits: int = HASH_BITS):
        if isinstance(hash_bits, bool) or not isinstance(hash_bits, int) or not 1 <= hash_bits <= 30:
            raise ValueError(f"hash_bits must be a whole number from 1 to 30, got {hash_bits!r}")
        self.hash_bits = hash_bits
        self._vectorizer = HashingVectorizer(
            n_features=1 << hash_bits, lowercase=True, norm=None, alternate_sign=False, dtype=np.float32
        )

    @property
    def n_features(self) -> int:
        """Columns of a row."""
        return 1 << self.hash_bits

    def transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """Give the rows of `texts`.

        Parameters
        ----------
        texts : iterable of str

        Returns
        -------
        X : float32 csr_matrix of shape (n_texts, 2 ** hash_bits)
        """
        X = self._vectorizer.transform(texts)
        X.sort_indices()
        np.log(X.data, out=X.data)
        X.data += 1
        return normalize(X, copy=False)

    def to_tensors(self) -> dict[str, np.ndarray]:
        """Give all that makes up this object as plain arrays, such as a safetensors file holds."""
        return {TENSOR: np.frombuffer(json.dumps({"hash_bits": self.hash_bits}).encode(), np.uint8)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "HashedText":
        """Rebuild what `to_tensors` gave; other entries of `tensors` are ignored.

        Raises
        ------
        ValueError
            If that is damaged.
        """
        options: Any = json.loads(tensors[TENSOR].tobytes())
        if not isinstance(options, dict) or set(options) != {"hash_bits"}:
            raise ValueError(f"hashed text has the options {options}, expected hash_bits; the file is damaged")
        return cls(**options)
