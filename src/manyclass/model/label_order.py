"""The leaves of a label tree, which is all that a model file stores of it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LabelOrder:
    """The codes of all labels in the order of the leaves of a label tree, from which the tree can be rebuilt."""

    labels: np.ndarray
    branching: int

    def check(self, n_classes: int) -> None:
        """Raise ValueError unless this is an order of `n_classes` labels."""
        labels = self.labels
        if labels.dtype != np.int32 or labels.shape != (n_classes,) or self.branching < 2:
            raise ValueError(
                f"a tree over {labels.dtype} labels of shape {labels.shape} with {self.branching} branches, "
                f"but {n_classes} classes"
            )
        seen = np.zeros(n_classes, bool)
        seen[labels[(labels >= 0) & (labels < n_classes)]] = True
        if not seen.all():
            raise ValueError("the leaves of the tree do not contain every class exactly once")
