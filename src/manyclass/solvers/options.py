"""The options of solvers."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

FLOAT32 = np.dtype("float32")
# Marks an option that does not change the bits of a model: a fit can be resumed with another value.
SAME_BITS = {"same bits": True}


@dataclass(frozen=True)
class SolverOptions:
    """Everything that a solver is given besides the loss and the rows.

    Attributes
    ----------
    seed
        Seed for the order of the rows.
    solver
        "auto", "dual", or another solver of the loss.
    leagues
        Number of leagues (only for `solver="leagues"`); by default it depends on the number of classes.
    max_iter
        Maximum number of passes over the rows.
    keep_state
        Whether to keep the dual variables after the fit.
    """

    dtype: np.dtype = FLOAT32
    seed: int = field(default=0, metadata={"parameter": "random_state"})
    threads: int = field(default=1, metadata=SAME_BITS)
    solver: str = "auto"
    leagues: int | None = None
    max_iter: int = field(default=1000, metadata=SAME_BITS)
    keep_state: bool = field(default=False, metadata={"parameter": "warm_start"})

    def bits(self) -> dict[str, Any]:
        """Return the options that the bits of a model depend on, by the estimators' names for them."""
        of_bits = [one for one in fields(SolverOptions) if not one.metadata.get("same bits")]
        return {one.metadata.get("parameter", one.name): getattr(self, one.name) for one in of_bits}
