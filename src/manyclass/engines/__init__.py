"""Where and in what order the work is done."""

from ..peers import MPIEngine, peers_of, started_by_mpirun, together, told_rank, told_size
from .batches import COMPLETE, BatchedFit, Done
from .checkpoint import CheckpointError, CheckpointFolder
from .choice import ENGINES, check_engine, disk_engine
from .class_ranges import least_memory
from .disk_engine import DiskEngine
from .disk_selection import FoldResults, cross_validate
from .dual_store import DualStore, holds_checkpoint
from .fingerprint import fingerprint
from .options import FitOptions
from .recorder import CheckpointPlan
from .shared_rows import join_rows, share_rows
from .stopping import StopAll, listening
from .stored_rows import StoredRows
from .training import Result, run

__all__ = [
    "COMPLETE",
    "ENGINES",
    "BatchedFit",
    "CheckpointError",
    "CheckpointFolder",
    "CheckpointPlan",
    "DiskEngine",
    "Done",
    "DualStore",
    "FitOptions",
    "FoldResults",
    "MPIEngine",
    "Result",
    "StopAll",
    "StoredRows",
    "check_engine",
    "cross_validate",
    "disk_engine",
    "fingerprint",
    "holds_checkpoint",
    "join_rows",
    "least_memory",
    "listening",
    "peers_of",
    "run",
    "share_rows",
    "started_by_mpirun",
    "together",
    "told_rank",
    "told_size",
]
