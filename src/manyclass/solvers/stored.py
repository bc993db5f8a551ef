"""How solvers put themselves into plain arrays, exactly: their numbers as JSON, weights without their zeros."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data.json_content import LARGEST, parse_object, shown

# Without zeros where that halves the array at least: its values are copied to be written.
WORTH_PACKING = 0.5


def numbers_to_array(numbers: dict[str, Any]) -> np.ndarray:
    """Numbers, truth values and strings by name, as the bytes of JSON; NaN and infinity stay what they are."""
    return np.frombuffer(json.dumps(numbers).encode(), np.uint8)


def numbers_from_array(stored: np.ndarray) -> dict[str, Any]:
    """What `numbers_to_array` was given."""
    return parse_object(stored.tobytes())


def of_same_kinds(found: Any, there: Mapping[str, Any]) -> dict[str, Any]:
    """Make sure that numbers from a file have the names and kinds of those that they are to replace.

    Raises
    ------
    ValueError
        Naming the first that does not.
    """
    if not isinstance(found, dict) or set(found) != set(there):
        raise ValueError(f"{shown(found)} does not have the numbers {', '.join(there)}")
    for name, value in there.items():
        # What is not known yet has no kind, or that of the NaN in its place.
        kinds = {int, float, type(None)} if isinstance(value, float | None) else {type(value)}
        if type(found[name]) not in kinds or (type(found[name]) is int and abs(found[name]) > LARGEST):
            raise ValueError(f"{name} is {shown(found[name])}")
    return found


def weights_to_arrays(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Weights as they lie, or one bit for each and the values of those that are not 0."""
    # Bits are compared: a negative zero is not nothing.
    used = weights.view(f"u{weights.itemsize}") != 0
    if np.count_nonzero(used) > WORTH_PACKING * weights.size:
        return {"weights": weights}
    return {"weights.used": np.packbits(used), "weights.values": weights[used]}


def weights_from_arrays(stored: dict[str, np.ndarray], weights: np.ndarray) -> None:
    """Set weights to what `weights_to_arrays` was given."""
    if "weights" in stored:
        fill(weights, "weights", stored["weights"])
        return
    used = np.unpackbits(stored["weights.used"], count=weights.size).view(bool)
    values = np.zeros(np.count_nonzero(used), weights.dtype)
    fill(values, "weights.values", stored["weights.values"])
    weights[:] = 0
    weights[used] = values


def fill(there: np.ndarray, name: str, found: np.ndarray) -> None:
    """Set an array to one from a file, of the same type and shape, and finite.

    Raises
    ------
    ValueError
        For any other.
    """
    if (found.dtype, found.shape) != (there.dtype, there.shape):
        wanted = f"{there.dtype} of shape {there.shape}"
        raise ValueError(f"{name} is {found.dtype} of shape {found.shape}, not {wanted}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} has values that are NaN or infinite")
    there[:] = found
