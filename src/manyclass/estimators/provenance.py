"""How the training rows were read, stored in the model so that it can read new rows the same way."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data import Chain


@dataclass(frozen=True)
class Provenance:
    """Where the training rows come from. Set before the fit, because shards written during the fit include it."""

    chain: Chain = field(default_factory=Chain)  # the preprocessing steps applied to the rows
    settings: dict[str, Any] = field(default_factory=dict)  # JSON values to add to the model's settings
    classes: np.ndarray | None = None  # labels of the columns of an indicator matrix, if they are not 0..K-1
