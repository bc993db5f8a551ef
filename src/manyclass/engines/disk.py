"""Training from a store: its blocks in a new random order each pass, the next one read while this one is solved."""

import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core
from ..data.sizes import parse_size, show_size
from ..problems import Binary, Problem
from ..solvers import BinaryStream, Certificate, CoupledStream, Progress, StopRule, Stream, StreamShape, Variables
from ..solvers.solver import native
from .dual_store import DualStore
from .stored_rows import Batch, BlockReader, StoredRows

# Bytes up to which a model is dense whatever its zeros, as in feature_weights.hpp.
SMALL_MODEL = 1 << 24
# Of a block: features of its rows as they are decoded, as planes before that, and laid out, twice: one is solved
# while the next is read. Then what goes with each row.
BYTES_A_NONZERO, BYTES_A_ROW = 32, 160
LANES = 16
# Features whose weights are turned into those of the model at once.
FEATURES_AT_ONCE = 4096
# What is visited together is no more than this: reading is to go on beside solving, in many pieces.
LARGEST_BATCH = 512 << 20
# With rounds="auto": the largest number of rounds, and how the share of time spent waiting for blocks changes it.
MOST_ROUNDS = 10


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
    rounds: int | str = 1
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


class FromDisk:
    """A fit on the rows of a store; see `Solver`."""

    def __init__(
        self,
        problem: Problem,
        data: StoredRows,
        engine: DiskEngine,
        *,
        dtype: np.dtype,
        seed: int,
        threads: int,
        interrupt: Any,
        variables: DualStore | None = None,
    ):
        self._problem, self._data, self._engine = problem, data, engine
        self._dtype, self._seed, self._interrupt = np.dtype(dtype), seed, interrupt
        self._reader = BlockReader(data, self._dtype)
        self._shape = self._reader.shape
        self._room = divide_memory(data, self._shape, problem, engine, self._dtype)
        self._fit = make_stream(
            problem, self._shape, dtype=self._dtype, seed=seed, threads=threads, interrupt=interrupt
        )
        self._variables = variables or DualStore(about_variables(problem, data, self._dtype), data.store.path)
        self._variables.room = self._room.variables
        self._blocks = list(range(data.store.n_blocks))
        self._names = [re.sub(r"\.safetensors$", "", entry.file) for entry in data.store.manifest.blocks]
        self._pass = 0
        self._running: Generator[Batch] | None = None
        self._started = self._variables.empty
        self._rounds: int | str = 1 if engine.rounds == "auto" else engine.rounds
        self._singles: list[tuple[np.ndarray, ...]] = []
        self._rule = StopRule("gap", 0.0)

    # ---- One pass after the other

    def advance(self, rule: StopRule) -> Progress:
        """Visit the next block."""
        self._rule = rule
        if not self._started:
            self._started = True
            self._set_weights(project=True)
            return replace(self._fit.progress, ready=True, row_ended=False)
        if self._running is None:
            order = np.random.default_rng([self._seed, self._pass]).permutation(self._blocks)
            self._running = self._reader.batches(order.tolist(), self._room.together)
            self._left = order.size
            self._waited = self._worked = 0.0
        begin = time.perf_counter()
        batch = next(self._running)
        read = time.perf_counter()
        self._load(batch)
        self._fit.visit(rule, self._rounds, self._pass)
        self._keep(batch)
        self._waited += read - begin
        self._worked += time.perf_counter() - read
        self._left -= len(batch.blocks)
        if self._left > 0:
            return replace(self._fit.progress, ready=False, row_ended=False)
        self._running = None
        self._pass += 1
        self._fit.end_pass(rule)
        if self._engine.rounds == "auto":
            self._choose_rounds()
        return self._fit.progress

    def _choose_rounds(self) -> None:
        """More rounds where the time went into waiting, fewer where it did not."""
        assert isinstance(self._rounds, int)
        a_round = self._worked / self._rounds
        wanted = round((self._waited + self._worked) / max(a_round, 1e-9))
        self._rounds = int(np.clip(wanted, 1, MOST_ROUNDS))

    def _load(self, batch: Batch, *, project: bool = False) -> None:
        stored = [self._variables.get(self._names[number]) for number in batch.blocks]
        parts = [
            None if part is None else self._of_rows(part, ids) for part, ids in zip(stored, batch.ids, strict=True)
        ]
        self._fit.load(batch.rows, parts, project=project)

    def _keep(self, batch: Batch) -> None:
        for number, ids, part in zip(batch.blocks, batch.ids, self._fit.variables(), strict=True):
            self._variables.put(self._names[number], ids, part)

    def _of_rows(self, stored: Variables, ids: np.ndarray) -> Variables:
        """The variables of the rows that are still there."""
        variables = {name: array for name, array in stored.items() if name != "ids"}
        if np.array_equal(stored["ids"], ids):
            return variables
        kept = np.flatnonzero(np.isin(stored["ids"], ids))
        if kept.size != ids.size:
            raise ValueError("variables of other rows than those of their block; remove them to begin anew")
        return self._fit.only_rows(variables, kept, stored["ids"].size)

    def _batches(self) -> Iterator[Batch]:
        """All blocks in their order."""
        with closing(self._reader.batches(self._blocks, self._room.together)) as batches:
            yield from batches

    # ---- Certificate and model

    def _set_weights(self, *, project: bool = False) -> None:
        """The weights of the dual variables, in float64, for as many classes at a time as there is room for."""
        self._fit.begin_certificate()
        for low in range(0, self._shape.n_classes, self._room.exact_classes):
            high = min(self._shape.n_classes, low + self._room.exact_classes)
            exact = native(core, "ExactWeights", self._dtype)(
                self._shape.places.heads, low, high, self._shape.n_classes
            )
            for batch in self._batches():
                self._load(batch, project=project)
                if project:
                    self._keep(batch)
                self._fit.add_to(exact)
            self._fit.set_weights(exact)
            project = False

    def certificate(self) -> Certificate:
        """Certify the variables of all blocks."""
        if self._running is not None:  # in the middle of a pass
            self._running.close()
            self._running = None
        self._set_weights()
        self._singles = []
        has_singles = bool((self._data.store.frequencies == 1).any())
        for batch in self._batches():
            self._load(batch)
            self._fit.measure()
            if has_singles:
                self._singles.append(self._fit.single_weights())
        self._variables.flush()
        return self._fit.certificate(self._rule)

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, K)` of the last certificate."""
        features, K = self._shape.places.features, self._shape.n_classes
        heads = np.full(features, -1, np.int64)
        heads[self._shape.places.head_features()] = np.arange(self._shape.places.heads)
        singles = _join_singles(self._singles, features)
        self._singles = []
        counts = np.zeros(features, np.int64)
        counts[singles.features] = np.diff(singles.indptr)
        for low, found in self._head_weights(heads):
            in_head = np.flatnonzero(heads[low : low + FEATURES_AT_ONCE] >= 0) + low
            counts[in_head] = np.count_nonzero(found, axis=1)
        dense = features * K * self._dtype.itemsize
        nonzeros = int(counts.sum())
        if dense <= SMALL_MODEL or nonzeros * (4 + self._dtype.itemsize) >= dense:
            return self._dense_model(heads, singles)
        return self._sparse_model(heads, singles, counts)

    def _head_weights(self, heads: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        for low in range(0, heads.size, FEATURES_AT_ONCE):
            chosen = heads[low : low + FEATURES_AT_ONCE]
            yield low, self._fit.weights_of(chosen[chosen >= 0])

    def _dense_model(self, heads: np.ndarray, singles: "_Singles") -> np.ndarray:
        weights = np.zeros((heads.size, self._shape.n_classes), self._dtype)
        for low, found in self._head_weights(heads):
            part = weights[low : low + FEATURES_AT_ONCE]
            part[heads[low : low + FEATURES_AT_ONCE] >= 0] = found
        row = np.repeat(singles.features, np.diff(singles.indptr))
        weights[row, singles.classes] = singles.values
        return weights

    def _sparse_model(self, heads: np.ndarray, singles: "_Singles", counts: np.ndarray) -> sp.csr_matrix:
        indptr = np.concatenate([[0], np.cumsum(counts)])
        classes, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self._dtype)
        for low, found in self._head_weights(heads):
            in_head = np.flatnonzero(heads[low : low + FEATURES_AT_ONCE] >= 0) + low
            row, column = np.nonzero(found)
            place = indptr[in_head][row] + np.arange(row.size) - np.searchsorted(row, row)
            classes[place], values[place] = column, found[row, column]
        lengths = np.diff(singles.indptr)
        place = np.repeat(indptr[singles.features] - singles.indptr[:-1], lengths) + np.arange(singles.values.size)
        classes[place], values[place] = singles.classes, singles.values
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        weights = sp.csr_matrix((heads.size, self._shape.n_classes), dtype=self._dtype)
        weights.data, weights.indices, weights.indptr = values, classes, indptr
        return weights

    # ---- The rest of what a solver can do

    def state(self) -> DualStore:
        """The dual variables of all blocks, to go on from."""
        return self._variables

    def untrained(self) -> np.ndarray:
        """Every class takes part in the first pass."""
        return np.empty(0, np.int64)

    def memory(self) -> dict[str, int]:
        """Bytes of blocks, weights and dual variables in memory."""
        return {
            "data": self._room.blocks,
            "weights": self._fit.weight_bytes + self._room.exact,
            "dual_variables": self._variables.nbytes,
        }


def make_stream(
    problem: Problem, shape: StreamShape, *, dtype: np.dtype, seed: int, threads: int, interrupt: Any
) -> Stream:
    """The solver of a loss for rows that come block by block."""
    kind: Callable[..., Stream] = BinaryStream if isinstance(problem, Binary) else CoupledStream
    return kind(problem, shape, dtype=dtype, seed=seed, threads=threads, interrupt=interrupt)


def about_variables(problem: Problem, data: StoredRows, dtype: np.dtype) -> dict[str, Any]:
    """What dual variables belong to; those of other penalties can be gone on from."""
    return {
        "loss": problem.name,
        "gamma": getattr(problem, "gamma", None),
        "dtype": np.dtype(dtype).name,
        "classes": [str(label) for label in data.store.classes.tolist()],
    }


@dataclass(frozen=True)
class _Singles:
    """Weights of features that only one row has, by ascending features."""

    features: np.ndarray
    indptr: np.ndarray
    classes: np.ndarray
    values: np.ndarray


def _join_singles(parts: list[tuple[np.ndarray, ...]], features: int) -> _Singles:
    if not parts:
        none = np.empty(0, np.int64)
        return _Singles(none, np.zeros(1, np.int64), none, none.astype(np.float32))
    found = np.concatenate([part[0] for part in parts])
    lengths = np.concatenate([np.diff(part[1]) for part in parts])
    matrix = sp.csr_matrix(
        (
            np.concatenate([part[3] for part in parts]),
            np.concatenate([part[2] for part in parts]),
            np.concatenate([[0], np.cumsum(lengths)]),
        )
    )
    order = np.argsort(found)
    matrix = matrix[order]
    return _Singles(found[order], matrix.indptr.astype(np.int64), matrix.indices, matrix.data)
