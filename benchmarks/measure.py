"""Fresh processes, repetitions and medians."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.environments import ENVIRONMENTS, ROOT, UnavailableError
from benchmarks.memory_limit import MemoryLimit
from benchmarks.objective import error_rate, primal
from benchmarks.problems import Problem
from benchmarks.protocol import Reply, Request, load_weights, store_problem
from benchmarks.solvers import Solver
from manyclass.metrics import precisions_at_k

# The values of k for which P@k is reported.
TOPS = (1, 3, 5)

# Open MPI refuses to run as root unless both are set; in a container there may be no other user.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True)
class Run:
    """One measured fit. `primal`, `error` and `precision` (on the test rows) are set only if requested."""

    reply: Reply
    primal: float | None = None
    error: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    precision: dict[int, float] = field(default_factory=dict)  # by k

    @property
    def seconds(self) -> float:
        return self.reply.seconds

    @property
    def shortfall(self) -> str:
        """Return a note from the certificate if the fit did not reach its tolerance."""
        measure = {"gap": "gap", "kkt": "violation"}.get(self.options.get("stop", ""))
        reached = self.reply.certificate.get(measure) if measure else None
        if reached is None or reached <= self.options["tol"]:
            return ""
        return f"ended at {measure} {reached:.3g}, not {self.options['tol']:g}"


class Runner:
    """Run solvers in separate processes, one at a time.

    Parameters
    ----------
    folder : Path
        For problems, requests and weights; the caller removes it.
    timeout : float
        Seconds after which a child is killed and its measurement given up.
    """

    def __init__(self, folder: Path, timeout: float = 3600.0):
        self.folder = folder
        self.timeout = timeout

    def train(
        self,
        solver: Solver,
        problem: Problem,
        *,
        evaluate: bool = False,
        one_core: bool = False,
        **options: Any,
    ) -> Run:
        """Train on a problem; with `evaluate` also compute the primal value and the test error here."""
        stored = self._stored(problem)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            weights = str(Path(scratch) / "weights") if evaluate else None
            reply = self._ask(
                solver, "train", scratch, one_core, problem=str(stored), weights=weights, options=options
            )
            if weights is None:
                return Run(reply, options=options)
            W = load_weights(weights)
            value = primal(solver.loss, problem.X, problem.y, W, C=1.0)
            error = error_rate(problem.X_test, problem.y_test, W, pairs=solver.loss.startswith("ovo_"))
            return Run(reply, value, error, options)

    def rank(self, solver: Solver, problem: Problem, **options: Any) -> Run:
        """Train, let the solver find the best labels of the test rows, and measure the size of its model."""
        fields = {"problem": str(self._stored(problem)), "test": str(self._stored(problem, test=True))}
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            best = Path(scratch) / "best.npy"
            reply = self._ask(solver, "train", scratch, False, best=str(best), options=options, **fields)
            precisions = precisions_at_k(problem.test_sets(), np.load(best), TOPS)
            return Run(reply, options=options, precision=dict(zip(TOPS, precisions, strict=True)))

    def epochs(self, solver: Solver, problem: Problem) -> Run:
        """Run some passes of leagues; see `benchmarks/leagues.py`."""
        stored = self._stored(problem)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            return Run(self._ask(solver, "epochs", scratch, False, problem=str(stored), options={}))

    def search(self, solver: Solver, problem: Problem, **options: Any) -> Run:
        """Choose C by cross-validation."""
        stored = self._stored(problem)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            return Run(self._ask(solver, "search", scratch, False, problem=str(stored), options=options))

    def _stored(self, problem: Problem, test: bool = False) -> Path:
        stored = self.folder / f"{problem.name}{'.test' if test else ''}.npz"
        if not stored.exists():
            store_problem(stored, *((problem.X_test, problem.y_test) if test else (problem.X, problem.y)))
        return stored

    def read(self, solver: Solver, path: Path) -> Run:
        """Read LIBSVM text on one core."""
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            return Run(self._ask(solver, "read", scratch, one_core=True, options={"path": str(path)}))

    def do(
        self, solver: Solver, task: str, *, one_core: bool = False, limit: MemoryLimit | None = None, **options: Any
    ) -> Run:
        """Run a task whose options name its files, within a memory limit if one is given."""
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            return Run(self._ask(solver, task, scratch, one_core, limit, options=options), options=options)

    def ending(self, solver: Solver, task: str, limit: MemoryLimit, **options: Any) -> tuple[int, str]:
        """Run a process that may fail; return its exit code (negative for a signal) and the end of its output."""
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            done, _ = self._run(solver, task, scratch, False, limit, options=options)
            said = done.stderr.strip().splitlines()
            return done.returncode, said[-1] if said else ""

    def _ask(self, solver: Solver, *asked: Any, **fields: Any) -> Reply:
        done, reply = self._run(solver, *asked, **fields)
        if done.returncode != 0:
            # mpirun adds its own message below that of the rank, between lines of dashes.
            said = [line.strip() for line in done.stderr.splitlines() if line.strip(" -")]
            last = said[-8:] if solver.ranks else said[-1:]
            raise UnavailableError(f"{solver.name} failed: {'; '.join(last) or f'exit code {done.returncode}'}")
        return Reply(**json.loads(reply.read_text()))

    def _run(
        self,
        solver: Solver,
        task: str,
        scratch: str,
        one_core: bool,
        limit: MemoryLimit | None = None,
        *,
        options: dict[str, Any],
        **fields: Any,
    ) -> tuple[subprocess.CompletedProcess[str], Path]:
        """Run a process to its end; return it and the path of its reply, which exists if it succeeded."""
        reply = Path(scratch) / "reply.json"
        request = Request(task=task, reply=str(reply), options=solver.options | options, **fields)
        question = Path(scratch) / "request.json"
        question.write_text(json.dumps(asdict(request)))
        python = ENVIRONMENTS[solver.environment].ensure() if solver.environment else sys.executable
        command = [str(python), "-m", solver.module, str(question)]
        if solver.ranks:
            command = [*_mpirun(solver.ranks, self.timeout), *command]

        def begin() -> None:
            if one_core:
                os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
            if limit is not None:
                limit.enter()

        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                capture_output=True,
                text=True,
                env=os.environ | AS_ROOT,
                # mpirun has its own timeout for its processes.
                timeout=self.timeout + (60 if solver.ranks else 0),
                preexec_fn=begin if one_core or limit is not None else None,
            )
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"{solver.name} was stopped after {self.timeout:.0f} s without a result") from None
        return done, reply


def alternate(
    first: Callable[[], Run], second: Callable[[], Run], repetitions: tuple[int, int]
) -> tuple[list[Run], list[Run]]:
    """Alternate two measurements, so that changes in the machine's load affect both.

    The one with fewer repetitions finishes first.
    """
    done: tuple[list[Run], list[Run]] = ([], [])
    for turn in range(max(repetitions)):
        for runs, run, wanted in zip(done, (first, second), repetitions, strict=True):
            if turn < wanted:
                runs.append(run())
    return done


def seconds(runs: list[Run]) -> list[float]:
    """Return the seconds of each run."""
    return [run.seconds for run in runs]


def shortfalls(*runs: Run) -> str:
    """Return the distinct notes of runs that missed their tolerance."""
    return "; ".join(dict.fromkeys(run.shortfall for run in runs if run.shortfall))


def times_faster(ours: list[Run], peer: list[Run]) -> float:
    """Return the peer's median time divided by ours."""
    return median(seconds(peer)) / median(seconds(ours))


@contextmanager
def busy_cores(count: int | None = None) -> Iterator[list[subprocess.Popen]]:
    """Keep `count` cores (by default all) busy while the block runs."""
    # Each spins only while its parent lives, so none outlives an aborted benchmark.
    spin = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(1_000_000))"
    processes: list[subprocess.Popen] = []
    try:
        for _ in range(count or len(os.sched_getaffinity(0))):
            processes.append(subprocess.Popen([sys.executable, "-c", spin]))
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _mpirun(ranks: int, timeout: float) -> list[str]:
    beside = Path(sys.executable).parent / "mpirun"
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if found is None:
        raise UnavailableError('mpirun was not found; pip install "manyclass[mpi]"')
    # There may be more ranks than cores. They are not bound to cores, because the other entries are not either.
    return [found, "-n", str(ranks), "--oversubscribe", "--bind-to", "none", "--timeout", str(int(timeout))]
