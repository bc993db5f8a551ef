"""How to train from a store."""

import warnings
from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np

from ..data.sizes import parse_size
from ..problems import LOSSES, Problem
from ..solvers import SolverOptions
from .stored_rows import StoredRows

METHODS = tuple(dict.fromkeys(method for loss in LOSSES.values() for method in loss.from_store))
# If a batch is at least this share of all blocks, visiting its rows a second time pays.
LARGE_SHARE = 1 / 10


@dataclass(frozen=True)
class DiskEngine:
    """Engine that trains from a store on disk.

    Parameters
    ----------
    memory : int or str, default="1GB"
        Memory limit for blocks, weights, dual variables and buffers together, such as "512MB". A fit that needs
        more raises an error before it starts.
    rounds : int, "tol" or "auto", optional
        How often the rows of a batch of blocks are visited before the next batch is loaded. An int is a fixed number
        of visits; "tol" repeats until the rows gain little; "auto" repeats while the next batch is being read, so
        the last bits of the model depend on the speed of the disk. None means 2 if a batch is at least a tenth of
        all blocks, else 1. Methods other than "dual" always make one visit.
    blocks_per_batch : int, optional
        Number of blocks per batch. A batch is visited as one set of rows, and every pass forms new batches. Blocks
        that are always visited alone each fit the shared features in their own way, which takes many more passes.
        None means as many as fit in memory, and at least two.
    method : {"dual", "pegasos", "streamsvm"}, default="dual"
        "dual" is coordinate ascent on the dual and supports all losses. The other two are one-vs-rest baselines:
        "pegasos" is stochastic subgradient descent ("hinge", "squared_hinge", "logistic"), and "streamsvm" grows a
        ball around the rows in a single pass ("squared_hinge") and stops, whatever the gap.
    update : {"row", "block"}, default="row"
        Whether the weights change after each row or once per batch ("pegasos" only).
    together : int, optional
        Deprecated: the old name of `blocks_per_batch`.
    """

    memory: int | str = "1GB"
    rounds: int | str | None = None
    blocks_per_batch: int | None = None
    method: str = "dual"
    update: str = "row"
    together: InitVar[int | None] = None

    def __post_init__(self, together: int | None) -> None:
        if together is not None:
            warnings.warn(
                "DiskEngine(together=...) is deprecated and will be removed in the next version; use "
                "DiskEngine(blocks_per_batch=...)",
                DeprecationWarning,
                stacklevel=3,
            )
            object.__setattr__(self, "blocks_per_batch", together)
        parse_size(self.memory)
        if not (self.rounds in (None, "tol", "auto") or (isinstance(self.rounds, int) and self.rounds >= 1)):
            raise ValueError(f'rounds must be a positive number, "tol", "auto" or None; got {self.rounds!r}')
        blocks = self.blocks_per_batch
        if not (blocks is None or (isinstance(blocks, int) and blocks >= 1)):
            raise ValueError(f"blocks_per_batch must be a positive number or None, got {blocks!r}")
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {self.method!r}")
        if self.update not in ("row", "block"):
            raise ValueError(f"update must be 'row' or 'block', got {self.update!r}")
        if self.update != "row" and self.method != "pegasos":
            raise ValueError(f"update={self.update!r} requires method='pegasos', got {self.method!r}; omit update")
        if self.method != "dual" and self.rounds not in (None, 1):
            raise ValueError(f"method={self.method!r} visits each row once per pass; omit rounds={self.rounds!r}")

    def first_rounds(self, share: float) -> int | str:
        """Return the `rounds` of the first pass; `share` is a batch's share of all blocks."""
        if self.rounds is None:
            return 2 if self.method == "dual" and share >= LARGE_SHARE else 1
        return 1 if self.rounds == "auto" else self.rounds

    def check_loss(self, problem: Problem) -> None:
        """Raise ValueError if the method does not train this loss."""
        trained = [name for name, loss in LOSSES.items() if self.method in loss.from_store]
        if self.method != "dual" and problem.name not in trained:
            names = " or ".join(map(repr, trained))
            raise ValueError(
                f"method={self.method!r} only trains the one-vs-rest losses {names}, not {problem.name!r}; "
                "omit method or choose another loss"
            )


@dataclass(frozen=True)
class DiskJob:
    """Everything that a fit from disk is given: the loss, the rows, and how to train."""

    problem: Problem
    data: StoredRows
    engine: DiskEngine
    options: SolverOptions
    interrupt: Any = None

    @property
    def dtype(self) -> np.dtype:
        """Type of the weights and dual variables."""
        return np.dtype(self.options.dtype)

    @property
    def limit(self) -> int:
        """Memory limit in bytes."""
        return parse_size(self.engine.memory)
