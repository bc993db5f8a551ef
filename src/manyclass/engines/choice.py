"""Choosing the engine and the solver that the loop in `training.py` advances."""

from dataclasses import replace
from typing import Any

from ..peers import MPIEngine, Peers
from ..problems import Binary, MaxMargin, Problem
from ..solvers import CoupledRows, FrankWolfe, Leagues, Solver, TrainingSet, blocks_of, check_scale
from .class_ranges import from_disk
from .disk_engine import DiskEngine, DiskJob
from .dual_store import DualStore
from .label_parallel import SENT
from .options import FitOptions
from .stored_rows import StoredRows

#: "memory": this process and its threads; "disk": the same, with rows from a store; "joblib": the workers of a joblib
#: backend; "mpi": all processes started by mpirun.
ENGINES = ("memory", "disk", "joblib", "mpi")


def check_engine(engine: Any, problem: Problem) -> None:
    """Raise ValueError for an unknown engine or one that does not train this problem."""
    if not isinstance(engine, MPIEngine | DiskEngine) and engine not in ENGINES:
        names = ", ".join(repr(name) for name in ENGINES)
        raise ValueError(f"engine must be one of {names}, a DiskEngine or an MPIEngine, got {engine!r}")
    if engine == "joblib" and not problem.separate:
        raise ValueError(
            "engine='joblib' sends classes or pairs of classes to different workers, so it needs a one-vs-rest or "
            f"one-vs-one loss. {problem.name!r} trains all classes together; use engine='memory'"
        )
    if not problem.distributed and engine != "memory":
        raise ValueError(f"{problem.name!r} needs engine='memory', got {engine!r}")
    if isinstance(engine, DiskEngine):
        engine.check_loss(problem)


def disk_engine(engine: Any) -> DiskEngine:
    """Return the engine for rows in a store; raise ValueError if the engine needs rows in memory."""
    if isinstance(engine, DiskEngine):
        return engine
    if engine not in ("memory", "disk"):
        raise ValueError(
            f"engine={engine!r} needs rows in memory; train a store with engine='disk', or read it with store.load()"
        )
    return DiskEngine()


def with_threads(options: FitOptions, peers: Peers) -> FitOptions:
    """Return the options with this process's share of the host's cores, if all cores are requested."""
    if peers.threads is not None and options.n_jobs in (None, -1):
        return replace(options, threads=peers.threads)
    return options


def make_solver(
    problem: Problem,
    data: TrainingSet | StoredRows,
    options: FitOptions,
    *,
    interrupt: Any,
    peers: Peers,
    variables: DualStore | None = None,
) -> Solver:
    """Create the solver of a fit."""
    check_engine(options.engine, problem)
    if isinstance(data, StoredRows):
        return from_disk(DiskJob(problem, data, disk_engine(options.engine), options, interrupt), variables)
    check_scale(problem, data, options.dtype)
    if isinstance(problem, Binary):
        blocks = SENT[blocks_of(problem)] if options.engine == "joblib" else blocks_of(problem)
        return blocks(problem, data, options, interrupt=interrupt, peers=peers)
    if isinstance(problem, MaxMargin):
        return FrankWolfe(problem, data, options)
    if options.solver == "leagues":
        return Leagues(problem, data, options, peers=peers)
    return CoupledRows(problem, data, options, peers=peers)
