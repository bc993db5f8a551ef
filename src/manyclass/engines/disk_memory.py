"""How much memory training from disk may use, and for what."""

from dataclasses import dataclass

import numpy as np

from ..data.sizes import parse_size, show_size
from ..problems import Problem
from ..solvers import StreamShape
from .stored_rows import StoredRows

# What goes with each row, besides its features and variables.
BYTES_A_ROW = 160
LANES = 16
# How to train, and the losses that are trained so (None: all of them).
METHODS: dict[str, tuple[str, ...] | None] = {
    "dual": None,
    "pegasos": ("hinge", "squared_hinge", "logistic"),
    "streamsvm": ("squared_hinge",),
}
# A share of all blocks from which on rows that are visited together gain from a second round, without the others.
LARGE_SHARE = 1 / 10
# What is visited together is no more than this: reading is to go on beside solving, in many pieces.
LARGEST_BATCH = 512 << 20


@dataclass(frozen=True)
class DiskEngine:
    """How to train from a store.

    Parameters
    ----------
    memory : int or str
        What blocks, weights, dual variables and buffers may take together, such as "512MB". A fit that needs more
        is refused at its start.
    together : int, optional
        How many blocks are visited together, their rows mixed: others in every pass. Blocks that are always visited
        alone fit what they have in common each in their own way, and take many more passes. None for as many as
        there is room for, two at least.
    rounds : int, "tol" or "auto", optional
        How often the rows of a block are visited before the next one: so many times; until they gain little; or as
        often as there is time for while the next block is read (then the last bits of the model depend on the speed
        of the disk). None for 2 where what is visited together is a tenth of all blocks, else 1. The methods other
        than "dual" make one visit.
    method : "dual", "pegasos" or "streamsvm"
        Coordinate ascent on the dual, for all losses. The other two are there to compare with, for one-vs-rest:
        stochastic subgradients ("hinge", "squared_hinge", "logistic"), and a single pass that grows a ball around
        the rows ("squared_hinge"), after which the fit ends with whatever gap it has.
    update : "row" or "block"
        Of "pegasos": whether the weights change with each row, or once for all rows that are visited together.
    """

    memory: int | str = "1GB"
    rounds: int | str | None = None
    together: int | None = None
    method: str = "dual"
    update: str = "row"

    def __post_init__(self) -> None:
        parse_size(self.memory)
        if not (self.rounds in (None, "tol", "auto") or (isinstance(self.rounds, int) and self.rounds >= 1)):
            raise ValueError(f'rounds must be a positive number, "tol", "auto" or None; got {self.rounds!r}')
        if not (self.together is None or (isinstance(self.together, int) and self.together >= 1)):
            raise ValueError(f"together must be a positive number or None, got {self.together!r}")
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {self.method!r}")
        if self.update not in ("row", "block"):
            raise ValueError(f"update must be 'row' or 'block', got {self.update!r}")
        if self.update != "row" and self.method != "pegasos":
            raise ValueError(f"update={self.update!r} is for method='pegasos', not for {self.method!r}; leave it out")
        if self.method != "dual" and self.rounds not in (None, 1):
            raise ValueError(f"method={self.method!r} visits a row once a pass; leave out rounds={self.rounds!r}")

    def first_rounds(self, share: float) -> int | str:
        """The rounds of the first pass, where so large a share of all blocks is visited together."""
        if self.rounds is None:
            return 2 if self.method == "dual" and share >= LARGE_SHARE else 1
        return 1 if self.rounds == "auto" else self.rounds

    def check_loss(self, problem: Problem) -> None:
        """Say no to a loss that the method does not train.

        Raises
        ------
        ValueError
            With what to do instead.
        """
        trained = METHODS[self.method]
        if trained is not None and problem.name not in trained:
            names = " or ".join(map(repr, trained))
            raise ValueError(
                f"method={self.method!r} trains the one-vs-rest losses {names} only, not {problem.name!r}; "
                "leave out method, or choose another loss"
            )


@dataclass(frozen=True)
class Room:
    """How the memory of a fit is divided.

    Attributes
    ----------
    weights, blocks, exact, variables : int
        Bytes of the weights, of blocks while they are read and solved, of weights in float64 for certificates, and
        of dual variables.
    together : int
        How many blocks are visited together.
    exact_classes : int
        How many classes have weights in float64 at a time.
    """

    weights: int
    blocks: int
    exact: int
    variables: int
    together: int
    exact_classes: int


def divide_memory(
    data: StoredRows, shape: StreamShape, problem: Problem, engine: DiskEngine, dtype: np.dtype, fits: int = 1
) -> Room:
    """Divide the memory among what a fit, or several at once, need.

    Raises
    ------
    ValueError
        If it is too little, with what is needed.
    """
    limit = parse_size(engine.memory)
    value = np.dtype(dtype).itemsize
    K = -(-(shape.n_classes + 1) // LANES) * LANES
    heads = shape.places.heads
    weights = fits * heads * K * value
    model = fits * data.store.n_features * shape.n_classes * value
    entries = data.store.manifest.blocks
    rows, nnz = max(entry.rows for entry in entries), max(entry.nnz for entry in entries)
    # Features are laid out twice, since a batch is solved while the next one is read; beside them one block is
    # decoded from its planes, into memory that the last one has left.
    block = nnz * 2 * (4 + value) + rows * (BYTES_A_ROW + _bytes_of_variables(problem, K, value))
    decoding = nnz * (2 * (4 + data.store.dtype.itemsize) + 8)
    if engine.update == "block":  # the responses of all rows; their sum takes the room of exact weights
        block += rows * 2 * LANES * value
    # A block that is alone fits what all rows have in common (such as the constant feature) in its own way, and the
    # next one in another: such fits may take hundreds of passes.
    together = engine.together or min(2, len(entries))
    least = heads * LANES * 8
    needed = weights + max(decoding + together * block + least, model)
    if needed > limit:
        raise ValueError(
            f"memory={show_size(limit)} is too little: {show_size(needed)} are needed, "
            f"{show_size(weights)} of them for the weights of {heads:,} features and {shape.n_classes:,} classes, "
            f"{show_size(decoding + together * block)} for blocks of up to {rows:,} rows, {together} at a time, the "
            "rest for the certificate or the model; give more memory, or convert with less, to smaller blocks"
        )
    left = limit - weights - decoding
    if engine.together is None:
        together = int(np.clip(min(left // 3, LARGEST_BATCH) // block, together, len(entries)))
    left -= together * block
    exact_classes = int(min(K, max(LANES, left // 2 // max(1, heads * 8) // LANES * LANES)))
    exact = heads * exact_classes * 8
    return Room(weights, decoding + together * block, exact, max(0, left - exact), together, exact_classes)


def _bytes_of_variables(problem: Problem, K: int, value: int) -> int:
    """Of a row while it is solved."""
    if problem.kernel == "maximum_entropy":
        return 3 * K * value
    if problem.kernel == "coupled":
        return 64 * (4 + value) if problem.sparse_weights else 3 * K * (4 + value)
    return 2 * (LANES * value + 2) + K // LANES + (0 if problem.sparse_weights else 3 * K * value)
