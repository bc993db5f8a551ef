"""The one loop of training: advances a solver until its rule is met, its budget is spent or Ctrl-C comes."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from .._native import core
from ..problems import Problem
from ..solvers import Certificate, LabelBlocks, Progress, Restorable, Solver, StopRule, TrainingSet, slow_because
from .choice import make_solver, peers_of, threads_of
from .disk import about_variables
from .dual_store import DualStore
from .fingerprint import fingerprint, refuse_different
from .progress import ProgressDisplay
from .recorder import CheckpointPlan, Recorder
from .stopping import ALONE, UNDER_MPIRUN, StopAll, listening
from .stored_rows import StoredRows

logger = logging.getLogger("manyclass")


@dataclass(frozen=True)
class Budget:
    """What a fit may spend: passes over the rows, and seconds (None: no limit)."""

    max_iter: int
    time_limit: float | None = None


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
        How each label has ended, where labels end by themselves; see `LabelBlocks.by_label`.
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


def message_of(
    rule: StopRule, found: Certificate, reason: str, budget: Budget, go_on: str | None, data: Any = None
) -> str:
    """Say how a fit ended, and of one that has not converged what to change; `data`: its rows, if they may be why."""
    name = "relative duality gap" if rule.stop == "gap" else "largest violation"
    reached = found.gap if rule.stop == "gap" else found.violation
    if reason == "converged":
        return f"converged: {name} {reached:.3g}, target {rule.tol:.3g}"
    what, advice = {
        "max_iter": (f"stopped after max_iter={budget.max_iter} passes", "raise max_iter"),
        "time_limit": (f"stopped after time_limit={budget.time_limit} seconds", "raise time_limit"),
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
    rule: StopRule,
    budget: Budget,
    *,
    dtype: np.dtype,
    seed: int,
    threads: int,
    state: Any = None,
    keep_state: bool = False,
    verbose: bool = False,
    solver: str = "auto",
    leagues: int | None = None,
    stop_with: StopAll | None = None,
    checkpoints: CheckpointPlan | None = None,
    engine: Any = "memory",
    n_jobs: int | None = None,
    make: Callable[[Any], Solver] | None = None,
) -> Result:
    """Train.

    Parameters
    ----------
    problem : Problem
        The loss.
    data : TrainingSet
        The rows.
    rule : StopRule
        When to stop.
    budget : Budget
        When to stop at the latest.
    dtype, seed, threads
        Type of the weights, seed of the order of rows, number of threads (which the result does not depend on).
    state : dict or DualStore, optional
        Dual variables to start from; of rows in a store, where they are kept.
    keep_state : bool
        Whether to give the dual variables back.
    verbose : bool
        Show progress.
    solver : str
        "auto" or "dual"; "newton" on the primal, for smooth one-vs-rest losses; "leagues", the published schedules
        for "ww" and "llw".
    leagues : int, optional
        Of "ww" with "leagues": their number, if it is not to follow from that of the classes.
    stop_with : StopAll, optional
        Through which many fits are asked to stop at once; Ctrl-C always can.
    checkpoints : CheckpointPlan, optional
        Where to leave what is needed to go on, and whether to go on from what is there. The time limit is that of
        this run; history, passes and times go on.
    engine : str or MPIEngine
        Who advances the solver; see `choice.py`.
    n_jobs : int, optional
        Workers of an engine that has any.
    make : callable, optional
        Makes the solver, given the interrupt of this run, in place of what `choice.py` would make.

    Returns
    -------
    Result
    """
    clock = _Clock()
    peers = peers_of(engine)
    same: dict[str, Any] = {}
    variables = None
    if isinstance(data, StoredRows):  # whose variables are their own checkpoint
        variables, state, checkpoints = _open_variables(problem, data, dtype, state, checkpoints), None, None
    elif checkpoints is not None or peers.size > 1:
        same = fingerprint(
            problem, data, dtype=dtype, seed=seed, keep_state=keep_state, solver=solver, leagues=leagues
        )
        refuse_different(same, peers)
    recorder = Recorder(checkpoints, same, peers) if checkpoints is not None else None
    saved = recorder.start() if recorder else None
    interrupt = core.Interrupt()
    if stop_with is not None:
        stop_with.add(interrupt)
    if budget.time_limit is not None:
        interrupt.stop_after(budget.time_limit)
    history: list[dict[str, Any]] = list(saved.info.history) if saved else []
    shown = ProgressDisplay(rule, verbose and peers.rank == 0)
    with listening(interrupt, UNDER_MPIRUN if peers.size > 1 else ALONE), shown as display:
        with clock.phase("layout"):
            work = (
                make(interrupt)
                if make
                else make_solver(
                    engine,
                    problem,
                    data,
                    dtype=dtype,
                    seed=seed,
                    threads=threads_of(peers, threads, n_jobs),
                    n_jobs=n_jobs,
                    max_iter=budget.max_iter,
                    time_limit=budget.time_limit,
                    keep_state=keep_state,
                    solver=solver,
                    leagues=leagues,
                    interrupt=interrupt,
                    peers=peers,
                    variables=variables,
                )
            )
            last_seen = None
            if saved is not None:
                last_seen = saved.restore(cast(Restorable, work))
            elif state is not None:
                cast(Restorable, work).load_state(state)
        if saved is not None:
            clock.go_on(saved.info.seconds, saved.info.phases)
        for progress in _pieces(work, rule, clock, last_seen):
            # What a clock says or somebody asks for may differ from process to process: all do the same.
            asked = peers.gather((_budget_spent(budget, clock, progress, interrupt), recorder and recorder.due()))
            reason = next((spent for spent, _ in asked if spent is not None), None)
            # Before the certificate, which sets the training weights anew: a fit that was not stopped has none here.
            if recorder is not None and (reason is not None or asked[0][1]):
                with clock.phase("checkpoint"):
                    recorder.write(cast(Restorable, work), history, clock.seconds, clock.phases)
            found = None
            if progress.ready or reason is not None:
                with clock.phase("certificate"):
                    found = finite(work.certificate(), dtype)
                if work.meets(rule) if isinstance(work, LabelBlocks) else rule.met(found):
                    reason = "converged"
            if progress.row_ended or found is not None:
                history.append(_line(clock, progress, found))
                logger.debug("%s", history[-1])
            display.show(progress, found)
            if reason is not None:
                break
        assert found is not None and reason is not None
        memory = work.memory()
        if isinstance(data, TrainingSet):
            memory["data"] += data.X.nbytes  # the caller's rows are held beside the solver's own
        kept = work.state() if keep_state else None
        with clock.phase("weights"):
            untrained = work.untrained()
            weights = work.weights()
    # The weights while training make room for those of the model: the larger of the two counts.
    memory["weights"] = max(memory["weights"], _size(weights))
    go_on = "warm_start" if recorder is None else "resume"
    found = replace(found, exit_reason=reason, message=message_of(rule, found, reason, budget, go_on, data))
    logger.info("%s", found.message)
    if reason != "converged" and peers.rank == 0 and make is None:
        warnings.warn(found.message, ConvergenceWarning, stacklevel=5)
    return Result(
        weights=weights,
        untrained=untrained,
        certificate=found,
        history=history,
        times=clock.phases | {"total": clock.seconds},
        memory=memory,
        state=kept,
        n_iter=max(1, int(np.ceil(progress.epochs))),
        by_label=work.by_label() if isinstance(work, LabelBlocks) else None,
    )


def _open_variables(
    problem: Problem, data: StoredRows, dtype: np.dtype, state: DualStore | None, plan: CheckpointPlan | None
) -> DualStore:
    """Where the variables of a fit from disk are kept, and begin."""
    about = about_variables(problem, data, dtype)
    if state is not None and state.about == about:
        return state
    if plan is None:
        return DualStore(about, data.store.path)
    return DualStore(about, data.store.path, plan.folder, every=plan.every, resume=plan.resume)


def _budget_spent(budget: Budget, clock: _Clock, progress: Progress, interrupt: Any) -> str | None:
    out_of_time = budget.time_limit is not None and clock.this_run >= budget.time_limit
    if interrupt.requested and not out_of_time:
        return "interrupted"
    if out_of_time:
        return "time_limit"
    if progress.exhausted:
        return progress.exhausted
    # Solvers that finish their classes one after another keep to max_iter themselves.
    if progress.epochs >= budget.max_iter and progress.active in (0.0, 1.0) and progress.row_ended:
        return "max_iter"
    return None
