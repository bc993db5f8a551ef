"""Stores, measured by the protocol of all solvers.

convert    convert LIBSVM text to a store
decode     read all blocks, one after the other
fit        a whole fit: from the store within `memory` bytes or, without `memory`, with all rows in memory
passes     train pass by pass, with the objective and the test accuracy after each; the clock is stopped while these
           are computed, and while the blocks are evicted from the page cache before a pass
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import ours
from benchmarks.objective import error_rate
from benchmarks.protocol import Outcome, Request, Task, load_rows, serve
from benchmarks.store_making import block_bytes, drop_from_cache
from manyclass._native import core
from manyclass.data import BlockStore
from manyclass.data.conversion import Conversion
from manyclass.data.row_parts import TextRows
from manyclass.engines import DiskEngine, StoredRows
from manyclass.engines.disk import FromDisk
from manyclass.engines.disk_engine import DiskJob
from manyclass.estimators import estimator_for
from manyclass.problems import PROBLEMS
from manyclass.solvers import SolverOptions, StopRule

NEVER = StopRule("gap", 0.0)


def convert(request: Request) -> BlockStore:
    options = request.options
    return Conversion(TextRows([options["text"]]), options["store"], memory=options["memory"]).run()


def about_store(store: BlockStore) -> Outcome:
    return Outcome(figures={"nonzeros": store.nnz, "block_bytes": block_bytes(store), "blocks": store.n_blocks})


def prepare_decoding(request: Request) -> BlockStore:
    store = BlockStore(request.options["store"])
    if request.options["warm"]:
        decode(store)
    else:
        drop_from_cache(store.path)
    return store


def decode(store: BlockStore) -> BlockStore:
    for number in range(store.n_blocks):
        store.read(number)
    return store


def prepare_fit(request: Request):
    options = dict(request.options)
    store, memory = BlockStore(options.pop("store")), options.pop("memory", None)
    if memory is None:
        return estimator_for(**options), *rows_of(store)
    return estimator_for(engine=DiskEngine(memory), **options), store, None


def rows_of(store: BlockStore) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return all rows as one matrix, in block order, and their class codes."""
    values, indices = np.empty(store.nnz, store.dtype), np.empty(store.nnz, np.int32)
    lengths, y, done = [], [], 0
    for number in range(store.n_blocks):
        block = store.read(number)
        here = slice(done, done + block.indices.size)
        values[here], indices[here] = block.values, block.indices
        lengths.append(np.diff(block.indptr))
        y.append(block.labels)
        done = here.stop
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    X = sp.csr_matrix((values, indices, indptr), shape=(store.n_rows, store.n_features))
    return X, np.concatenate(y)


# ---- Pass by pass


def visit_in_order(solver: FromDisk) -> None:
    """Visit the blocks in numerical order in every pass."""
    fits: Any = solver.fits
    fits._order_of_blocks = lambda: np.arange(fits._data.store.n_blocks)


@dataclass(frozen=True)
class Plan:
    """What to train on, how, and when to stop."""

    store: str  # the folder
    loss: str
    engine: dict[str, Any]  # parameters of the `DiskEngine`
    test: str | None = None  # the test rows; without them, only the time is measured
    same_order: bool = False  # whether to visit the blocks in the same order in each pass
    threads: int = 2
    passes: int = 100  # at most
    seconds: float = np.inf  # no pass begins after this time
    enough: float = -np.inf  # the objective value at which to stop

    def solver(self) -> FromDisk:
        data, options = StoredRows(BlockStore(self.store), 1.0), SolverOptions(threads=self.threads)
        engine = DiskEngine(**self.engine)
        solver = FromDisk(DiskJob(PROBLEMS[self.loss], data, engine, options, core.Interrupt()))
        if self.same_order:
            visit_in_order(solver)
        return solver


def prepare_passes(request: Request):
    plan = Plan(**request.options)
    return plan, None if plan.test is None else load_rows(plan.test)


def passes(state) -> dict[str, list[float]]:
    """Return the training time at the end of each pass, with the objective and the accuracy reached."""
    plan, test = state
    taken, solver = 0.0, None
    found: dict[str, list[float]] = {"pass": [], "seconds": [], "primal": [], "accuracy": []}
    while len(found["pass"]) < plan.passes and taken < plan.seconds:
        drop_from_cache(Path(plan.store))
        begin = time.perf_counter()
        solver = solver or plan.solver()
        while not (progress := solver.advance(NEVER)).pass_ended:
            pass
        taken += time.perf_counter() - begin
        primal, accuracy = (np.nan, np.nan) if test is None else _reached(solver, *test)
        for name, value in zip(found, (len(found["pass"]) + 1, taken, primal, accuracy), strict=True):
            found[name].append(float(value))
        if progress.exhausted or primal <= plan.enough:
            break
    return found


def _reached(solver: FromDisk, X_test: sp.csr_matrix, y_test: np.ndarray) -> tuple[float, float]:
    primal = solver.certificate().primal
    return primal, 1 - error_rate(X_test, y_test, solver.weights())


if __name__ == "__main__":
    serve(
        {
            "convert": Task(lambda request: request, convert, about_store),
            "decode": Task(prepare_decoding, decode, about_store),
            "fit": Task(prepare_fit, ours.fit, ours.outcome),
            "passes": Task(prepare_passes, passes, lambda found: Outcome(series=found)),
        },
        packages=("manyclass",),
    )
