"""Where and in what order the work is done."""

from ..peers import peers_of
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
