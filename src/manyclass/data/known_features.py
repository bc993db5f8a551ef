"""Features that a model knows: others are left out of rows, and counted."""

import numpy as np
import scipy.sparse as sp


class KnownFeatures:
    """Gives rows as many features as a model has, and counts the entries that are left out.

    A linear model has no weights for features that did not occur in training, so their entries cannot change a score.

    Parameters
    ----------
    n_features : int
        How many features the model has: columns from there on are unknown to it.

    Attributes
    ----------
    entries : int
        Stored values of all rows so far.
    entries_ignored : int
        How many of them were left out.
    """

    def __init__(self, n_features: int):
        self.n_features = n_features
        self.entries = 0
        self.entries_ignored = 0
        self._unknown = np.empty(0, np.int64)

    @property
    def features_ignored(self) -> int:
        """How many different features were left out."""
        return self._unknown.size

    def keep(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Rows with the features that the model knows.

        Parameters
        ----------
        X : csr_matrix of shape (n, d)
            Any number of features.

        Returns
        -------
        csr_matrix of shape (n, n_features)
            Sharing memory with `X` unless something was left out.
        """
        self.entries += X.nnz
        shape = (X.shape[0], self.n_features)
        known = X.indices < self.n_features if X.shape[1] > self.n_features else None
        if known is None or known.all():
            return sp.csr_matrix((X.data, X.indices, X.indptr), shape=shape)
        self.entries_ignored += X.nnz - int(np.count_nonzero(known))
        self._unknown = np.union1d(self._unknown, X.indices[~known])
        before = np.concatenate(([0], np.cumsum(known)))
        return sp.csr_matrix((X.data[known], X.indices[known], before[X.indptr]), shape=shape)

    def add(self, others: "KnownFeatures") -> None:
        """Count what was left out elsewhere, too."""
        self.entries += others.entries
        self.entries_ignored += others.entries_ignored
        self._unknown = np.union1d(self._unknown, others._unknown)
