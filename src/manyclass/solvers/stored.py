"""Exact conversion of solvers to plain arrays: numbers as JSON, weights without their zeros."""

import json
from typing import Any

import numpy as np

from ..data.json_content import parse_object

# Arrays that hold dual variables by rows.
CSR = ("indptr", "classes", "values")
# Pack weights if at most this share is not 0: the values are copied in order to be written.
WORTH_PACKING = 0.5


def numbers_to_array(numbers: dict[str, Any]) -> np.ndarray:
    """Return numbers, booleans and strings as the bytes of a JSON object, including NaN and infinity."""
    return np.frombuffer(json.dumps(numbers).encode(), np.uint8)


def numbers_from_array(stored: np.ndarray) -> dict[str, Any]:
    """Invert `numbers_to_array`."""
    return parse_object(stored.tobytes())


def weights_to_arrays(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return weights as they are, or as one bit per weight and the values that are not 0."""
    # Compare bits, to keep negative zeros.
    used = weights.view(f"u{weights.itemsize}") != 0
    if np.count_nonzero(used) > WORTH_PACKING * weights.size:
        return {"weights": weights}
    return {"weights.used": np.packbits(used), "weights.values": weights[used]}


def weights_from_arrays(stored: dict[str, np.ndarray], weights: np.ndarray) -> None:
    """Set weights from the result of `weights_to_arrays`."""
    if "weights" in stored:
        fill(weights, "weights", stored["weights"])
        return
    used = np.unpackbits(stored["weights.used"], count=weights.size).view(bool)
    values = np.zeros(np.count_nonzero(used), weights.dtype)
    fill(values, "weights.values", stored["weights.values"])
    weights[:] = 0
    weights[used] = values


def fill(there: np.ndarray, name: str, found: np.ndarray) -> None:
    """Set an array from one in a file; raise ValueError if type or shape differ, or a value is not finite."""
    if (found.dtype, found.shape) != (there.dtype, there.shape):
        expected = f"{there.dtype} of shape {there.shape}"
        raise ValueError(f"{name} is {found.dtype} of shape {found.shape}, not {expected}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} has values that are NaN or infinite")
    there[:] = found
