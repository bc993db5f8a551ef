"""Convert class labels to plain arrays and back, preserving their type."""

from collections.abc import Mapping

import numpy as np

from .labels import native_labels
from .strings import read_strings, string_arrays

NUMBERS = "biuf"
WIDEST = 8


def class_tensors(classes: np.ndarray) -> dict[str, np.ndarray]:
    """Convert ascending labels (all numbers, booleans or strings) to arrays that a safetensors file can hold."""
    if classes.dtype.kind in NUMBERS and classes.dtype.itemsize <= WIDEST:
        tensors = {"classes": np.ascontiguousarray(classes, classes.dtype.newbyteorder("<"))}
    else:
        tensors = _string_tensors(classes)
    _check_ascending(classes)
    return tensors


def _string_tensors(classes: np.ndarray) -> dict[str, np.ndarray]:
    for label in classes.tolist():
        if not isinstance(label, str):
            raise TypeError(
                f"the label {label!r} is of type {type(label).__name__}; a model file holds labels that are "
                "all strings, all numbers or all booleans; convert them before training"
            )
    try:
        utf8, offsets = string_arrays(classes.tolist(), "strict")
    except UnicodeEncodeError as error:
        raise TypeError(f"the label {error.object!r} is not valid Unicode; rename the class") from error
    return {"classes.utf8": utf8, "classes.offsets": offsets}


def _check_ascending(classes: np.ndarray) -> None:
    if classes.ndim != 1:
        raise ValueError(f"the classes must be a vector, got shape {classes.shape}")
    in_order = classes[:-1] < classes[1:]
    if not in_order.all():
        place = int(np.argmin(in_order))
        first, second = classes[place : place + 2].tolist()
        raise ValueError(f"the classes are not ascending: {second!r} comes after {first!r}")


def read_classes(tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Restore the labels from the arrays of `class_tensors`, which may be among others."""
    classes = tensors["classes"] if "classes" in tensors else _read_strings(tensors)
    if classes.dtype.kind == "b":
        classes = classes.view(np.uint8) != 0  # a file may hold any byte
    _check_ascending(classes)
    if classes.dtype.kind == "f" and np.isnan(classes).any():
        raise ValueError("a class is NaN")
    return classes


def _read_strings(tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    if not {"classes.utf8", "classes.offsets"} <= set(tensors):
        raise ValueError("it has no classes")
    names = read_strings(tensors["classes.utf8"], tensors["classes.offsets"], "class names", "strict")
    if not names:
        raise ValueError("it has no classes")
    return native_labels(names)
