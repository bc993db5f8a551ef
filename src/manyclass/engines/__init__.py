"""Where and in what order the work is done."""

from .checkpoint import CheckpointError, CheckpointFolder
from .choice import ENGINES, check_engine, peers_of
from .mpi import MPIEngine, started_by_mpirun, together, told_rank, told_size
from .recorder import CheckpointPlan
from .stopping import StopAll, listening
from .training import Budget, Result, run

__all__ = [
    "ENGINES",
    "Budget",
    "CheckpointError",
    "CheckpointFolder",
    "CheckpointPlan",
    "MPIEngine",
    "Result",
    "StopAll",
    "check_engine",
    "listening",
    "peers_of",
    "run",
    "started_by_mpirun",
    "together",
    "told_rank",
    "told_size",
]
