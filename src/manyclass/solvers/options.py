"""Options of solvers."""

from dataclasses import dataclass

import numpy as np

FLOAT32 = np.dtype("float32")


@dataclass(frozen=True)
class SolverOptions:
    """Everything that a solver is given besides the loss and the rows.

    Attributes
    ----------
    dtype : numpy dtype
        Dtype of weights and dual variables.
    seed : int
        Seed for the order of the rows.
    threads : int
        Number of threads; the result does not depend on it.
    solver : str
        "auto", "dual", or another solver of the loss.
    leagues : int, optional
        Number of leagues (only for `solver="leagues"`); by default it depends on the number of classes.
    max_iter : int
        Maximum number of passes over the rows.
    keep_state : bool
        Whether to keep the dual variables after the fit.
    """

    dtype: np.dtype = FLOAT32
    seed: int = 0
    threads: int = 1
    solver: str = "auto"
    leagues: int | None = None
    max_iter: int = 1000
    keep_state: bool = False
