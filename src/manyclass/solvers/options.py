"""What a solver is told besides the loss and the rows."""

from dataclasses import dataclass

import numpy as np

FLOAT32 = np.dtype("float32")


@dataclass(frozen=True)
class SolverOptions:
    """Everything but the loss and the rows that solvers know of a fit.

    Attributes
    ----------
    dtype : numpy dtype
        Type of weights and dual variables.
    seed : int
        Seed of the order of rows.
    threads : int
        Number of threads, which the result does not depend on.
    solver : str
        "auto", "dual", or another solver of the loss.
    leagues : int, optional
        Number of leagues (only with `solver="leagues"`); None for one that follows from the classes.
    max_iter : int
        Passes over the rows, at most.
    keep_state : bool
        Whether the dual variables are wanted when the fit has ended.
    """

    dtype: np.dtype = FLOAT32
    seed: int = 0
    threads: int = 1
    solver: str = "auto"
    leagues: int | None = None
    max_iter: int = 1000
    keep_state: bool = False
