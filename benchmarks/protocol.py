"""The protocol between the benchmarks and a measured process.

The parent writes a request (JSON) and starts ``python -m <module> request.json``. The child loads the
problem, trains, and writes a reply (JSON). A task has three steps and only the middle one is timed:

    prepare(request) -> state      read and convert the problem for the solver
    fit(state) -> model            what is measured: seconds and peak memory
    outcome(model) -> Outcome      weights, and what the solver reports about the fit

If the request asks for the labels of test rows, two more follow, also untimed:

    best(model, X, k) -> codes     the k best labels of each row, predicted by the solver's own code
    save(model, folder)            write the model as the solver stores it, to measure its size

Under mpirun, all processes do the task, and one answers.

Every environment imports this file, so it may only need NumPy and SciPy.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

# Number of labels to predict per test row.
BEST = 5

# Class codes, or a csr_matrix of ones of shape (rows, labels) if rows have sets of labels.
Labels = np.ndarray | sp.csr_matrix


@dataclass(frozen=True)
class Request:
    """What a child is asked to do. `weights` is a path without suffix, or None if they are not needed.

    If `test`, a path to rows, is given, the child writes the codes of their best labels to the path `best`.
    """

    task: str
    reply: str
    problem: str | None = None
    weights: str | None = None
    test: str | None = None
    best: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def load_problem(self) -> tuple[sp.csr_matrix, Labels]:
        """Return the stored rows (float32) and their class codes or sets of labels."""
        return load_rows(self.problem)


@dataclass(kw_only=True)
class FitRecord:
    """What a fit reports; `series` holds one figure per step, such as a pass."""

    iterations: int | None = None
    certificate: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    series: dict[str, list[float]] = field(default_factory=dict)
    note: str = ""


@dataclass(kw_only=True)
class Outcome(FitRecord):
    """The result of a fit; `weights` is d x K, or (d + 1) x K with the intercept in the last row."""

    weights: Any = None


@dataclass
class Reply(FitRecord):
    """The reply of a child: the figures of one fit, in seconds and bytes."""

    seconds: float
    peak_bytes: int
    baseline_bytes: int
    versions: dict[str, str]


@dataclass(frozen=True)
class Task:
    """The steps of a measurement; `best` returns -1 where a row has fewer labels than requested."""

    prepare: Callable[[Request], Any]
    fit: Callable[[Any], Any]
    outcome: Callable[[Any], Outcome]
    best: Callable[[Any, sp.csr_matrix, int], np.ndarray] | None = None
    save: Callable[[Any, Path], None] | None = None


def store_problem(path: Path, X: sp.csr_matrix, y: Labels) -> None:
    """Write rows and their labels to files that a child can load."""
    labels = _arrays("y_", y) if sp.issparse(y) else {"y": y}
    np.savez(path, **_arrays("", X), **labels)


def load_rows(path: str) -> tuple[sp.csr_matrix, Labels]:
    """Read what `store_problem` wrote."""
    with np.load(path) as stored:
        return _matrix(stored, ""), stored["y"] if "y" in stored else _matrix(stored, "y_")


def _arrays(prefix: str, M: sp.csr_matrix) -> dict[str, np.ndarray]:
    M = M.tocsr()
    M.sort_indices()
    parts = {"data": M.data, "indices": M.indices, "indptr": M.indptr, "shape": np.array(M.shape)}
    return {prefix + name: part for name, part in parts.items()}


def _matrix(stored: Mapping[str, np.ndarray], prefix: str) -> sp.csr_matrix:
    arrays = tuple(stored[prefix + name] for name in ("data", "indices", "indptr"))
    return sp.csr_matrix(arrays, shape=tuple(stored[prefix + "shape"]))


def label_sets(y: Labels, K: int | None = None) -> sp.csr_matrix:
    """Return labels of either kind as a csr_matrix of ones with K columns; a code of -1 gives an empty row."""
    if sp.issparse(y):
        return sp.csr_matrix((np.ones(y.nnz, np.float32), y.indices, y.indptr), (y.shape[0], K or y.shape[1]))
    known = y >= 0
    ptr = np.concatenate([[0], np.cumsum(known)])
    shape = len(y), K or int(y.max()) + 1
    return sp.csr_matrix((np.ones(ptr[-1], np.float32), y[known], ptr), shape)


def store_weights(stem: str, weights: Any) -> None:
    """Write weights as .npz if they are sparse, otherwise as .npy."""
    if sp.issparse(weights):
        sp.save_npz(f"{stem}.npz", sp.csr_matrix(weights), compressed=False)
    else:
        np.save(f"{stem}.npy", weights)


def load_weights(stem: str) -> Any:
    """Read the weights written by `store_weights`; dense weights are memory-mapped."""
    if Path(f"{stem}.npz").exists():
        return sp.load_npz(f"{stem}.npz")
    return np.load(f"{stem}.npy", mmap_mode="r")


def serve(tasks: Mapping[str, Task], packages: tuple[str, ...], answers: bool = True) -> None:
    """Answer the request named on the command line: the main function of every measured module.

    With `answers=False`, do everything except answer, as one of several processes.
    """
    request = Request(**json.loads(Path(sys.argv[1]).read_text()))
    task = tasks[request.task]
    baseline = memory_status("VmRSS")
    state = task.prepare(request)
    _reset_peak()
    start = time.perf_counter()
    model = task.fit(state)
    seconds = time.perf_counter() - start
    peak = memory_status("VmHWM")
    outcome = task.outcome(model)
    if not answers:
        return
    if request.weights is not None:
        store_weights(request.weights, outcome.weights)
    if request.test is not None and request.best is not None:
        X_test, _ = load_rows(request.test)
        best = task.best(model, X_test, BEST)
        np.save(request.best, np.pad(best, ((0, 0), (0, BEST - best.shape[1])), constant_values=-1))
        outcome.figures["model_bytes"] = _saved_bytes(task, model)
    reply = Reply(
        seconds=seconds,
        peak_bytes=peak,
        baseline_bytes=baseline,
        versions={"Python": platform.python_version()} | {name: _version(name) for name in packages},
        **{item.name: getattr(outcome, item.name) for item in fields(FitRecord)},
    )
    Path(request.reply).write_text(json.dumps(asdict(reply)))


def _saved_bytes(task: Task, model: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        task.save(model, Path(folder))
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def memory_status(name: str) -> int:
    """Return a value of /proc/self/status in bytes.

    ru_maxrss of getrusage survives exec, so it would start at the size of the parent; VmHWM is this program's own.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no line {name}")


def _reset_peak() -> None:
    # The peak should not include what reading the problem took. If the kernel refuses, it does.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
