"""Blocks of classes trained by joblib's workers: threads, processes, or the machines of a Dask or Ray cluster.

Blocks share nothing but the rows. They are divided into several tasks per worker, and each result is imported when it
arrives. Rows, labels and penalties are one argument, the same object for all tasks: Dask sends it to a worker once,
and processes on this machine map its arrays. A worker lays out the rows for its first task and keeps the layout until
it gets a task of another fit.
"""

import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from .._native import core
from ..peers import Peers
from ..problems import Binary, SparseBinary
from ..solvers import ElasticNetBlocks, L2Blocks, Progress, SolverOptions, StopRule, TrainingSet, blocks_of
from .options import FitOptions
from .stopping import StopAll, raising

# Enough for workers to finish at nearly the same time, however long their tasks take.
TASKS_A_WORKER = 8
# Processes on this machine map arrays of at least this size instead of receiving them.
MAPPED_BYTES = 1024


@dataclass(frozen=True, eq=False)
class Job:
    """A fit, as sent to workers."""

    token: str
    problem: Binary
    data: TrainingSet
    options: SolverOptions
    rule: StopRule

    def __sizeof__(self) -> int:
        # joblib uses this to decide which arguments Dask sends separately from the tasks.
        data = self.data
        sets = () if data.Y is None else (data.Y.data, data.Y.indices, data.Y.indptr)
        return data.X.nbytes + sum(array.nbytes for array in (data.codes, data.C, *sets))


class SentBlocks(L2Blocks):
    """Blocks that workers train and this process imports.

    `options.n_jobs` counts workers, as in joblib; None means the number of `joblib.parallel_config`, or else all. A
    task gets what is left of the time limit.
    """

    def __init__(self, problem: Binary, data: TrainingSet, options: FitOptions, *, interrupt: Any, peers: Peers):
        self._deadline = None if options.time_limit is None else time.perf_counter() + options.time_limit
        super().__init__(problem, data, replace(options, threads=joblib.cpu_count()), interrupt=interrupt)
        self._n_jobs, self._data = options.n_jobs, data
        self._options = replace(options.of_solver(), threads=1)
        self._arriving: Iterator[dict[str, np.ndarray]] | None = None
        self.tasks_here = StopAll()

    def advance(self, rule: StopRule) -> Progress:
        """Import the next result; after the last task was sent, or when time is up, all that are still to come."""
        any_came = False
        while (found := self._next(rule)) is not None:
            self.import_blocks(found)
            any_came = True
            if self._left and self._seconds_left() != 0:
                return self._progress()
        if not any_came:  # and the rule is not met: Ctrl-C, here or in a worker
            self._interrupt.request()
        return self._progress()

    def memory(self) -> dict[str, int]:
        return super().memory() | {"weights": 0}

    def _next(self, rule: StopRule) -> dict[str, np.ndarray] | None:
        try:
            with raising():
                if self._arriving is None:
                    self._go_by(rule)
                    self._arriving = self._send_out(rule)
                return next(self._arriving, None)
        except KeyboardInterrupt:
            self._arriving = iter(())
            self.tasks_here.request()
            return None

    def _send_out(self, rule: StopRule) -> Iterator[dict[str, np.ndarray]]:
        backend, configured = get_active_backend()
        n_jobs = next((n for n in (self._n_jobs, configured) if n is not None), -1)
        count = max(1, min(len(self._left), TASKS_A_WORKER * joblib.effective_n_jobs(n_jobs)))
        parts = [part.tolist() for part in np.array_split(self._left, count)]
        job = Job(uuid.uuid4().hex, self._problem, self._data, self._options, rule)
        _fits_here[job.token] = self
        workers = joblib.Parallel(
            n_jobs,
            return_as="generator_unordered" if backend.supports_return_generator else "list",
            pre_dispatch="n_jobs",  # no earlier: a task is told how many seconds are left
            batch_size=1,
            max_nbytes=MAPPED_BYTES,
        )
        return iter(workers(self._tasks(job, parts, joblib.effective_n_jobs(n_jobs))))

    def _tasks(self, job: Job, parts: list[list[int]], workers: int) -> Iterator[Any]:
        waiting = sum(map(len, parts))
        for part in parts:
            seconds = self._seconds_left()
            if seconds == 0 or self._interrupt.requested:
                return
            waiting -= len(part)
            yield joblib.delayed(train_task)(job, self.export_blocks(part), seconds, waiting / workers)

    def _seconds_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.perf_counter())


class SentElasticNetBlocks(SentBlocks, ElasticNetBlocks):
    """`SentBlocks` for losses with an elastic net."""


SENT: dict[type[L2Blocks], type[SentBlocks]] = {L2Blocks: SentBlocks, ElasticNetBlocks: SentElasticNetBlocks}


# A worker thread uses the layout of the fit in its own process; a worker process keeps the last layout it made.
_fits_here: WeakValueDictionary[str, SentBlocks] = WeakValueDictionary()
_last_made: dict[str, L2Blocks] = {}
_making = threading.Lock()


def train_task(
    job: Job, blocks: dict[str, np.ndarray], seconds: float | None, behind: float = 0.0
) -> dict[str, np.ndarray]:
    """Train exported blocks in a worker, on one thread, for at most this many seconds; export the trained blocks.

    `behind` is the average number of blocks that each worker still has to train after these.
    """
    interrupt = core.Interrupt()
    if seconds is not None:
        interrupt.stop_after(seconds)
    solver = _solver_of(job, interrupt)
    solver.choose_blocks(blocks["blocks"].tolist())
    solver.import_blocks(blocks)
    solver.train_again()
    solver.behind = behind
    while not (solver.advance(job.rule).ready or interrupt.requested):
        pass
    return solver.export_blocks(solver.ended())


def _solver_of(job: Job, interrupt: Any) -> L2Blocks:
    fit = _fits_here.get(job.token)
    if fit is not None:
        fit.tasks_here.add(interrupt)
        return fit.sibling(interrupt)
    with _making:
        if job.token not in _last_made:
            _last_made.clear()  # free it before making the next one
            data = _without_mapped(job.problem, job.data)
            made = blocks_of(job.problem)(job.problem, data, job.options, interrupt=interrupt)
            made.choose_blocks([])
            _last_made[job.token] = made
        return _last_made[job.token].sibling(interrupt)


def _without_mapped(problem: Binary, data: TrainingSet) -> TrainingSet:
    """Copy mapped arrays that a solver would keep: joblib waits until they are released."""

    def own(array: Any) -> Any:
        return np.array(array) if isinstance(array, np.memmap) else array

    X = data.X
    if isinstance(problem, SparseBinary):  # its solver reads the caller's rows in place
        X = replace(X, indptr=own(X.indptr), indices=own(X.indices), values=own(X.values))
    return replace(data, X=X, C=own(data.C))
