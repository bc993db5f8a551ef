"""Where and in what order the work is done."""

from .checkpoint import CheckpointError, CheckpointFolder
from .memory import Budget, Result, StopAll, listening, run
from .recorder import CheckpointPlan

__all__ = [
    "Budget",
    "CheckpointError",
    "CheckpointFolder",
    "CheckpointPlan",
    "Result",
    "StopAll",
    "listening",
    "run",
]
