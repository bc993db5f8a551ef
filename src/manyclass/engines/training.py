"""The one loop of training: advances a solver until its rule is met, its budget is spent or Ctrl-C comes."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from .._native import core
from ..problems import Problem
from ..solvers import Certificate, Peers, Progress, Solver, StopRule, TrainingSet, slow_because
from .choice import make_solver, peers_of, with_threads
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
    """What a fit gives.

    Attributes
    ----------
    weights : ndarray or csr_matrix of shape (features, K)
        The constant feature, if any, is the last row.
    untrained : ndarray
        Codes of classes that were never reached.
    certificate : Certificate
        Over all variables, with exit reason and message.
    history : list of dict
        One entry per pass: seconds, epochs, primal, dual, gap, violation, active, and certified: True where these
        figures are a certificate, False where they are the solver's own estimate.
    times : dict
        Seconds of each phase.
    memory : dict
        Bytes of data, weights and dual variables while training.
    state : dict of arrays, DualStore or None
        The dual variables, if they were asked for.
    n_iter : int
        Passes over the rows.
    by_label : ndarray, optional
        How each label ended, where labels end by themselves; see `LabelBlocks.by_label`.
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


class _Clock:
    """Seconds of each phase, since the start of this run, and with those of the runs that it goes on from."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.before = 0.0
        self.phases: dict[str, float] = {}

    def go_on(self, seconds: float, phases: dict[str, float]) -> None:
        """Count from where another run has ended."""
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


def _size(weights: np.ndarray | sp.csr_matrix) -> int:
    if isinstance(weights, np.ndarray):
        return weights.nbytes
    return weights.data.nbytes + weights.indices.nbytes + weights.indptr.nbytes


def _line(clock: _Clock, progress: Progress, found: Certificate | None) -> dict[str, Any]:
    seen = found or Certificate(progress.primal, progress.dual, progress.violation)
    return {
        "seconds": clock.seconds,
        "epochs": progress.epochs,
        "primal": seen.primal,
        "dual": seen.dual,
        "gap": seen.gap,
        "violation": seen.violation,
        "active": progress.active,
        "certified": found is not None,
    }


def message_of(found: Certificate, reason: str, options: FitOptions, go_on: str | None, data: Any = None) -> str:
    """Say how a fit ended, and of one that has not converged what to change; `data`: its rows, if they may be why."""
    rule = options.rule
    name = "relative duality gap" if rule.stop == "gap" else "largest violation"
    reached = found.gap if rule.stop == "gap" else found.violation
    if reason == "converged":
        return f"converged: {name} {reached:.3g}, target {rule.tol:.3g}"
    what, advice = {
        "max_iter": (f"stopped after max_iter={options.max_iter} passes", "raise max_iter"),
        "time_limit": (f"stopped after time_limit={options.time_limit} seconds", "raise time_limit"),
        "one_pass": ("stopped after one pass, as StreamSVM does,", "train with method='dual'"),
        "interrupted": ("interrupted", f"fit again with {go_on}=True to go on" if go_on else "fit again"),
    }[reason]
    slow = reason in ("max_iter", "time_limit") and isinstance(data, TrainingSet)
    cause = f". {because}" if slow and (because := slow_because(data.X)) else ""
    return (
        f"{what} before the target: {name} {reached:.3g}, target {rule.tol:.3g}. The model is the best so far; "
        f"{advice}, raise tol, or lower C{cause}"
    )


def finite(found: Certificate, dtype: np.dtype) -> Certificate:
    """Refuse a certificate that says nothing, and with it the weights that it belongs to.

    Raises
    ------
    ValueError
        If a value is not finite.
    """
    if np.isfinite([found.primal, found.dual, found.violation]).all():
        return found
    raise ValueError(
        f"training has overflowed {np.dtype(dtype)}: primal value {found.primal:g}, dual value {found.dual:g}. There "
        "is no model; scale the features (for example to [-1, 1]), lower C"
        + (", or use float64" if dtype == np.float32 else "")
    )


def _pieces(work: Solver, rule: StopRule, clock: _Clock, first: Progress | None) -> Iterator[Progress]:
    """What the solver says after each piece of work, without end; `first` is what a checkpoint remembers."""
    if first is not None:
        yield first
    while True:
        with clock.phase("sweeps"):
            progress = work.advance(rule)
        yield progress


def run(
    problem: Problem,
    data: TrainingSet | StoredRows,
    options: FitOptions,
    *,
    state: Any = None,
    make: Callable[[Any], Solver] | None = None,
) -> Result:
    """Train.

    Parameters
    ----------
    problem : Problem
        The loss.
    data : TrainingSet or StoredRows
        The rows.
    options : FitOptions
        How to train, and when to stop.
    state : dict or DualStore, optional
        Dual variables to start from; of rows in a store, where they are kept.
    make : callable, optional
        Makes the solver, given the interrupt of this run, in place of what `choice.py` would make.

    Returns
    -------
    Result
    """
    clock = _Clock()
    peers = peers_of(options.engine)
    variables = None
    if isinstance(data, StoredRows):  # whose variables are their own checkpoint
        variables, state = _open_variables(problem, data, options, state), None
        options = replace(options, checkpoints=None)
    recorder = _recorder(problem, data, options, peers)
    saved = recorder.start() if recorder else None
    interrupt = core.Interrupt()
    if options.stop_with is not None:
        options.stop_with.add(interrupt)
    if options.time_limit is not None:
        interrupt.stop_after(options.time_limit)
    shown = ProgressDisplay(options.rule, options.verbose and peers.rank == 0)
    with listening(interrupt, UNDER_MPIRUN if peers.size > 1 else ALONE), shown as display:
        with clock.phase("layout"):
            if make is not None:
                work = make(interrupt)
            else:
                own = with_threads(options, peers)
                work = make_solver(problem, data, own, interrupt=interrupt, peers=peers, variables=variables)
            last_seen = None
            if saved is not None:
                last_seen = saved.restore(work)
            elif state is not None:
                work.load_state(state)
        history: list[dict[str, Any]] = []
        if saved is not None:
            history += saved.info.history
            clock.go_on(saved.info.seconds, saved.info.phases)
        pieces = _pieces(work, options.rule, clock, last_seen)
        ended = _advance(pieces, work, options, _Surroundings(clock, peers, interrupt, recorder, history, display))
        memory = work.memory()
        if isinstance(data, TrainingSet):
            memory["data"] += data.X.nbytes  # the caller's rows are held beside the solver's own
        kept = work.state() if options.keep_state else None
        with clock.phase("weights"):
            untrained = work.untrained()
            weights = work.weights()
    # The weights while training make room for those of the model: the larger of the two counts.
    memory["weights"] = max(memory["weights"], _size(weights))
    go_on = "warm_start" if recorder is None else "resume"
    message = message_of(ended.found, ended.reason, options, go_on, data)
    found = replace(ended.found, exit_reason=ended.reason, message=message)
    logger.info("%s", found.message)
    if ended.reason != "converged" and peers.rank == 0 and make is None:
        warnings.warn(found.message, ConvergenceWarning, stacklevel=5)
    return Result(
        weights=weights,
        untrained=untrained,
        certificate=found,
        history=history,
        times=clock.phases | {"total": clock.seconds},
        memory=memory,
        state=kept,
        n_iter=max(1, int(np.ceil(ended.epochs))),
        by_label=work.by_label(),
    )


def _recorder(problem: Problem, data: TrainingSet | StoredRows, options: FitOptions, peers: Peers) -> Recorder | None:
    """Who writes checkpoints, if anybody; refuse ranks that are about to train something else."""
    if isinstance(data, StoredRows) or (options.checkpoints is None and peers.size == 1):
        return None
    same = fingerprint(problem, data, options)
    refuse_different(same, peers)
    return None if options.checkpoints is None else Recorder(options.checkpoints, same, peers)


class _Surroundings(NamedTuple):
    """What goes on around a solver."""

    clock: _Clock
    peers: Peers
    interrupt: Any
    recorder: Recorder | None
    history: list[dict[str, Any]]
    display: ProgressDisplay


class _Ended(NamedTuple):
    """The last certificate of a fit, why it ended, and after how many passes."""

    found: Certificate
    reason: str
    epochs: float


def _advance(pieces: Iterator[Progress], work: Solver, options: FitOptions, around: _Surroundings) -> _Ended:
    """Advance the solver until its rule is met or its budget is spent."""
    clock, peers, interrupt, recorder, history, display = around
    for progress in pieces:
        # What a clock says or somebody asks for may differ from process to process: all do the same.
        asked = peers.gather((_budget_spent(options, clock, progress, interrupt), recorder and recorder.due()))
        reason = next((spent for spent, _ in asked if spent is not None), None)
        # Before the certificate, which sets the training weights anew: a fit that was not stopped has none here.
        if recorder is not None and (reason is not None or asked[0][1]):
            with clock.phase("checkpoint"):
                recorder.write(work, history, clock.seconds, clock.phases)
        found = None
        if progress.ready or reason is not None:
            with clock.phase("certificate"):
                found = finite(work.certificate(), options.dtype)
            if work.meets(options.rule, found):
                reason = "converged"
        if progress.pass_ended or found is not None:
            history.append(_line(clock, progress, found))
            logger.debug("%s", history[-1])
        display.show(progress, found)
        if reason is not None:
            assert found is not None
            return _Ended(found, reason, progress.epochs)
    raise AssertionError("a solver has no last piece of work")


def _open_variables(problem: Problem, data: StoredRows, options: FitOptions, state: DualStore | None) -> DualStore:
    """Where the variables of a fit from disk are kept, and begin."""
    about, plan = about_variables(problem, data, options.dtype), options.checkpoints
    if state is not None and state.about == about:
        return state
    if plan is None:
        return DualStore(about, data.store.path)
    return DualStore(about, data.store.path, plan.folder, every=plan.every, resume=plan.resume)


def _budget_spent(options: FitOptions, clock: _Clock, progress: Progress, interrupt: Any) -> str | None:
    out_of_time = options.time_limit is not None and clock.this_run >= options.time_limit
    if interrupt.requested and not out_of_time:
        return "interrupted"
    if out_of_time:
        return "time_limit"
    if progress.exhausted:
        return progress.exhausted
    # Solvers that finish their classes one after another keep to max_iter themselves.
    if progress.epochs >= options.max_iter and progress.active in (0.0, 1.0) and progress.pass_ended:
        return "max_iter"
    return None
