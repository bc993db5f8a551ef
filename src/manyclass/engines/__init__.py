"""Where and in what order the work is done."""

from .memory import Budget, Result, StopAll, listening, run

__all__ = ["Budget", "Result", "StopAll", "listening", "run"]
