"""How the rows of a fit were read, which the model remembers in order to read more of the kind."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data import Chain


@dataclass(frozen=True)
class Provenance:
    """Known before a fit, since a model that is written while it is trained has it from its first shard on.

    Attributes
    ----------
    chain : Chain
        The steps that the rows have gone through.
    settings : dict
        Entries for the model's settings; plain values that JSON can hold.
    classes : ndarray of shape (K,), optional
        Where sets of labels are a matrix, what its columns are, if not 0..K-1.
    """

    chain: Chain = field(default_factory=Chain)
    settings: dict[str, Any] = field(default_factory=dict)
    classes: np.ndarray | None = None
