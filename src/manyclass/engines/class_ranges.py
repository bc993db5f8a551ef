"""One-vs-rest from disk where the weights of all classes do not fit: one range of classes after another.

Classes share nothing, so each range is trained to its end on all rows, as if there were no other classes, and leaves
the columns of its weights that are not 0. How many classes a range has follows from the memory.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.sizes import parse_size, show_size
from ..problems import Binary, Problem
from ..solvers import Certificate, Progress, Solver, SolverOptions, StopRule
from .disk import FromDisk, about_variables, names_of
from .disk_engine import DiskEngine
from .disk_memory import LANES, Sizes, all_at_once, rare_rows, widest_range
from .dual_store import DualStore
from .stored_rows import BlockReader, StoredRows
from .streamed_weights import StreamedWeights
from .variable_ranges import gather_range

logger = logging.getLogger("manyclass")


def from_disk(
    problem: Problem,
    data: StoredRows,
    engine: DiskEngine,
    options: SolverOptions,
    *,
    interrupt: Any,
    variables: DualStore | None,
) -> Solver:
    """Make the solver of a fit on the rows of a store: for all classes together where their weights fit.

    Parameters
    ----------
    problem, data, engine, options, interrupt, variables
        As `FromDisk` has them.

    Raises
    ------
    ValueError
        If the memory is too little, with what is needed.
    """
    if not isinstance(problem, Binary):
        return FromDisk(problem, data, engine, options, interrupt=interrupt, variables=variables)
    dtype = options.dtype
    kept = variables or DualStore(about_variables(problem, data, dtype), data.store.path)

    def train(classes: StoredRows, memory: DiskEngine) -> FromDisk:
        gather_range(kept, classes, dtype)
        return FromDisk(problem, classes, memory, options, interrupt=interrupt, variables=kept)

    shape = BlockReader(data, dtype).shape
    sizes = Sizes(data, shape, problem, engine, dtype)
    if all_at_once(sizes, data.n_classes, parse_size(engine.memory)):
        return train(data, engine)
    model = StreamedWeights(shape.places, data.n_classes, dtype)
    ranges = Ranges(sizes, model, data.n_classes, parse_size(engine.memory))
    keep = options.keep_state or kept.lasting
    return ClassRanges(ranges, train, data, engine, kept, options.max_iter, keep=keep)


def least_memory(problem: Problem, data: StoredRows, dtype: np.dtype) -> int:
    """Bytes of memory that a fit on the rows of a store asks for, at least.

    Parameters
    ----------
    problem, data, dtype
        As `FromDisk` has them.
    """
    K, engine = data.n_classes, DiskEngine(memory=1)
    rare = rare_rows(data, problem, engine, dtype, model=True)
    sizes = Sizes(data, BlockReader(data, dtype, tail_rows=rare).shape, problem, engine, dtype)
    if not isinstance(problem, Binary):
        return sizes.needed(model=True)
    together = max(sizes.training(K), sizes.weights(K) + sizes.largest_model(K))
    model = max(sizes.certain_model(K), sizes.expected_model(K))
    return min(together, model + sizes.range_of_classes(min(K, LANES)))


class Ranges:
    """Which classes are trained next, so that they and the model so far have room.

    Parameters
    ----------
    sizes : Sizes
        Of a fit of this kind.
    model : StreamedWeights
        The weights of the classes that have been trained.
    n_classes, limit : int
        How many classes there are, and the bytes that all may take together.

    Raises
    ------
    ValueError
        If there is no room for any class.
    """

    def __init__(self, sizes: Sizes, model: StreamedWeights, n_classes: int, limit: int):
        self._sizes, self.model, self.n_classes, self.limit = sizes, model, n_classes, limit
        self.done = 0
        self.next()

    @property
    def loss_at_zero(self) -> float:
        """Of a class whose weights are all 0, for C = 1."""
        return self._sizes.problem.loss_at_zero(self.n_classes)

    @property
    def taken(self) -> int:
        """Bytes of the model so far; of one without zeros all that it will take."""
        return max(self.model.nbytes, self._sizes.certain_model(self.n_classes))

    def next(self) -> tuple[int, int]:
        """The next range: its first class, and the one behind its last.

        Raises
        ------
        ValueError
            If there is no room for it, with what is needed.
        """
        left, room = self.n_classes - self.done, self.limit - self.taken
        least = self._sizes.range_of_classes(min(left, LANES))
        if least > room:
            raise ValueError(self._too_little(least))
        # Room for what the model has yet to get, as far as that can be foreseen.
        growth = max(0, self._expected_model() - self.taken)
        width = widest_range(self._sizes, left, room - min(growth, (room - least) // 2))
        ranges = -(-left // width)
        width = -(-left // (ranges * LANES)) * LANES
        return self.done, min(self.n_classes, self.done + width)

    def _expected_model(self) -> int:
        if self.done == 0:
            return max(self.taken, self._sizes.expected_model(self.n_classes))
        return self.model.expected_bytes(self.done)

    def _too_little(self, least: int) -> str:
        """What to say if there is no room for a range, which takes so many bytes at least."""
        model = self._expected_model()
        start = f"{show_size(self.limit)} of memory are too little: "
        if self.done > 0:
            return (
                f"{start}the weights of {self.done:,} of {self.n_classes:,} classes already take "
                f"{show_size(self.model.nbytes)}, and about {show_size(model + least)} are needed to train all of "
                "them; give more memory"
            )
        at_once = min(self.n_classes, LANES)
        what = f"{self._sizes.describe(at_once)}, {show_size(model)} for the model"
        if not self._sizes.sparse:
            what += " (with this loss no weight is 0; with 'hinge' or 'squared_hinge' most are)"
        return (
            f"{start}{show_size(model + least)} are needed to train {at_once} classes at a time, {what}; give more "
            "memory, or convert with less, to smaller blocks"
        )


class ClassRanges(Solver):
    """One range of classes after another; see `Solver`.

    Parameters
    ----------
    ranges : Ranges
    train : callable
        Makes the solver for the classes of some `StoredRows`, with the memory of a `DiskEngine`.
    data, engine, variables
        As `FromDisk` has them.
    max_iter : int
        Passes for each range, at most.
    keep : bool
        Whether dual variables of ranges that have ended are wanted.
    """

    def __init__(
        self,
        ranges: Ranges,
        train: Callable[[StoredRows, DiskEngine], FromDisk],
        data: StoredRows,
        engine: DiskEngine,
        variables: DualStore,
        max_iter: int,
        *,
        keep: bool,
    ):
        self._ranges, self._train, self._data, self._engine = ranges, train, data, engine
        self._variables, self._max_iter, self._keep = variables, max_iter, keep
        self._now: FromDisk | None = None
        self._classes = (0, 0)  # that are trained now, or were last
        self._found: list[Certificate] = []  # of ranges that have ended
        self._epochs = 0.0
        self._total_C = np.nan
        self._memory: dict[str, int] = {}

    def advance(self, rule: StopRule) -> Progress:
        """Visit the next blocks for the range of classes under way."""
        if self._now is None:
            self._begin_range()
        assert self._now is not None
        seen = self._now.advance(rule)
        self._epochs = max(self._epochs, seen.epochs)
        spent = seen.exhausted is not None or (seen.pass_ended and seen.epochs >= self._max_iter)
        ended = False
        if seen.ready or spent:
            found = self._now.certificate()
            ended = spent or rule.met(found)
            seen = replace(seen, primal=found.primal, dual=found.dual, violation=found.violation)
            if ended:
                self._end_range(found)
        return self._progress(seen, ended)

    def _begin_range(self) -> None:
        self._classes = self._ranges.next()
        first, behind = self._classes
        logger.info("training classes %d to %d of %d", first + 1, behind, self._ranges.n_classes)
        memory = replace(self._engine, memory=self._ranges.limit - self._ranges.taken)
        self._now = self._train(replace(self._data, classes=self._classes), memory)

    def _end_range(self, found: Certificate) -> None:
        now = self._add_weights()
        self._found.append(found)
        self._total_C = now.total_C
        names = names_of(replace(self._data, classes=self._classes))
        if self._keep:
            self._variables.set_aside(names)
        else:
            self._variables.remove(names)

    def _add_weights(self) -> FromDisk:
        now, self._now = self._now, None
        assert now is not None
        memory = now.memory()
        self._memory = {name: max(size, self._memory.get(name, 0)) for name, size in memory.items()}
        now.add_weights(self._ranges.model, self._classes[0])
        self._ranges.done = self._classes[1]
        return now

    def _progress(self, seen: Progress, ended: bool) -> Progress:
        """Where all classes stand that were begun."""
        found = [*self._found] if ended else [*self._found, Certificate(seen.primal, seen.dual, seen.violation)]
        total = _sum(found)
        left = self._ranges.n_classes - self._ranges.done
        return Progress(
            epochs=self._epochs,
            primal=total.primal,
            dual=total.dual,
            violation=total.violation,
            # Less than 1: how far the fit is follows from the classes that are left.
            active=min(left / self._ranges.n_classes, 1 - 1 / self._ranges.n_classes),
            ready=left == 0,
            pass_ended=ended or seen.pass_ended,
            exhausted=seen.exhausted if left == 0 else None,
        )

    def certificate(self) -> Certificate:
        """Add up those of all ranges. A class that was not begun has weights 0 and dual value 0."""
        found = list(self._found)
        behind = self._ranges.done
        if self._now is not None:
            found.append(self._now.certificate())
            self._total_C = self._now.total_C
            behind = self._classes[1]
        untrained = self._ranges.n_classes - behind
        if untrained:
            found.append(Certificate(untrained * self._total_C * self._ranges.loss_at_zero, 0.0, 1.0))
        return _sum(found)

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, K)` of the last certificates."""
        if self._now is not None:
            self._add_weights()
        return self._ranges.model.assemble()

    def state(self) -> DualStore:
        """The dual variables of all blocks, to go on from."""
        return self._variables

    def untrained(self) -> np.ndarray:
        """The classes of ranges that were not begun."""
        behind = self._ranges.done if self._now is None else self._classes[1]
        return np.arange(behind, self._ranges.n_classes)

    def memory(self) -> dict[str, int]:
        """Bytes of blocks, weights and dual variables in memory, of ranges where they were largest."""
        now = {} if self._now is None else self._now.memory()
        return {name: max(size, self._memory.get(name, 0)) for name, size in (now or self._memory).items()}


def _sum(found: list[Certificate]) -> Certificate:
    return Certificate(
        math.fsum(one.primal for one in found),
        math.fsum(one.dual for one in found),
        max((one.violation for one in found), default=0.0),
    )
