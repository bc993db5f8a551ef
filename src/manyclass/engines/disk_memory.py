"""How much memory training from disk may use, and for what."""

from dataclasses import dataclass

import numpy as np

from ..data.sizes import parse_size, show_size
from ..problems import Problem
from ..solvers import StreamShape
from .stored_rows import StoredRows

# Of a block: features of its rows as they are decoded, as planes before that, and laid out, twice: one is solved
# while the next is read. Then what goes with each row.
BYTES_A_NONZERO, BYTES_A_ROW = 32, 160
LANES = 16
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
        there is room for, up to a few dozen.
    rounds : int, "tol" or "auto"
        How often the rows of a block are visited before the next one: so many times; until they gain little; or as
        often as there is time for while the next block is read (then the last bits of the model depend on the speed
        of the disk).
    """

    memory: int | str = "1GB"
    rounds: int | str = 2
    together: int | None = None

    def __post_init__(self) -> None:
        parse_size(self.memory)
        if not (self.rounds in ("tol", "auto") or (isinstance(self.rounds, int) and self.rounds >= 1)):
            raise ValueError(f'rounds must be a positive number, "tol" or "auto"; got {self.rounds!r}')
        if not (self.together is None or (isinstance(self.together, int) and self.together >= 1)):
            raise ValueError(f"together must be a positive number or None, got {self.together!r}")


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
    block = nnz * BYTES_A_NONZERO + rows * (BYTES_A_ROW + _bytes_of_variables(problem, K, value))
    together = engine.together or 1
    least = heads * LANES * 8
    needed = weights + max(together * block + least, model)
    if needed > limit:
        raise ValueError(
            f"memory={show_size(limit)} is too little: {show_size(needed)} are needed, "
            f"{show_size(weights)} of them for the weights of {heads:,} features and {shape.n_classes:,} classes, "
            f"{show_size(together * block)} for blocks of up to {rows:,} rows; give more memory, or convert to "
            "smaller blocks"
        )
    left = limit - weights
    if engine.together is None:
        together = int(np.clip(min(left // 3, LARGEST_BATCH) // block, 1, len(entries)))
    left -= together * block
    exact_classes = int(min(K, max(LANES, left // 2 // max(1, heads * 8) // LANES * LANES)))
    exact = heads * exact_classes * 8
    return Room(weights, together * block, exact, max(0, left - exact), together, exact_classes)


def _bytes_of_variables(problem: Problem, K: int, value: int) -> int:
    """Of a row while it is solved."""
    if problem.kernel == "maximum_entropy":
        return 3 * K * value
    if problem.kernel == "coupled":
        return 64 * (4 + value) if problem.sparse_weights else 3 * K * (4 + value)
    return 2 * (LANES * value + 2) + K // LANES + (0 if problem.sparse_weights else 3 * K * value)
