"""The options of a fit, as passed from the estimator to the solver."""

from dataclasses import dataclass, field, fields
from typing import Any

from ..solvers import SolverOptions, StopRule
from .recorder import CheckpointPlan
from .stopping import StopAll


@dataclass(frozen=True)
class FitOptions(SolverOptions):
    """Options of a fit: everything except the loss and the rows.

    Attributes
    ----------
    n_jobs : int, optional
        Number of workers, for engines that have workers.
    checkpoints : CheckpointPlan, optional
        The time limit applies to this run only; history, passes and times continue from the checkpoint.
    stop_with : StopAll, optional
        Stops several fits at once. Ctrl-C always works.
    """

    rule: StopRule = field(default_factory=lambda: StopRule("gap", 0.01))
    time_limit: float | None = None
    engine: Any = "memory"
    n_jobs: int | None = None
    checkpoints: CheckpointPlan | None = None
    stop_with: StopAll | None = None
    verbose: bool = False

    def of_solver(self) -> SolverOptions:
        """Return the solver options alone, which can be sent to other processes."""
        return SolverOptions(**{one.name: getattr(self, one.name) for one in fields(SolverOptions)})
