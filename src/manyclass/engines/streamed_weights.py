"""The weights of a model, collected from streams: dense, or sparse if that is smaller.

A stream holds the weights of all classes or of a range of them. Sparse weights are kept in one list per range, whose
memory is freed while they move into the matrix, so the model is never in memory twice.
"""

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import scipy.sparse as sp

from ..solvers import Stream, StreamShape
from ..solvers.layout import as_matrix

# A model of at most this many bytes is dense, however many zeros it has, as in dual/feature_weights.hpp.
SMALL_MODEL = 1 << 24
# Bytes of dense weights to fetch from a stream at a time.
AT_ONCE = 1 << 21
# Number of weights to move into the matrix at a time.
ENTRIES_AT_ONCE = 1 << 18


def give_back() -> None:
    """Return freed memory to the system, if the C library can; it would keep the memory of lists."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class StreamedWeights:
    """Collects weights `(features, K)`; `shape` is that of all classes."""

    def __init__(self, shape: StreamShape, dtype: np.dtype):
        places = shape.places
        self._features, self._K, self._dtype = places.features, shape.n_classes, dtype
        # Features with weights in streams, ascending, with their places there: those with lists, then the others.
        self._shared = []
        for features, first in ((places.tail_features(), places.heads), (places.head_features(), 0)):
            order = np.argsort(features)
            self._shared.append((features[order], order + first))
        self._dense: np.ndarray | None = None
        self._lists: list[_WeightList] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the weights so far; a dense model has its final size from the start."""
        if self._dense is not None:
            return self._dense.nbytes
        return sum(weights.nbytes for weights in self._lists)

    def expected_bytes(self, n_classes: int) -> int:
        """Estimate the final size, given that the weights so far belong to this many classes."""
        return self.nbytes if self._dense is not None else self.nbytes * self._K // n_classes

    def add(self, fit: Stream, singles: Sequence[tuple[np.ndarray, ...]], classes: tuple[int, int]) -> None:
        """Add the weights of a range of classes; ranges must come in ascending order.

        `fit` has the weights of features that occur in several rows, and `singles` are the results of
        `Stream.single_weights` for all rows.
        """
        low, high = classes
        if self._dense is None:
            counts = [
                sum(int(np.count_nonzero(found)) for _, found in self._of_stream(fit, part, high - low))
                for part in self._shared
            ]
            alone = sum(values.size for *_, values in singles)
            # Decide by the first range: the others will be similar.
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
            fit.forget_lists()
            give_back()
        if alone:
            columns = zip(*((np.repeat(f, np.diff(ptr)), c + low, v) for f, ptr, c, v in singles), strict=True)
            feature, of_class, value = (np.concatenate(parts) for parts in columns)
            order = np.argsort(feature, kind="stable")
            weights = _WeightList(alone, self._dtype)
            weights.put(feature[order], of_class[order], value[order])
            self._lists.append(weights)

    def _is_dense(self, count: int, n_classes: int) -> bool:
        """Whether a model with this many nonzero weights for some of its classes is to be dense."""
        stored = count * (4 + self._dtype.itemsize)
        all_of_them = self._features * self._K * self._dtype.itemsize
        return all_of_them <= SMALL_MODEL or stored * self._K >= all_of_them * n_classes

    def _of_stream(
        self, fit: Stream, shared: tuple[np.ndarray, np.ndarray], n_classes: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield features, in ascending order, and their weights in the stream, some at a time."""
        features, places = shared
        at_once = max(1, AT_ONCE // max(1, n_classes * self._dtype.itemsize))
        for first in range(0, features.size, at_once):
            here = slice(first, first + at_once)
            yield features[here], fit.weights_of(places[here])

    def assemble(self) -> np.ndarray | sp.csr_matrix:
        """Return the weights and release them."""
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
    """List of `size` weights in ascending order of features, in memory that can be freed piece by piece."""

    def __init__(self, size: int, dtype: np.dtype):
        types = np.dtype(np.uint32), np.dtype(np.int32), np.dtype(dtype)  # of features, classes, values
        self.nbytes = sum(size * one.itemsize for one in types)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = [mmap.mmap(-1, max(1, size * one.itemsize), flags=flags) for one in types]
        self._arrays = [np.frombuffer(part, one, size) for part, one in zip(self._memory, types, strict=True)]
        self._size = self._taken = 0

    def put(self, *columns: np.ndarray) -> None:
        """Append weights, given as features, classes and values."""
        for array, column in zip(self._arrays, columns, strict=True):
            array[self._size : self._size + column.size] = column
        self._size += columns[0].size

    def count(self, counts: np.ndarray) -> None:
        """Add the number of weights of each feature to `counts`."""
        for first in range(0, self._size, ENTRIES_AT_ONCE):
            found, many = np.unique(self._arrays[0][first : first + ENTRIES_AT_ONCE], return_counts=True)
            counts[found] += many

    def take(self, feature: int) -> list[np.ndarray]:
        """Return the next weights, up to this feature, and free the memory of those taken before."""
        begin = self._taken
        for memory, array in zip(self._memory, self._arrays, strict=True):
            used = begin * array.itemsize // mmap.PAGESIZE * mmap.PAGESIZE
            if used > 0:
                memory.madvise(mmap.MADV_DONTNEED, 0, used)
        self._taken += int(np.searchsorted(self._arrays[0][begin:], np.uint32(feature)))
        return [array[begin : self._taken] for array in self._arrays]
