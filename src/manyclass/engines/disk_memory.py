"""How much memory training from disk needs, and what it is used for."""

from dataclasses import dataclass

import numpy as np

from ..data.sizes import parse_size, show_size
from ..problems import Binary, Problem
from ..solvers import StreamShape
from ..solvers.estimate import expected_nonzeros
from ..solvers.layout import LISTED, tail_rows
from .disk_engine import DiskEngine
from .stored_rows import BlockReader, StoredRows
from .streamed_weights import SMALL_MODEL

# What goes with each row, besides its features and variables.
BYTES_A_ROW = 160
LANES = 16
# What is visited together is no more than this: reading is to go on beside solving, in many pieces.
LARGEST_BATCH = 512 << 20
# Of what blocks and weights leave, the most that weights in float64 take at once; the rest is for dual variables.
EXACT_SHARE = 3 / 4
# A list of weights has places for a quarter more of them, and takes so many bytes besides.
LIST_GROWTH, BYTES_A_LIST = 1.25, 32
# A list takes more than twice the memory of as many dense weights: it pays where at most this share of them is used.
SHARE_OF_A_LIST = 0.4
# Classes that a row has used while it is trained, over those that it uses in the end: their weights stay in lists
# until all weights are computed anew.
PASSING = 3
# Classes that a row uses when a model is made, for estimates of its size that are rather too large.
SUPPORT_OF_A_MODEL = 30
# Of a range of classes, weights in lists over the average: some classes have many more rows than others.
SKEW = 2


class Sizes:
    """Bytes of what fits of one loss on the rows of a store hold.

    Parameters
    ----------
    data : StoredRows
    shape : StreamShape
    problem : Problem
    engine : DiskEngine
    dtype : numpy dtype
        Of the weights.
    fits : int
        How many there are at the same time.

    Attributes
    ----------
    sparse : bool
        Whether most weights are 0.
    listed : float
        How many weights are in lists, as far as that is known.
    decoding : int
        Of the block that is being read.
    together : int
        How many blocks are visited together, at least.
    """

    def __init__(
        self,
        data: StoredRows,
        shape: StreamShape,
        problem: Problem,
        engine: DiskEngine,
        dtype: np.dtype,
        fits: int = 1,
    ):
        self._data, self.problem, self._engine, self._fits = data, problem, engine, fits
        self.sparse = problem.sparse_weights
        self._value = np.dtype(dtype).itemsize
        self._heads, self._tails = shape.places.heads, shape.places.tails
        rare = data.store.frequencies[shape.places.tail_features()]
        self.listed = float(self._weights_in_use(rare, PASSING).sum())
        entries = data.store.manifest.blocks
        self._rows, self._nnz = max(entry.rows for entry in entries), max(entry.nnz for entry in entries)
        # A block is decoded from its planes, into memory that the last one has left.
        self.decoding = self._nnz * (2 * (4 + data.store.dtype.itemsize) + 8)
        # A block that is alone fits what all rows have in common (such as the constant feature) in its own way, and
        # the next one in another: such fits may take hundreds of passes.
        self.together = engine.together or min(2, len(entries))

    def weights(self, n_classes: int) -> int:
        """Of weights while they are trained."""
        return self._fits * self._heads * self._padded(n_classes) * self._value + self.lists()

    def lists(self, listed: float | None = None) -> int:
        """Of those among them that are in lists, or of so many of them."""
        many = self.listed if listed is None else listed
        return self._fits * (self._tails * BYTES_A_LIST + int(many * LIST_GROWTH * (4 + self._value)))

    def exact(self, n_classes: int) -> int:
        """Of weights in float64, for a certificate."""
        dense = self._heads * -(-n_classes // LANES) * LANES * 8
        listed = self.listed * min(1.0, SKEW * n_classes / self._data.n_classes) * LIST_GROWTH * (4 + 8)
        return self._fits * (dense + self._tails * BYTES_A_LIST + int(listed))

    def exact_classes(self, room: int) -> int:
        """How many classes can have weights in float64 at once."""
        vectors = -(-self._data.n_classes // LANES)
        few = 1
        while few < vectors:
            middle = (few + vectors + 1) // 2
            if self.exact(middle * LANES) <= room:
                few = middle
            else:
                vectors = middle - 1
        return few * LANES

    def block(self, n_classes: int) -> int:
        """Of a block while it is visited.

        Its features are there twice, since a batch is solved while the next one is read.
        """
        K = self._padded(n_classes)
        block = self._nnz * 2 * (4 + self._value) + self._rows * (BYTES_A_ROW + self._variables_of_a_row(K))
        if self._engine.update == "block":  # the responses of all rows; their sum takes the room of exact weights
            block += self._rows * 2 * LANES * self._value
        return block

    def blocks(self, n_classes: int) -> int:
        """Of blocks while they are read and visited, as few as possible at a time."""
        return self.decoding + self.together * self.block(n_classes)

    def training(self, n_classes: int) -> int:
        """Of all that is needed to train so many classes together, at least."""
        return self.weights(n_classes) + self.blocks(n_classes) + self.exact(LANES)

    def needed(self, *, model: bool) -> int:
        """Of all that is needed to train all classes together, and, where that is wanted, to make the model."""
        K = self._data.n_classes
        making = self.weights(K) + self.expected_model(K) if model else 0
        return max(self.training(K), making)

    def range_of_classes(self, n_classes: int) -> int:
        """The same where other classes are trained before and after: all of them are certified in one go."""
        return self.weights(n_classes) + self.blocks(n_classes) + int(self.exact(n_classes) / EXACT_SHARE)

    def largest_model(self, n_classes: int) -> int:
        """Of a model without any zeros."""
        return self._data.store.n_features * n_classes * self._value

    def expected_model(self, n_classes: int) -> int:
        """Of a model while it is put together, with as many weights as text usually needs."""
        store = self._data.store
        nonzeros = float(np.count_nonzero(store.frequencies)) * n_classes
        if isinstance(self.problem, Binary) and self.problem.sparse_weights:
            nonzeros = expected_nonzeros(store.frequencies, store.n_rows, n_classes, self._data.constant != 0)
        elif self.problem.sparse_weights:
            nonzeros = float(self._weights_in_use(store.frequencies, least=SUPPORT_OF_A_MODEL).sum())
        return min(self.largest_model(n_classes), int(nonzeros * (8 + self._value)))

    def certain_model(self, n_classes: int) -> int:
        """Of a model as far as that is known beforehand: where no weight is 0, or the zeros are stored as well."""
        largest = self.largest_model(n_classes)
        if self.problem.sparse_weights:
            return largest if largest <= SMALL_MODEL else 0
        return self.expected_model(n_classes)

    def _weights_in_use(self, rows_of: np.ndarray, passing: float = 1, least: int = 0) -> np.ndarray:
        """How many classes of a coupled loss have weights for features of so many rows, usually."""
        support = max(least, passing * self.problem.usual_support(self._data.n_classes))
        return np.minimum(self._data.n_classes, rows_of * (1.0 + support))

    def describe(self, n_classes: int) -> str:
        """What the memory is needed for."""
        lists = f" and lists of weights of {self._tails:,} rare ones" if self._tails else ""
        return (
            f"{show_size(self.weights(n_classes))} for the weights of {self._heads:,} features and {n_classes:,} "
            f"classes{lists}, {show_size(self.blocks(n_classes))} for blocks of up to {self._rows:,} rows, "
            f"{self.together} at a time"
        )

    def _padded(self, n_classes: int) -> int:
        mean = not isinstance(self.problem, Binary)
        return -(-(n_classes + mean) // LANES) * LANES

    def _variables_of_a_row(self, K: int) -> int:
        """While it is visited."""
        problem, value = self.problem, self._value
        if problem.kernel == "maximum_entropy":
            return 3 * K * value
        if problem.kernel == "coupled":
            return 64 * (4 + value) if problem.sparse_weights else 3 * K * (4 + value)
        return 2 * (LANES * value + 2) + K // LANES + (0 if problem.sparse_weights else 3 * K * value)


@dataclass(frozen=True)
class Room:
    """How the memory of a fit is divided.

    Attributes
    ----------
    weights, lists, blocks, exact, variables : int
        Bytes of the weights, of the lists among them, of blocks while they are read and solved, of weights in float64
        for certificates, and of dual variables.
    together : int
        How many blocks are visited together.
    """

    weights: int
    lists: int
    blocks: int
    exact: int
    variables: int
    together: int


def divide_memory(sizes: Sizes, data: StoredRows, engine: DiskEngine, *, model: bool) -> Room:
    """Divide the memory among what a fit, or several at once, need.

    Parameters
    ----------
    sizes : Sizes
    data : StoredRows
    engine : DiskEngine
    model : bool
        Whether the weights are to become a model at the end, beside themselves.

    Raises
    ------
    ValueError
        If it is too little, with what is needed.
    """
    limit, K = parse_size(engine.memory), data.n_classes
    needed = sizes.needed(model=model)
    if needed > limit:
        rest = "the rest for the " + ("model" if needed > sizes.training(K) else "certificate")
        raise ValueError(
            f"{show_size(limit)} of memory are too little: {show_size(needed)} are needed, {sizes.describe(K)}, "
            f"{rest}; give more memory, or convert with less, to smaller blocks"
        )
    left = limit - sizes.weights(K) - sizes.decoding
    together, entries = sizes.together, len(data.store.manifest.blocks)
    if engine.together is None:
        together = int(np.clip(min(left // 3, LARGEST_BATCH) // sizes.block(K), together, entries))
    left -= together * sizes.block(K)
    exact = sizes.exact(K)
    if exact > EXACT_SHARE * left:
        exact = sizes.exact(sizes.exact_classes(left // 2))
    blocks = sizes.decoding + together * sizes.block(K)
    return Room(sizes.weights(K), sizes.lists(), blocks, exact, max(0, left - exact), together)


def rare_rows(
    data: StoredRows, problem: Problem, engine: DiskEngine, dtype: np.dtype, fits: int = 1, *, model: bool
) -> int:
    """Features in at most how many rows have lists of weights: as few as possible, within the memory.

    Lists cost time where many classes use a feature, and memory where most of them do.
    """
    if not (problem.kernel == "coupled" and problem.sparse_weights):
        return 1
    limit, K = parse_size(engine.memory), data.n_classes
    rows = tail_rows(K, LISTED)
    best = rows, np.inf
    while True:
        sizes = Sizes(data, BlockReader(data, dtype, tail_rows=rows).shape, problem, engine, dtype, fits)
        needed = sizes.needed(model=model)
        if needed < best[1]:
            best = rows, needed
        # With room for a certificate of all classes at once it need not be read once more for each range of them.
        if max(needed, sizes.weights(K) + sizes.blocks(K) + sizes.exact(K) / EXACT_SHARE) <= limit:
            return rows
        rows *= 2
        if rows * (1 + PASSING * problem.usual_support(K)) > SHARE_OF_A_LIST * K:
            return best[0]


def all_at_once(sizes: Sizes, n_classes: int, limit: int) -> bool:
    """Whether all classes can be trained together, whatever the size of the model."""
    model = sizes.weights(n_classes) + sizes.largest_model(n_classes)
    return max(sizes.training(n_classes), model) <= limit


def widest_range(sizes: Sizes, n_classes: int, room: int) -> int:
    """How many classes, of so many, can be trained together; 0 if none."""
    few, many = 0, -(-n_classes // LANES)
    while few < many:
        middle = (few + many + 1) // 2
        if sizes.range_of_classes(middle * LANES) <= room:
            few = middle
        else:
            many = middle - 1
    return min(n_classes, few * LANES)
