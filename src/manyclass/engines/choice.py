"""The one place where an engine is chosen: who makes the progress that the loop in `training.py` asks for."""

from typing import Any

import numpy as np

from ..problems import Binary, MaxMargin, Problem, SparseBinary
from ..solvers import Alone, CoupledRows, FrankWolfe, Leagues, Peers, Solver, TrainingSet, blocks_of, check_scale
from .class_ranges import from_disk
from .disk_engine import DiskEngine
from .dual_store import DualStore
from .label_parallel import SentBlocks, SentLabelBlocks
from .mpi import MPIEngine, MPIPeers
from .stored_rows import StoredRows

#: "memory": this process and its threads; "disk": the same, from a store; "joblib": the workers of a joblib backend;
#: "mpi": all processes of mpirun.
ENGINES = ("memory", "disk", "joblib", "mpi")


def check_engine(engine: Any, problem: Problem) -> None:
    """Say no to what is no engine, or none for this problem.

    Raises
    ------
    ValueError
        With what there is.
    """
    if not isinstance(engine, MPIEngine | DiskEngine) and engine not in ENGINES:
        names = ", ".join(repr(name) for name in ENGINES)
        raise ValueError(f"engine must be one of {names}, a DiskEngine or an MPIEngine, got {engine!r}")
    if engine == "joblib" and not isinstance(problem, Binary):
        raise ValueError(
            "engine='joblib' sends classes, or pairs of them, to different workers: it is for one-vs-rest and "
            f"one-vs-one. {problem.name!r} trains all classes together; use engine='memory'"
        )
    if isinstance(problem, MaxMargin) and engine != "memory":
        raise ValueError(f"{problem.name!r} is trained by engine='memory' only, got {engine!r}")
    if isinstance(engine, DiskEngine):
        engine.check_loss(problem)


def disk_engine(engine: Any) -> DiskEngine:
    """How a store is to be trained from: as this engine says, or as usual.

    Raises
    ------
    ValueError
        If the engine is for rows in memory.
    """
    if isinstance(engine, DiskEngine):
        return engine
    if engine not in ("memory", "disk"):
        raise ValueError(
            f"engine={engine!r} wants rows in memory; train a store with engine='disk', or read it with store.load()"
        )
    return DiskEngine()


_world = MPIEngine()


def peers_of(engine: Any) -> Peers:
    """The processes that an engine has for one fit."""
    if engine == "mpi":
        return _world.peers()
    return engine.peers() if isinstance(engine, MPIEngine) else Alone()


def threads_of(peers: Peers, threads: int, n_jobs: int | None) -> int:
    """How many threads a process has: where all cores are asked for, those on one host share them."""
    return peers.threads if isinstance(peers, MPIPeers) and n_jobs in (None, -1) else threads


def make_solver(
    engine: Any,
    problem: Problem,
    data: TrainingSet | StoredRows,
    *,
    dtype: np.dtype,
    seed: int,
    threads: int,
    n_jobs: int | None,
    max_iter: int,
    time_limit: float | None,
    keep_state: bool,
    solver: str,
    leagues: int | None,
    interrupt: Any,
    peers: Peers,
    variables: DualStore | None,
) -> Solver:
    """Make the solver of a fit, its rows laid out; parameters are those of `run`."""
    check_engine(engine, problem)
    if isinstance(data, StoredRows):
        return from_disk(
            problem,
            data,
            disk_engine(engine),
            dtype=dtype,
            variables=variables,
            max_iter=max_iter,
            keep_state=keep_state,
            seed=seed,
            threads=threads,
            interrupt=interrupt,
        )
    check_scale(problem, data, dtype)
    if solver == "leagues" and problem.name == "ww":
        return Leagues(problem, data, dtype=dtype, seed=seed, threads=threads, leagues=leagues, peers=peers)
    if isinstance(problem, MaxMargin):
        return FrankWolfe(problem, data, dtype=dtype, seed=seed, threads=threads)
    if not isinstance(problem, Binary):
        alternating = solver == "leagues"
        return CoupledRows(
            problem, data, dtype=dtype, seed=seed, threads=threads, alternating=alternating, peers=peers
        )
    options: dict[str, Any] = {
        "dtype": dtype,
        "seed": seed,
        "max_epochs": max_iter,
        "method": solver,
        "keep_state": keep_state,
    }
    if engine == "joblib":
        sent = SentLabelBlocks if isinstance(problem, SparseBinary) else SentBlocks
        return sent(problem, data, options, n_jobs=n_jobs, time_limit=time_limit, interrupt=interrupt)
    return blocks_of(problem)(problem, data, threads=threads, interrupt=interrupt, peers=peers, **options)
