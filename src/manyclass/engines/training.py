"""The training loop: advance a solver until its rule is met, its budget is spent or Ctrl-C is pressed."""

import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from .._native import core
from ..peers import Peers, peers_of
from ..problems import Problem
from ..solvers import Certificate, Progress, Solver, TrainingSet, slow_because
from .choice import make_solver, with_threads
from .disk import about_variables
from .dual_store import DualStore
from .fingerprint import fingerprint, refuse_different
from .options import FitOptions
from .progress import ProgressDisplay
from .recorder import Recorder
from .stopping import ALONE, UNDER_MPIRUN, listening
from .stored_rows import StoredRows

logger = logging.getLogger("manyclass")


@dataclass(frozen=True)
class Result:
    """The result of a fit.

    Attributes
    ----------
    weights : ndarray or csr_matrix of shape (features, K)
        The weights. The constant feature, if any, is the last row.
    untrained : ndarray
        Codes of classes that were never trained.
    certificate : Certificate
        Certificate over all variables, with exit reason and message.
    history : list of dict
        One entry per pass: seconds, epochs, primal, dual, gap, violation, active and certified, which is True if the
        figures come from a certificate and False if they are the solver's estimate.
    times : dict
        Seconds per phase.
    memory : dict
        Bytes of data, weights and dual variables during training.
    state : dict of arrays, DualStore or None
        The dual variables, if requested.
    n_iter : int
        Number of passes over the rows.
    by_label : ndarray, optional
        Exit status per label, for losses that train labels separately; see `ElasticNetBlocks.by_label`.
    """

    weights: np.ndarray | sp.csr_matrix
    untrained: np.ndarray
    certificate: Certificate
    history: list[dict[str, Any]]
    times: dict[str, float]
    memory: dict[str, int]
    state: dict[str, np.ndarray] | DualStore | None
    n_iter: int
    by_label: np.ndarray | None = None


class Clock:
    """Seconds per phase, for this run and including the runs that it resumes."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.before = 0.0
        self.phases: dict[str, float] = {}

    def add_earlier(self, seconds: float, phases: dict[str, float]) -> None:
        """Add the seconds of the run that is resumed."""
        self.before = seconds
        self.phases = {name: phases.get(name, 0.0) + self.phases.get(name, 0.0) for name in phases | self.phases}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - begin

    @property
    def this_run(self) -> float:
        return time.perf_counter() - self.begin

    @property
    def seconds(self) -> float:
        return self.before + self.this_run


def _line(clock: Clock, progress: Progress, found: Certificate | None) -> dict[str, Any]:
    seen = found or Certificate(progress.primal, progress.dual, progress.violation)
    return {
        "seconds": clock.seconds,
        "epochs": progress.epochs,
        **{name: getattr(seen, name) for name in ("primal", "dual", "gap", "violation")},
        "active": progress.active,
        "certified": found is not None,
    }


def message_of(found: Certificate, reason: str, options: FitOptions, go_on: str | None, data: Any = None) -> str:
    """Describe how a fit ended and, if it did not converge, what to change; `data` are rows that may be the cause."""
    rule = options.rule
    name = "relative duality gap" if rule.stop == "gap" else "largest violation"
    reached = found.gap if rule.stop == "gap" else found.violation
    if reason == "converged":
        return f"converged: {name} {reached:.3g}, target {rule.tol:.3g}"
    what, advice = {
        "max_iter": (f"stopped after max_iter={options.max_iter} passes", "raise max_iter"),
        "time_limit": (f"stopped after time_limit={options.time_limit} seconds", "raise time_limit"),
        "one_pass": ("stopped after one pass, as StreamSVM does,", "train with method='dual'"),
        "interrupted": ("interrupted", f"fit again with {go_on}=True to resume" if go_on else "fit again"),
    }[reason]
    slow = reason in ("max_iter", "time_limit") and isinstance(data, TrainingSet)
    cause = f". {because}" if slow and (because := slow_because(data.X)) else ""
    return (
        f"{what} before the target: {name} {reached:.3g}, target {rule.tol:.3g}. The model is the best so far; "
        f"{advice}, raise tol, or lower C{cause}"
    )


def finite(found: Certificate, dtype: np.dtype) -> Certificate:
    """Return the certificate; raise ValueError if a value is not finite, because then there is no usable model."""
    if np.isfinite([found.primal, found.dual, found.violation]).all():
        return found
    raise ValueError(
        f"training overflowed {np.dtype(dtype)}: primal value {found.primal:g}, dual value {found.dual:g}. There "
        "is no model; scale the features (for example to [-1, 1]), lower C"
        + (", or use float64" if dtype == np.float32 else "")
    )


def run(problem: Problem, data: TrainingSet | StoredRows, options: FitOptions, *, state: Any = None) -> Result:
    """Train a model, starting from the dual variables in `state`: a `DualStore` if the rows are in a store."""
    clock = Clock()
    peers = peers_of(options.engine)
    options = with_threads(options, peers)
    variables = None
    if isinstance(data, StoredRows):  # their dual variables serve as the checkpoint
        variables, state = _open_variables(problem, data, options, state), None
        options = replace(options, checkpoints=None)
    recorder = _recorder(problem, data, options, peers)
    saved = recorder.start() if recorder else None
    with interruptible(options, peers) as interrupt:
        with clock.phase("layout"):
            solver = make_solver(problem, data, options, interrupt=interrupt, peers=peers, variables=variables)
            first = None
            if saved is not None:
                first = saved.restore(solver)
            elif state is not None:
                solver.load_state(state)
        history: list[dict[str, Any]] = []
        if saved is not None:
            history += saved.info.history
            clock.add_earlier(saved.info.seconds, saved.info.phases)
        result = finish(solver, data, options, Surroundings(clock, peers, interrupt, recorder, history), first)
    found = result.certificate
    logger.info("%s", found.message)
    if found.exit_reason != "converged" and peers.rank == 0:
        warnings.warn(found.message, ConvergenceWarning, stacklevel=5)
    return result


@contextmanager
def interruptible(options: FitOptions, peers: Peers) -> Iterator[Any]:
    """Yield an interrupt that is requested by Ctrl-C, the time limit or `options.stop_with`."""
    interrupt = core.Interrupt()
    if options.stop_with is not None:
        options.stop_with.add(interrupt)
    if options.time_limit is not None:
        interrupt.stop_after(options.time_limit)
    with listening(interrupt, UNDER_MPIRUN if peers.size > 1 else ALONE):
        yield interrupt


class Surroundings(NamedTuple):
    """Everything around the solver that the training loop needs."""

    clock: Clock
    peers: Peers
    interrupt: Any
    recorder: Recorder | None
    history: list[dict[str, Any]]


def finish(
    solver: Solver, data: Any, options: FitOptions, around: Surroundings, first: Progress | None = None
) -> Result:
    """Advance a solver until its rule is met or its budget is spent; `first` comes from a checkpoint."""
    clock, verbose = around.clock, options.verbose and around.peers.rank == 0
    with ProgressDisplay(options.rule, verbose, by_classes=solver.by_classes) as display:
        found, reason, epochs = _advance(solver, options, around, display, first)
    memory = solver.memory()
    if isinstance(data, TrainingSet):
        memory["data"] += data.X.nbytes  # the caller's rows, in addition to the solver's copy
    state = solver.state() if options.keep_state else None
    with clock.phase("weights"):
        untrained = solver.untrained()
        weights = solver.weights()
    # The training weights are freed before the model's are made: the larger of the two counts.
    arrays = (weights,) if isinstance(weights, np.ndarray) else (weights.data, weights.indices, weights.indptr)
    memory["weights"] = max(memory["weights"], sum(array.nbytes for array in arrays))
    message = message_of(found, reason, options, "warm_start" if around.recorder is None else "resume", data)
    return Result(
        weights=weights,
        untrained=untrained,
        certificate=replace(found, exit_reason=reason, message=message),
        history=around.history,
        times=clock.phases | {"total": clock.seconds},
        memory=memory,
        state=state,
        n_iter=max(1, int(np.ceil(epochs))),
        by_label=solver.by_label(),
    )


def _advance(
    solver: Solver, options: FitOptions, around: Surroundings, display: ProgressDisplay, first: Progress | None
) -> tuple[Certificate, str, float]:
    """Advance the solver to its end; return the last certificate, the exit reason and the number of passes."""
    clock, recorder, history, progress = around.clock, around.recorder, around.history, first
    while True:
        if progress is None:
            with clock.phase("sweeps"):
                progress = solver.advance(options.rule)
        # Clocks and interrupts differ between processes; gather them so that all processes act alike.
        spent = _budget_spent(solver, options, around, progress)
        asked = around.peers.gather((spent, recorder and recorder.due()))
        reason = next((spent for spent, _ in asked if spent is not None), None)
        # Write before the certificate, which recomputes the training weights: an uninterrupted fit would not do so.
        if recorder is not None and (reason is not None or asked[0][1]):
            with clock.phase("checkpoint"):
                recorder.write(solver, history, clock.seconds, clock.phases)
        found = None
        if progress.ready or reason is not None:
            with clock.phase("certificate"):
                found = finite(solver.certificate(), options.dtype)
            if solver.meets(options.rule, found):
                reason = "converged"
        if progress.pass_ended or found is not None:
            history.append(_line(clock, progress, found))
            logger.debug("%s", history[-1])
        display.show(progress, found)
        if reason is not None:
            assert found is not None
            return found, reason, progress.epochs
        progress = None


def _recorder(problem: Problem, data: TrainingSet | StoredRows, options: FitOptions, peers: Peers) -> Recorder | None:
    """Return the recorder, if there are checkpoints; raise ValueError if the ranks train different problems."""
    if isinstance(data, StoredRows) or (options.checkpoints is None and peers.size == 1):
        return None
    same = fingerprint(problem, data, options)
    refuse_different(same, peers)
    return None if options.checkpoints is None else Recorder(options.checkpoints, same, peers)


def _open_variables(problem: Problem, data: StoredRows, options: FitOptions, state: DualStore | None) -> DualStore:
    """Return the store of dual variables for a fit from disk, with the values to start from."""
    about, plan = about_variables(problem, data, options.dtype), options.checkpoints
    if state is not None and state.about == about:
        return state
    if plan is None:
        return DualStore(about, data.store.path)
    return DualStore(about, data.store.path, plan.folder, every=plan.every, resume=plan.resume)


def _budget_spent(solver: Solver, options: FitOptions, around: Surroundings, progress: Progress) -> str | None:
    out_of_time = options.time_limit is not None and around.clock.this_run >= options.time_limit
    if around.interrupt.requested and not out_of_time:
        return "interrupted"
    if out_of_time:
        return "time_limit"
    if progress.exhausted:
        return progress.exhausted
    # Solvers that finish one class after another enforce max_iter themselves.
    running = solver.by_classes and progress.active > 0
    if progress.epochs >= options.max_iter and progress.pass_ended and not running:
        return "max_iter"
    return None
