"""One-vs-rest from disk if the weights of all classes do not fit in memory: one range of classes after another.

Classes are independent, so each range is trained to the end on all rows as if there were no other classes, and only
its nonzero weights are kept. The width of a range depends on the memory.
"""

import logging
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..data.sizes import show_size
from ..problems import Problem
from ..solvers import Certificate, Progress, Solver, SolverOptions, StopRule
from .disk import FromDisk, new_variables
from .disk_engine import DiskEngine, DiskJob
from .disk_memory import LANES, Sizes, rare_rows
from .dual_store import DualStore
from .stored_rows import StoredRows
from .streamed_weights import StreamedWeights
from .variable_ranges import gather_range

logger = logging.getLogger("manyclass")


def from_disk(job: DiskJob, variables: DualStore | None) -> Solver:
    """Create the solver of a fit from disk, which trains all classes together if their weights fit in memory."""
    if not job.problem.separate:
        return FromDisk(job, variables)
    variables = variables or new_variables(job)
    sizes = Sizes(job, job.data.shape())
    return one_range(job, variables) if sizes.all_at_once() else ClassRanges(job, variables, sizes)


def one_range(job: DiskJob, variables: DualStore) -> FromDisk:
    """Create the solver for the classes of a one-vs-rest job, from variables stored in any ranges."""
    gather_range(variables, job.data, job.dtype)
    return FromDisk(job, variables)


def least_memory(problem: Problem, data: StoredRows, dtype: np.dtype) -> int:
    """Return the smallest memory limit in bytes for a fit on the rows of a store, with weights of this type."""
    job, K = DiskJob(problem, data, DiskEngine(memory=1), SolverOptions(dtype=dtype)), data.n_classes
    sizes = Sizes(job, data.shape(rare_rows(job, model=True)))
    if not problem.separate:
        return sizes.needed(model=True)
    at_once = max(sizes.training(K), sizes.weights(K) + sizes.largest_model(K))
    model = max(sizes.certain_model(K), sizes.expected_model(K))
    return min(at_once, model + sizes.range_of_classes(min(K, LANES)))


class ClassRanges(Solver):
    """Trains one range of classes after another.

    The dual variables of finished ranges are kept if the job asks for them or they have a lasting folder.
    """

    by_classes = True

    def __init__(self, job: DiskJob, variables: DualStore, sizes: Sizes):
        self._job, self._variables = job, variables
        self._sizes, self._K, self._limit = sizes, job.data.n_classes, job.limit
        self._model = StreamedWeights(job.data.shape(), job.dtype)
        self._done = 0  # classes
        self._next()  # raises ValueError if there is no room for any class
        self._now: FromDisk | None = None
        self._classes = (0, 0)  # current or last range
        self._found: list[Certificate] = []  # of finished ranges
        self._passes = 0.0
        self._total_C = np.nan
        self._memory: dict[str, int] = {}

    def advance(self, rule: StopRule) -> Progress:
        if self._now is None:
            self._begin_range()
        assert self._now is not None
        seen = self._now.advance(rule)
        self._passes = max(self._passes, seen.epochs)
        spent = seen.exhausted is not None or (seen.pass_ended and seen.epochs >= self._job.options.max_iter)
        ended = False
        if seen.ready or spent:
            found = self._now.certificate()
            ended = spent or rule.met(found)
            seen = replace(seen, primal=found.primal, dual=found.dual, violation=found.violation)
            if ended:
                self._end_range(found)
        return self._progress(seen, ended)

    def _begin_range(self) -> None:
        self._classes = self._next()
        first, behind = self._classes
        logger.info("training classes %d to %d of %d", first + 1, behind, self._K)
        data = replace(self._job.data, classes=self._classes)
        engine = replace(self._job.engine, memory=self._room)
        self._now = one_range(replace(self._job, data=data, engine=engine), self._variables)

    def _end_range(self, found: Certificate) -> None:
        now = self._add_weights()
        self._found.append(found)
        self._total_C = now.fits.total_C
        names = replace(self._job.data, classes=self._classes).block_names
        if self._job.options.keep_state or self._variables.lasting:
            self._variables.set_aside(names)
        else:
            self._variables.remove(names)

    def _add_weights(self) -> FromDisk:
        self._memory = self.memory()
        now, self._now = self._now, None
        assert now is not None
        now.fits.add_weights(self._model, self._classes[0])
        self._done = self._classes[1]
        return now

    def _progress(self, seen: Progress, ended: bool) -> Progress:
        now = [] if ended else [Certificate(seen.primal, seen.dual, seen.violation)]
        total = Certificate.total([*self._found, *now])
        left = self._K - self._done
        return Progress(
            epochs=self._passes,
            primal=total.primal,
            dual=total.dual,
            violation=total.violation,
            active=left / self._K,
            ready=left == 0,
            pass_ended=ended or seen.pass_ended,
            exhausted=seen.exhausted if left == 0 else None,
        )

    @property
    def _begun(self) -> int:
        """Number of classes that were trained or are being trained."""
        return self._done if self._now is None else self._classes[1]

    def certificate(self) -> Certificate:
        """Add up the certificates of all ranges. A class not yet started has weights 0 and dual value 0."""
        found = list(self._found)
        if self._now is not None:
            found.append(self._now.certificate())
            self._total_C = self._now.fits.total_C
        untrained = self._K - self._begun
        if untrained:
            at_zero = self._job.problem.loss_at_zero(self._K)
            found.append(Certificate(untrained * self._total_C * at_zero, 0.0, 1.0))
        return Certificate.total(found)

    def weights(self) -> np.ndarray | sp.csr_matrix:
        if self._now is not None:
            self._add_weights()
        return self._model.assemble()

    def state(self) -> DualStore:
        return self._variables

    def untrained(self) -> np.ndarray:
        return np.arange(self._begun, self._K)

    def memory(self) -> dict[str, int]:
        now = self._memory if self._now is None else self._now.memory()
        return {name: max(size, self._memory.get(name, 0)) for name, size in now.items()}

    # ---- Choice of the next range, so that it and the model so far fit in memory

    @property
    def _room(self) -> int:
        """Bytes that the model leaves; a model without zeros takes its final size from the start."""
        return self._limit - self._taken

    @property
    def _taken(self) -> int:
        return max(self._model.nbytes, self._sizes.certain_model(self._K))

    def _next(self) -> tuple[int, int]:
        """Return the first class of the next range, and the one after its last; raise ValueError if none fits."""
        left, room = self._K - self._done, self._room
        least = self._sizes.range_of_classes(min(left, LANES))
        if least > room:
            raise ValueError(self._too_little(least))
        # Leave room for the expected growth of the model.
        growth = max(0, self._expected_model() - self._taken)
        width = self._sizes.widest_range(left, room - min(growth, (room - least) // 2))
        ranges = -(-left // width)
        width = -(-left // (ranges * LANES)) * LANES
        return self._done, min(self._K, self._done + width)

    def _expected_model(self) -> int:
        if self._done == 0:
            return max(self._taken, self._sizes.expected_model(self._K))
        return self._model.expected_bytes(self._done)

    def _too_little(self, least: int) -> str:
        """Return the message for a memory limit that is too small for a range of `least` bytes."""
        model = self._expected_model()
        start = f"{show_size(self._limit)} of memory is not enough: "
        if self._done > 0:
            return (
                f"{start}the weights of {self._done:,} of {self._K:,} classes already take "
                f"{show_size(self._model.nbytes)}, and training all of them needs about {show_size(model + least)}; "
                "give the fit more memory"
            )
        at_once = min(self._K, LANES)
        what = f"{self._sizes.describe(at_once)}, {show_size(model)} for the model"
        if not self._sizes.sparse:
            what += " (with this loss no weight is 0; with 'hinge' or 'squared_hinge' most are)"
        return (
            f"{start}the fit needs {show_size(model + least)} to train {at_once} classes at a time, {what}; give it "
            "more memory, or convert the data again with less memory, which makes smaller blocks"
        )
