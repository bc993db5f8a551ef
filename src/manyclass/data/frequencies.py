"""In how many rows each feature occurs; if few out of very many features occur, only those are listed."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .wide_rows import MANY, TOO_MANY


def _none() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Frequencies:
    """Number of rows in which each feature occurs."""

    n_features: int  # whether they occur or not
    counts: np.ndarray = field(default_factory=_none)  # int64, one per feature, or per listed feature
    features: np.ndarray | None = field(default_factory=_none)  # the listed ones, ascending; None for all

    @cached_property
    def of_all(self) -> np.ndarray:
        """One count per feature."""
        if self.features is None:
            return np.pad(self.counts, (0, self.n_features - self.counts.size))
        counts = np.zeros(self.n_features, np.int64)
        counts[self.features] = self.counts
        return counts

    def widened(self, n_features: int) -> "Frequencies":
        """Return the counts with at least this many features."""
        return Frequencies(max(self.n_features, n_features), self.counts, self.features)

    def changed(self, indices: np.ndarray, by: int) -> "Frequencies":
        """Return the counts after adding `by` for every one of these indices."""
        n = self.n_features
        if n < MANY or self.features is None:
            return Frequencies(n, self.of_all + by * np.bincount(indices, minlength=n), None)
        new, times = np.unique(indices, return_counts=True)
        features = np.union1d(self.features, new).astype(np.int64)
        counts = np.zeros(features.size, np.int64)
        counts[np.searchsorted(features, self.features)] = self.counts
        counts[np.searchsorted(features, new)] += by * times
        listed = Frequencies(n, counts[counts > 0], features[counts > 0])
        return listed if features.size * TOO_MANY < n else Frequencies(n, listed.of_all, None)

    @property
    def tensors(self) -> dict[str, np.ndarray]:
        """The arrays for a file."""
        listed = {} if self.features is None else {"features": self.features}
        return {"frequencies": self.counts if listed else self.of_all} | listed
