"""How solvers put themselves into plain arrays, exactly: their numbers as JSON, weights without their zeros."""

import json
from typing import Any

import numpy as np

# Without zeros where that halves the array at least: its values are copied to be written.
WORTH_PACKING = 0.5


def numbers_to_array(numbers: dict[str, Any]) -> np.ndarray:
    """Numbers, truth values and strings by name, as the bytes of JSON; NaN and infinity stay what they are."""
    return np.frombuffer(json.dumps(numbers).encode(), np.uint8)


def numbers_from_array(stored: np.ndarray) -> dict[str, Any]:
    """What `numbers_to_array` was given."""
    return json.loads(stored.tobytes())


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
        weights[:] = stored["weights"]
        return
    weights[:] = 0
    weights[np.unpackbits(stored["weights.used"], count=weights.size).view(bool)] = stored["weights.values"]
