"""Turn `class_weight` into one factor of C per class."""

from numbers import Real
from typing import Any

import numpy as np

from ..data import encode_known


def weights_by_class(
    class_weight: dict[Any, float] | str | None,
    classes: np.ndarray,
    codes: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    """Return the factor of C for each class.

    A dict maps labels to weights. As in scikit-learn, a missing class has weight 1 and an unknown key is ignored; the
    two together are an error, since the key is probably misspelled. "balanced" needs the class code of each row, and
    treats a class whose rows all have sample weight 0 as absent.
    """
    weights = np.ones(len(classes))
    if class_weight is None:
        return weights
    if isinstance(class_weight, dict):
        _fill(weights, class_weight, classes)
        return weights
    assert codes is not None
    counts = np.bincount(codes, weights=sample_weight, minlength=len(classes))
    present = counts > 0
    weights[present] = counts.sum() / (np.count_nonzero(present) * counts[present])
    return weights


def _fill(weights: np.ndarray, class_weight: dict[Any, float], classes: np.ndarray) -> None:
    for key, weight in class_weight.items():
        if not (isinstance(weight, Real) and 0 <= weight < np.inf):
            raise ValueError(
                f"class_weight gives class {key!r} the weight {weight!r}; use finite numbers of at least 0"
            )
    keys = list(class_weight)
    codes = encode_known(keys, classes, unknown="-1")
    known = codes >= 0
    weights[codes[known]] = np.array([*class_weight.values()], float)[known]
    if not known.all() and np.count_nonzero(known) < len(classes):
        missing = np.delete(classes, codes[known]).tolist()
        unknown = [keys[k] for k in np.flatnonzero(~known)]
        raise ValueError(
            f"the classes {_shown(missing)} are not in class_weight, and its keys {_shown(unknown)} are not in y; "
            "correct the keys, or give every class in y a weight"
        )


def _shown(labels: list[Any]) -> str:
    names = ", ".join(map(repr, labels[:5]))
    return f"{names} and {len(labels) - 5} others" if len(labels) > 5 else names
