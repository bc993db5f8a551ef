"""How a measured process is asked and how it answers.

The parent writes a request (JSON) and starts ``python -m <module> request.json``. The child loads the
problem, trains, and writes a reply (JSON). A task has three steps and only the middle one is timed:

    prepare(request) -> state      reading and conversion, which every solver does its own way
    fit(state) -> model            what is measured: seconds and peak memory
    outcome(model) -> Outcome      weights and what the solver says about itself

Of the processes of mpirun all do the task, and one answers.

This file is imported in every environment: it needs NumPy and SciPy and nothing else.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Request:
    """What a child is asked to do; `weights` is a path without suffix, or None if nobody needs them."""

    task: str
    reply: str
    problem: str | None = None
    weights: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def load_problem(self) -> tuple[sp.csr_matrix, np.ndarray]:
        """The stored rows (float32) and their class codes."""
        return load_rows(self.problem)


@dataclass
class Outcome:
    """What is known after a fit; `weights` is d x K, or (d + 1) x K with the intercept in the last row.

    `series` are figures of several moments, such as the passes of a fit.
    """

    weights: Any = None
    iterations: int | None = None
    certificate: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    series: dict[str, list[float]] = field(default_factory=dict)
    note: str = ""


@dataclass
class Reply:
    """What a child answers: the figures of one fit, in seconds and bytes."""

    seconds: float
    peak_bytes: int
    baseline_bytes: int
    versions: dict[str, str]
    iterations: int | None = None
    certificate: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    series: dict[str, list[float]] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Task:
    """The three steps of a measurement."""

    prepare: Callable[[Request], Any]
    fit: Callable[[Any], Any]
    outcome: Callable[[Any], Outcome]


def store_problem(path: Path, X: sp.csr_matrix, y: np.ndarray) -> None:
    """Write rows and class codes where a child can load them."""
    X = X.tocsr()
    X.sort_indices()
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape), y=y)


def load_rows(path: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """Read what `store_problem` wrote."""
    with np.load(path) as stored:
        arrays = stored["data"], stored["indices"], stored["indptr"]
        X = sp.csr_matrix(arrays, shape=tuple(stored["shape"]))
        return X, stored["y"]


def store_weights(stem: str, weights: Any) -> None:
    """Write weights as .npz if they are sparse, as .npy if not."""
    if sp.issparse(weights):
        sp.save_npz(f"{stem}.npz", sp.csr_matrix(weights), compressed=False)
    else:
        np.save(f"{stem}.npy", weights)


def load_weights(stem: str) -> Any:
    """Read what `store_weights` wrote; dense weights are mapped, not read."""
    if Path(f"{stem}.npz").exists():
        return sp.load_npz(f"{stem}.npz")
    return np.load(f"{stem}.npy", mmap_mode="r")


def serve(tasks: Mapping[str, Task], packages: tuple[str, ...], answers: bool = True) -> None:
    """Answer the request named on the command line: the main function of every measured module.

    With `answers=False` do everything but answer, as one of several processes.
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
    reply = Reply(
        seconds=seconds,
        peak_bytes=peak,
        baseline_bytes=baseline,
        versions={"Python": platform.python_version()} | {name: _version(name) for name in packages},
        iterations=outcome.iterations,
        certificate=outcome.certificate,
        memory=outcome.memory,
        figures=outcome.figures,
        series=outcome.series,
        note=outcome.note,
    )
    Path(request.reply).write_text(json.dumps(asdict(reply)))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def memory_status(name: str) -> int:
    """A line of /proc/self/status in bytes.

    getrusage's ru_maxrss survives exec and would start at the parent's size; VmHWM belongs to this program.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no line {name}")


def _reset_peak() -> None:
    # What reading the problem needed for a moment is not the solver's. Where the kernel refuses, the peak
    # simply includes it.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
