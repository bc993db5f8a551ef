"""Where and in what order the work is done."""

from .memory import Budget, Result, run

__all__ = ["Budget", "Result", "run"]
