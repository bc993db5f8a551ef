"""The leaves of a tree over labels: all that a model file has to hold of it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LabelOrder:
    """What a tree over labels is made from again.

    Attributes
    ----------
    labels : int32 ndarray of shape (K,)
        The codes of all labels in the order of the leaves.
    branching : int
        The children of a node at the most.
    """

    labels: np.ndarray
    branching: int

    def check(self, n_classes: int) -> None:
        """Raise ValueError unless this is an order of so many labels."""
        labels = self.labels
        if labels.dtype != np.int32 or labels.shape != (n_classes,) or self.branching < 2:
            raise ValueError(
                f"a tree over {labels.dtype} labels of shape {labels.shape} with {self.branching} branches, "
                f"but {n_classes} classes"
            )
        seen = np.zeros(n_classes, bool)
        seen[labels[(labels >= 0) & (labels < n_classes)]] = True
        if not seen.all():
            raise ValueError("the leaves of the tree are not all classes, each once")
