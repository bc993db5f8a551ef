"""The weights of a model, collected from streams: dense, or sparse where that is smaller.

A stream has the weights of all classes, or of one range of them after another. Sparse weights wait in lists, one per
range, that are given back to the system as they go into the matrix: the model is never there twice.
"""

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..solvers import Stream
from ..solvers.layout import as_matrix

# Bytes up to which a model is dense whatever its zeros, as in dual/feature_weights.hpp.
SMALL_MODEL = 1 << 24
# Bytes of the dense weights that are looked at together.
AT_ONCE = 1 << 21
# Weights that are put into the matrix together.
ENTRIES_AT_ONCE = 1 << 18


def give_back() -> None:
    """Return to the system what was freed, where the C library can: it would keep the memory of lists."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class StreamedWeights:
    """Weights `(features, K)` to be.

    Parameters
    ----------
    places : FeaturePlaces
        Which features have weights in streams.
    n_classes : int
        K.
    dtype : numpy dtype
        Of the weights.
    """

    def __init__(self, places: Any, n_classes: int, dtype: np.dtype):
        self._features, self._K, self._dtype = places.features, n_classes, np.dtype(dtype)
        # Features with weights in streams, ascending, and their places there: those with lists, then the others.
        self._shared = []
        for features, first in ((places.tail_features(), places.heads), (places.head_features(), 0)):
            order = np.argsort(features)
            self._shared.append((features[order], order + first))
        self._dense: np.ndarray | None = None
        self._lists: list[_WeightList] = []

    @property
    def nbytes(self) -> int:
        """What the weights take so far; dense ones from the beginning."""
        if self._dense is not None:
            return self._dense.nbytes
        return sum(weights.nbytes for weights in self._lists)

    def expected_bytes(self, n_classes: int) -> int:
        """What the weights of all classes will take, if these are the weights of so many of them."""
        return self.nbytes if self._dense is not None else self.nbytes * self._K // n_classes

    def add(self, fit: Stream, singles: Sequence[tuple[np.ndarray, ...]], classes: tuple[int, int]) -> None:
        """Take over the weights of a range of classes; ranges come in ascending order.

        Parameters
        ----------
        fit : Stream
            It has the weights of the features that several rows have.
        singles : sequence of tuples
            What `Stream.single_weights` has given for all rows.
        classes : tuple of int
            The first class of the stream, and the one behind its last.
        """
        low, high = classes
        if self._dense is None:
            counts = [
                sum(int(np.count_nonzero(found)) for _, found in self._of_stream(fit, part, high - low))
                for part in self._shared
            ]
            alone = sum(values.size for *_, values in singles)
            # Other ranges will be much like the first.
            if not self._lists and self._is_dense(sum(counts) + alone, high - low):
                self._dense = np.zeros((self._features, self._K), self._dtype)
        if self._dense is not None:
            for part in self._shared:
                for chosen, found in self._of_stream(fit, part, high - low):
                    self._dense[chosen, low:high] = found
            for features, ptr, of_class, values in singles:
                self._dense[np.repeat(features, np.diff(ptr)), of_class + low] = values
            return
        for part, count in zip(self._shared, counts, strict=True):
            weights = _WeightList(count, self._dtype)
            for chosen, found in self._of_stream(fit, part, high - low):
                row, column = np.nonzero(found)
                weights.put(chosen[row], column + low, found[row, column])
            self._lists.append(weights)
            fit.forget_lists()  # they are here now
            give_back()
        if alone:
            columns = zip(*((np.repeat(f, np.diff(ptr)), c + low, v) for f, ptr, c, v in singles), strict=True)
            feature, of_class, value = (np.concatenate(parts) for parts in columns)
            order = np.argsort(feature, kind="stable")
            weights = _WeightList(alone, self._dtype)
            weights.put(feature[order], of_class[order], value[order])
            self._lists.append(weights)

    def _is_dense(self, count: int, n_classes: int) -> bool:
        """Whether a model is to be dense that has so many weights for some of its classes."""
        stored = count * (4 + self._dtype.itemsize)
        all_of_them = self._features * self._K * self._dtype.itemsize
        return all_of_them <= SMALL_MODEL or stored * self._K >= all_of_them * n_classes

    def _of_stream(
        self, fit: Stream, shared: tuple[np.ndarray, np.ndarray], n_classes: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some of these features, ascending, and the weights that the stream has of them, a piece after the other."""
        features, places = shared
        at_once = max(1, AT_ONCE // max(1, n_classes * self._dtype.itemsize))
        for first in range(0, features.size, at_once):
            here = slice(first, first + at_once)
            yield features[here], fit.weights_of(places[here])

    def assemble(self) -> np.ndarray | sp.csr_matrix:
        """Give the weights, and let go of them."""
        if self._dense is not None:
            dense, self._dense = self._dense, None
            return dense
        counts = np.zeros(self._features, np.int64)
        for weights in self._lists:
            weights.count(counts)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        classes, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self._dtype)
        first = 0
        while first < self._features:
            behind = int(np.searchsorted(indptr, indptr[first] + ENTRIES_AT_ONCE, side="right")) - 1
            behind = min(self._features, max(first + 1, behind))
            taken = zip(*(weights.take(behind) for weights in self._lists), strict=True)
            feature, of_class, value = (np.concatenate(parts) for parts in taken)
            order = np.argsort(feature, kind="stable")  # ranges of classes stay in their order
            here = slice(indptr[first], indptr[behind])
            classes[here], values[here] = of_class[order], value[order]
            first = behind
        self._lists.clear()
        return as_matrix((indptr, classes, values), self._features, self._K)


class _WeightList:
    """Weights by ascending features, in memory of its own.

    Parameters
    ----------
    size : int
        How many there will be.
    dtype : numpy dtype
        Of the values.
    """

    def __init__(self, size: int, dtype: np.dtype):
        types = np.dtype(np.uint32), np.dtype(np.int32), np.dtype(dtype)  # of features, classes, values
        self.nbytes = sum(size * one.itemsize for one in types)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = [mmap.mmap(-1, max(1, size * one.itemsize), flags=flags) for one in types]
        self._arrays = [np.frombuffer(part, one, size) for part, one in zip(self._memory, types, strict=True)]
        self._size = self._taken = 0

    def put(self, *columns: np.ndarray) -> None:
        """Add the features, classes and values of the next ones."""
        for array, column in zip(self._arrays, columns, strict=True):
            array[self._size : self._size + column.size] = column
        self._size += columns[0].size

    def count(self, counts: np.ndarray) -> None:
        """Add to the number of weights that each feature has."""
        for first in range(0, self._size, ENTRIES_AT_ONCE):
            found, many = np.unique(self._arrays[0][first : first + ENTRIES_AT_ONCE], return_counts=True)
            counts[found] += many

    def take(self, feature: int) -> list[np.ndarray]:
        """Give the next ones, up to this feature; the memory of those that were taken before is gone."""
        begin = self._taken
        for memory, array in zip(self._memory, self._arrays, strict=True):
            used = begin * array.itemsize // mmap.PAGESIZE * mmap.PAGESIZE
            if used > 0:
                memory.madvise(mmap.MADV_DONTNEED, 0, used)
        self._taken += int(np.searchsorted(self._arrays[0][begin:], np.uint32(feature)))
        return [array[begin : self._taken] for array in self._arrays]
