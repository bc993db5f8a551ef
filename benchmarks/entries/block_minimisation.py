"""The experiments of Yu, Hsieh, Chang and Lin (KDD 2010), section 7, on our data: one-vs-rest hinge, C = 1.

All but StreamSVM minimise the same objective, and stop near its optimum, or after some passes or seconds. Blocks are
read from disk in every pass. `benchmarks/block_methods.py` lists the methods.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks.block_methods import (
    BLOCK_L_D,
    BLOCKS,
    COMPRESSIONS,
    DEFAULT,
    IN_MEMORY,
    METHODS,
    NAME,
    NEAR,
    NUMBERS,
    RAW,
    RAW_SAME_ORDER,
    SPLITS,
    WITHIN,
    with_blocks,
)
from benchmarks.measure import Run, seconds
from benchmarks.problems import Problem
from benchmarks.protocol import store_problem
from benchmarks.results import Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import DECODER, ours
from benchmarks.store_making import block_bytes, store_in_order, store_of_matrix
from manyclass.data import BlockStore

TITLES = {NAME: "Methods, splits, numbers of blocks and compressions of Yu et al., one-vs-rest hinge from disk"}
PROBLEMS = ("news20", "text-12m")

# A curve ends near the optimum, or after this many passes or seconds.
PASSES, SECONDS = 50, 8.0
TOLERANCES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
TEN_PASSES = 10


def cases() -> Iterator[Case]:
    """One curve per method, split and number of blocks; ten passes per compression."""
    for problem in PROBLEMS:
        for method in METHODS:
            yield Case(NAME, problem, method, in_memory if method is IN_MEMORY else curve)
        for split in SPLITS[1:]:
            yield Case(NAME, problem, split, curve)
        for number in NUMBERS:
            for solver in (BLOCK_L_D, DEFAULT):
                if number != BLOCKS:
                    yield Case(NAME, problem, with_blocks(solver, number), curve)
        for solver in COMPRESSIONS.values():
            yield Case(NAME, problem, solver, ten_passes)


def curve(session: Session, case: Case) -> list[Row]:
    """Measure the objective and the test accuracy after each pass."""
    store, converting = _store(session, case)
    best = _optimum(session, case.problem) if case.ours.loss == "hinge" else np.nan
    test = session.once(("test", case.problem), lambda: _test_rows(session, case.problem))
    run = session.runner.do(
        case.ours,
        "passes",
        store=str(store.path),
        test=str(test),
        passes=PASSES,
        seconds=SECONDS,
        enough=(1 + NEAR) * best if np.isfinite(best) else 0.0,  # no objective value is below 0
    )
    found = run.reply.series
    rows = _rows(case, found, best, note=f"{found['pass'][-1]:.0f} passes, {found['seconds'][-1]:.3g} s")
    return [replace(rows[0], versions=versions_of(run)), *rows[1:], case.row("seconds to convert", converting)]


def in_memory(session: Session, case: Case) -> list[Row]:
    """Measure the same for whole fits in memory, one per tolerance."""
    problem = _problem(session, case.problem)

    def train(tol: float, *, evaluate: bool = False) -> Run:
        return session.runner.train(case.ours, problem, evaluate=evaluate, stop="gap", tol=tol)

    runs = [train(tol, evaluate=True) for tol in TOLERANCES]
    again = [[train(tol) for _ in range(session.repetitions - 1)] for tol in TOLERANCES]
    found = {
        "pass": [float(run.reply.iterations or 0) for run in runs],
        "seconds": [median(seconds([run, *more])) for run, more in zip(runs, again, strict=True)],
        "primal": [run.primal or np.nan for run in runs],
        "accuracy": [1 - (run.error or 0.0) for run in runs],
    }
    return _rows(case, found, _optimum(session, case.problem), note="whole fits, one per tolerance")


def ten_passes(session: Session, case: Case) -> list[Row]:
    """Measure the size of the blocks on disk, and the time to read them and to train from them."""
    store, converting = _store(session, case)
    where = {"store": str(store.path)}
    training = [
        session.runner.do(case.ours, "passes", passes=TEN_PASSES, **where).reply.series["seconds"][-1]
        for _ in range(session.repetitions)
    ]
    decoding = [session.runner.do(DECODER, "decode", warm=False, **where).seconds for _ in range(session.repetitions)]
    return [
        case.row("bytes a non-zero", block_bytes(store) / store.nnz),
        case.row("seconds of ten passes", median(training), repetitions={"seconds": training}),
        case.row("seconds to read and decode", median(decoding), repetitions={"seconds": decoding}),
        case.row("seconds to convert", converting),
    ]


def _rows(case: Case, found: dict[str, list[float]], best: float, note: str) -> list[Row]:
    """Return the final figures of a curve, and the curve itself."""
    difference = [primal / best - 1 for primal in found["primal"]]
    series = {name: found[name] for name in ("pass", "seconds")}
    series |= {"difference": difference, "accuracy": found["accuracy"]}
    rows = [case.row("test accuracy at the end", found["accuracy"][-1], series=series, note=note)]
    if np.isfinite(best):
        rows.append(case.row("relative difference to the optimum at the end", difference[-1]))
    for within in WITHIN:
        reached = next((place for place, each in enumerate(difference) if each <= within), None)
        if reached is not None:
            for name in ("seconds", "pass"):
                plural = "passes" if name == "pass" else name
                rows.append(case.row(f"{plural} to {within:.1%} of the optimum", found[name][reached]))
    return rows


def _store(session: Session, case: Case) -> tuple[BlockStore, float]:
    """Return the store of a case and the seconds taken to create it."""
    name = case.ours.name
    raw = case.ours in (RAW, RAW_SAME_ORDER)
    blocks = next((number for number in NUMBERS if name.endswith(f", {number} blocks")), BLOCKS)
    compression = next((kind for kind in COMPRESSIONS if name.endswith(f", {kind}")), "zstd")
    folder = session.runner.folder / f"{case.problem}-{blocks}-{compression}{'-raw' if raw else ''}.store"

    def make() -> tuple[BlockStore, float]:
        problem = _problem(session, case.problem)
        begin = time.perf_counter()
        if raw:
            store = store_in_order(problem.X, problem.y, folder, blocks)
        else:
            store = store_of_matrix(problem.X, problem.y, folder, blocks, compression=compression)
        return store, time.perf_counter() - begin

    return session.once(("store", folder.name), make)


def _problem(session: Session, name: str) -> Problem:
    """Return the problem with rows of unit length, as in the paper."""

    def make() -> Problem:
        problem = session.problem(name)
        X, X_test = (normalize(rows) for rows in (problem.X, problem.X_test))
        return replace(problem, name=f"{name}-unit", X=X, X_test=X_test)

    return session.once(("unit", name), make)


def _test_rows(session: Session, name: str) -> Path:
    problem = _problem(session, name)
    path = session.runner.folder / f"{name}-test.npz"
    store_problem(path, problem.X_test, problem.y_test)
    return path


def _optimum(session: Session, name: str) -> float:
    """Return a tight lower bound of the objective, so that no difference to it is negative."""

    def make() -> float:
        rule = {"stop": "gap", "tol": 1e-6, "max_iter": 100_000, "dtype": "float64"}
        run = session.runner.train(ours("hinge"), _problem(session, name), **rule)
        return run.reply.certificate["dual"]

    return session.once(("optimum", name), make)
