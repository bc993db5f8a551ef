"""How much memory training from disk needs, and how the memory limit is divided."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data.sizes import show_size
from ..solvers import StreamShape
from ..solvers.estimate import expected_nonzeros
from ..solvers.layout import LISTED, tail_rows
from .disk_engine import DiskJob
from .streamed_weights import SMALL_MODEL

# Bytes per row, in addition to its features and variables.
BYTES_A_ROW = 160
LANES = 16
# Maximum size of a batch: reading overlaps with solving only if there are many batches.
LARGEST_BATCH = 512 << 20
# Maximum share for float64 weights of the memory that blocks and weights leave; dual variables get the rest.
EXACT_SHARE = 3 / 4
# A list of weights reserves room for a quarter more, and takes this many bytes besides.
LIST_GROWTH, BYTES_A_LIST = 1.25, 32
# A weight in a list takes more than twice the memory of a dense one, so use lists up to this share of nonzeros.
SHARE_OF_A_LIST = 0.4
# Classes that a row uses at some time during training, relative to those it uses in the end. Their weights stay in
# lists until all weights are recomputed.
PASSING = 3
# Generous estimate of the number of classes that a row uses in the final model.
SUPPORT_OF_A_MODEL = 30
# Weights in the lists of a range of classes relative to the average: some classes have many more rows than others.
SKEW = 2


class Sizes:
    """Bytes that fits from disk need."""

    def __init__(self, job: DiskJob, shape: StreamShape, fits: int = 1):
        self.job, self._data, self._problem, self._fits = job, job.data, job.problem, fits
        self.sparse = job.problem.sparse_weights  # whether most weights are 0
        self._value = job.dtype.itemsize
        self._heads, self._tails = shape.places.heads, shape.places.tails
        store = job.data.store
        rare = store.frequencies[shape.places.tail_features()]
        # Number of weights in lists: an estimate, until the fit has counted them.
        self.listed = float(self._weights_in_use(rare, PASSING).sum())
        entries = store.manifest.blocks
        self._rows, self._nnz = max(entry.rows for entry in entries), max(entry.nnz for entry in entries)
        # Bytes for the block being read, which is decoded from its planes into memory that the previous one has left.
        self.decoding = self._nnz * (2 * (4 + store.dtype.itemsize) + 8)
        # At least so many. Each block alone would fit what all rows share, such as the constant feature, in its own
        # way: such fits may take hundreds of passes.
        self.blocks_per_batch = job.engine.blocks_per_batch or min(2, len(entries))

    def weights(self, n_classes: int) -> int:
        """Return the size of the weights during training."""
        return self._fits * self._heads * self._padded(n_classes) * self._value + self.lists(self.listed)

    def lists(self, listed: float) -> int:
        """Return the size of the lists of weights, if they hold this many."""
        return self._fits * (self._tails * BYTES_A_LIST + int(listed * LIST_GROWTH * (4 + self._value)))

    def exact(self, n_classes: int) -> int:
        """Return the size of the float64 weights of a certificate."""
        dense = self._heads * -(-n_classes // LANES) * LANES * 8
        listed = self.listed * min(1.0, SKEW * n_classes / self._data.n_classes) * LIST_GROWTH * (4 + 8)
        return self._fits * (dense + self._tails * BYTES_A_LIST + int(listed))

    def exact_classes(self, room: int) -> int:
        """Return the number of classes whose float64 weights fit in this many bytes; at least one vector."""
        return max(LANES, _most_classes(self.exact, self._data.n_classes, room))

    def block(self, n_classes: int) -> int:
        """Return the size of a block in a batch, counting its features twice: the next batch is read meanwhile."""
        K = self._padded(n_classes)
        block = self._nnz * 2 * (4 + self._value) + self._rows * (BYTES_A_ROW + self._variables_of_a_row(K))
        if self.job.engine.update == "block":  # responses of all rows; their sum uses the room for exact weights
            block += self._rows * 2 * LANES * self._value
        return block

    def blocks(self, n_classes: int) -> int:
        """Return the size of the smallest possible batch, including what is being read."""
        return self.decoding + self.blocks_per_batch * self.block(n_classes)

    def training(self, n_classes: int) -> int:
        """Return the minimum needed to train this many classes together."""
        return self.weights(n_classes) + self.blocks(n_classes) + self.exact(LANES)

    def all_at_once(self) -> bool:
        """Whether all classes can be trained together, however large the model becomes."""
        K = self._data.n_classes
        return max(self.training(K), self.weights(K) + self.largest_model(K)) <= self.job.limit

    def needed(self, *, model: bool) -> int:
        """Return the minimum needed to train all classes together and, if requested, to build the model."""
        K = self._data.n_classes
        building = self.weights(K) + self.expected_model(K) if model else 0
        return max(self.training(K), building)

    def range_of_classes(self, n_classes: int) -> int:
        """Return what is needed to train one of several ranges of classes, certifying all of its classes at once."""
        return self.weights(n_classes) + self.blocks(n_classes) + int(self.exact(n_classes) / EXACT_SHARE)

    def widest_range(self, n_classes: int, room: int) -> int:
        """Return how many of these classes can be trained together in this many bytes; 0 if none."""
        return min(n_classes, _most_classes(self.range_of_classes, n_classes, room))

    def largest_model(self, n_classes: int) -> int:
        """Return the size of a model without zeros."""
        return self._data.store.n_features * n_classes * self._value

    def expected_model(self, n_classes: int) -> int:
        """Return the size of a model while it is assembled, with as many weights as text usually needs."""
        store = self._data.store
        nonzeros = float(np.count_nonzero(store.frequencies)) * n_classes
        if self.sparse and self._problem.separate:
            nonzeros = expected_nonzeros(store.frequencies, store.n_rows, n_classes, self._data.constant != 0)
        elif self.sparse:
            nonzeros = float(self._weights_in_use(store.frequencies, least=SUPPORT_OF_A_MODEL).sum())
        return min(self.largest_model(n_classes), int(nonzeros * (8 + self._value)))

    def certain_model(self, n_classes: int) -> int:
        """Return the size of the model if it is known in advance (no weight is 0, or zeros are stored), else 0."""
        if not self.sparse:
            return self.expected_model(n_classes)
        largest = self.largest_model(n_classes)
        return largest if largest <= SMALL_MODEL else 0

    def _weights_in_use(self, rows_of: np.ndarray, passing: float = 1, least: int = 0) -> np.ndarray:
        """Estimate how many classes of a coupled loss have weights for features that occur in this many rows."""
        support = max(least, passing * self._problem.usual_support(self._data.n_classes))
        return np.minimum(self._data.n_classes, rows_of * (1.0 + support))

    def describe(self, n_classes: int) -> str:
        """Describe what the memory is needed for."""
        lists = f" and lists of weights for {self._tails:,} rare ones" if self._tails else ""
        return (
            f"{show_size(self.weights(n_classes))} for the weights of {self._heads:,} features and {n_classes:,} "
            f"classes{lists}, {show_size(self.blocks(n_classes))} for blocks of up to {self._rows:,} rows, "
            f"{self.blocks_per_batch} at a time"
        )

    def _padded(self, n_classes: int) -> int:
        mean = not self._problem.separate
        return -(-(n_classes + mean) // LANES) * LANES

    def _variables_of_a_row(self, K: int) -> int:
        problem, value = self._problem, self._value
        if problem.kernel == "maximum_entropy":
            return 3 * K * value
        if problem.kernel == "coupled":
            return 64 * (4 + value) if self.sparse else 3 * K * (4 + value)
        return 2 * (LANES * value + 2) + K // LANES + (0 if self.sparse else 3 * K * value)


def _most_classes(size: Callable[[int], int], n_classes: int, room: int) -> int:
    """Return the largest number of classes, in whole vectors, whose size is at most `room`."""
    vectors = range(1, -(-n_classes // LANES) + 1)
    return LANES * bisect_right(vectors, room, key=lambda count: size(count * LANES))


@dataclass(frozen=True)
class Room:
    """Bytes for each need of a fit, and the number of blocks per batch."""

    lists: int
    blocks: int
    exact: int
    variables: int
    blocks_per_batch: int


def divide_memory(sizes: Sizes, *, model: bool) -> Room:
    """Divide the memory limit among the needs of the fits; raise ValueError if it is too small.

    With `model`, the weights become a model at the end, which needs memory besides them.
    """
    job = sizes.job
    limit, K = job.limit, job.data.n_classes
    needed = sizes.needed(model=model)
    if needed > limit:
        rest = "the rest for the " + ("model" if needed > sizes.training(K) else "certificate")
        raise ValueError(
            f"{show_size(limit)} of memory is not enough: the fit needs {show_size(needed)}, {sizes.describe(K)}, "
            f"{rest}; give it more memory, or convert the data again with less memory, which makes smaller blocks"
        )
    left = limit - sizes.weights(K) - sizes.decoding
    at_once = sizes.blocks_per_batch
    if job.engine.blocks_per_batch is None:
        most = min(left // 3, LARGEST_BATCH) // sizes.block(K)
        at_once = int(np.clip(most, at_once, job.data.store.n_blocks))
    left -= at_once * sizes.block(K)
    exact = sizes.exact(K)
    if exact > EXACT_SHARE * left:
        exact = sizes.exact(sizes.exact_classes(left // 2))
    blocks = sizes.decoding + at_once * sizes.block(K)
    return Room(sizes.lists(sizes.listed), blocks, exact, max(0, left - exact), at_once)


def rare_rows(job: DiskJob, fits: int = 1, *, model: bool) -> int:
    """Return the number of rows up to which a feature has a list of weights: the smallest that the memory allows.

    Lists cost time for features that many classes use, and memory for those that most classes use.
    """
    problem, K = job.problem, job.data.n_classes
    if not (problem.kernel == "coupled" and problem.sparse_weights):
        return 1
    rows = tail_rows(K, LISTED)
    best = rows, np.inf
    while True:
        sizes = Sizes(job, job.data.shape(rows), fits)
        needed = sizes.needed(model=model)
        if needed < best[1]:
            best = rows, needed
        # A certificate of all classes at once does not have to read the rows again for each range of classes.
        if max(needed, sizes.weights(K) + sizes.blocks(K) + sizes.exact(K) / EXACT_SHARE) <= job.limit:
            return rows
        rows *= 2
        if rows * (1 + PASSING * problem.usual_support(K)) > SHARE_OF_A_LIST * K:
            return best[0]
