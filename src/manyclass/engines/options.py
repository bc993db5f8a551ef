"""Everything that a fit is told, from the estimator to the solver."""

from dataclasses import dataclass, field, fields
from typing import Any

from ..solvers import SolverOptions, StopRule
from .recorder import CheckpointPlan
from .stopping import StopAll


@dataclass(frozen=True)
class FitOptions(SolverOptions):
    """What a fit is told besides the loss and the rows.

    Attributes
    ----------
    rule : StopRule
        When the fit is done.
    time_limit : float, optional
        Seconds, at most.
    engine : str, DiskEngine or MPIEngine
        Who advances the solver; see `choice.py`.
    n_jobs : int, optional
        Workers of an engine that has any.
    checkpoints : CheckpointPlan, optional
        Where to leave what is needed to resume, and whether to resume from what is there. The time limit is that of
        this run; history, passes and times go on.
    stop_with : StopAll, optional
        Through which many fits are asked to stop at once; Ctrl-C always can.
    verbose : bool
        Show progress.
    """

    rule: StopRule = field(default_factory=lambda: StopRule("gap", 0.01))
    time_limit: float | None = None
    engine: Any = "memory"
    n_jobs: int | None = None
    checkpoints: CheckpointPlan | None = None
    stop_with: StopAll | None = None
    verbose: bool = False

    def of_solver(self) -> SolverOptions:
        """The part that solvers know, which can be sent to other processes."""
        return SolverOptions(**{one.name: getattr(self, one.name) for one in fields(SolverOptions)})
