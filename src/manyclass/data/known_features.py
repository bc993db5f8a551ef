"""Drop and count features that a model does not know."""

import numpy as np
import scipy.sparse as sp

from .matrix import chosen_entries


class KnownFeatures:
    """Reduce rows to the first `n_features` features, those of a model, and count all entries and those dropped.

    A linear model has no weights for features that did not occur in training, so their entries cannot change a score.
    """

    def __init__(self, n_features: int):
        self.n_features = n_features
        self.entries = 0
        self.entries_ignored = 0
        self._unknown = np.empty(0, np.int64)

    @property
    def features_ignored(self) -> int:
        """Number of distinct features dropped."""
        return self._unknown.size

    def keep(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the rows with only the features of the model, sharing memory with `X` if nothing is dropped."""
        self.entries += X.nnz
        shape = (X.shape[0], self.n_features)
        known = X.indices < self.n_features if X.shape[1] > self.n_features else None
        if known is None or known.all():
            return sp.csr_matrix((X.data, X.indices, X.indptr), shape=shape)
        self.entries_ignored += X.nnz - int(np.count_nonzero(known))
        self._unknown = np.union1d(self._unknown, X.indices[~known])
        indptr, indices, values = chosen_entries(known, X.indptr, X.indices, X.data)
        return sp.csr_matrix((values, indices, indptr), shape=shape)

    def add(self, others: "KnownFeatures") -> None:
        """Add the counts of another instance."""
        self.entries += others.entries
        self.entries_ignored += others.entries_ignored
        self._unknown = np.union1d(self._unknown, others._unknown)
