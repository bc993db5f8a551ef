"""Fingerprint of a fit: a fit can only resume from a checkpoint with the same fingerprint."""

import hashlib
from typing import Any

import numpy as np

from .._native import isa
from ..peers import Peers
from ..problems import PROBLEMS, Problem
from ..solvers import SolverOptions, TrainingSet
from ..solvers.schedule import league_count

HASHED_AT_ONCE = 1 << 20
# Names of solvers in checkpoints. "auto" only switches to another one where "dual" is slow.
SOLVERS = {"auto": "dual", "alternating": "leagues"}


def fingerprint(problem: Problem, data: TrainingSet, options: SolverOptions) -> dict[str, Any]:
    """Return everything that the bits of a model depend on, under names that users know, with arrays as hashes.

    `stop`, `tol`, `max_iter` and `time_limit`, which only decide when a fit ends, and the threads are left out.
    """
    X = data.X.as_csr()
    labels = (data.codes,) if data.Y is None else (data.Y.indptr, data.Y.indices)
    found = {
        "rows of X": _hash(X.indptr, X.indices, X.data, np.array(X.shape)),
        "labels": _hash(*labels, np.array([data.n_classes])),
        "C": float(data.C[0]) if np.ptp(data.C) == 0 else f"by rows, {_hash(data.C)}",
        "loss": problem.name,
        **dict.fromkeys(name for other in PROBLEMS.values() for name in other.parameter_names),
        **problem.parameters,
        "constant feature": data.constant,
        "feature_reduction": data.reduced,
    }
    leagues = options.leagues or league_count(data.n_classes)
    chosen = options.bits() | {
        "dtype": np.dtype(options.dtype).name,
        "solver": SOLVERS.get(options.solver, options.solver),
        # Without it, finished blocks may omit their dual variables.
        "warm_start": options.keep_state if problem.separate else None,
        "leagues": int(leagues) if options.solver == "leagues" else None,
    }
    return found | {name: value for name, value in chosen.items() if value is not None}


def differences(stored: dict[str, Any], here: dict[str, Any], values: str = "{}, here {}") -> list[str]:
    """Return the names that differ, with both values if they mean something to a reader."""
    return [
        name if name in ("rows of X", "labels") else f"{name} ({values.format(stored.get(name), here.get(name))})"
        for name in here | stored
        if stored.get(name) != here.get(name)
    ]


def refuse_different(here: dict[str, Any], peers: Peers) -> None:
    """Raise ValueError in all processes if one of them has another problem or another build of the core."""
    first, *others = peers.gather(here | {"build of the core": isa})
    for rank, other in enumerate(others, 1):
        if differ := differences(first, other, f"rank 0: {{}}, rank {rank}: {{}}"):
            raise ValueError(
                f"rank {rank} trains a different problem from rank 0: {', '.join(differ)}; give all ranks the same "
                "rows, labels and parameters"
            )


def _hash(*arrays: np.ndarray) -> str:
    """Hash the values, whatever their type, without copying whole arrays."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        wide = np.float64 if array.dtype.kind == "f" else np.int64
        for begin in range(0, array.size, HASHED_AT_ONCE):
            digest.update(np.ascontiguousarray(array[begin : begin + HASHED_AT_ONCE], wide).data)
        digest.update(f"|{array.size}".encode())
    return digest.hexdigest()
