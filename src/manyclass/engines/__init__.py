"""Where and in what order the work is done."""

from .choice import ENGINES, check_engine
from .memory import Budget, Result, run
from .stopping import StopAll, listening

__all__ = ["ENGINES", "Budget", "Result", "StopAll", "check_engine", "listening", "run"]
