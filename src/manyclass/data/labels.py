"""Labels of any kind to codes 0..K-1 and the sorted classes behind them."""

import itertools
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

NATIVE_KINDS = "biufUSmM"
PLAIN_TYPES = (str, bytes, bool, int, float)


def as_labels(y: Iterable[Any]) -> np.ndarray:
    """Make a vector of native type where all labels are of one plain kind, else of objects."""
    if not isinstance(y, np.ndarray) and hasattr(y, "__array__"):
        y = np.asarray(y)
    if isinstance(y, np.ndarray):
        if y.ndim != 1:
            raise ValueError(f"labels must be a vector, got an array of shape {y.shape}; try y.ravel()")
        if y.dtype.kind in NATIVE_KINDS:
            return y
    # Scalars of numpy become Python's, so that np.int64(3) and 3 are one class and show alike.
    labels = [label.item() if isinstance(label, np.generic) else label for label in y]
    kinds = {type(label) for label in labels}
    if kinds == {int, float}:
        kinds = {float}
    if len(kinds) == 1 and kinds.pop() in PLAIN_TYPES:
        array = np.asarray(labels)
        # numpy drops trailing NULs of strings, and integers may be too large for it.
        if array.dtype.kind in NATIVE_KINDS and array.tolist() == labels:
            return array
    boxed = np.empty(len(labels), dtype=object)
    for row, label in enumerate(labels):
        boxed[row] = label
    return boxed


def _named(place: int, of_row: np.ndarray | None) -> str:
    return f"the label of row {place}" if of_row is None else f"a label of row {of_row[place]}"


def reject_nan(labels: np.ndarray, of_row: np.ndarray | None = None) -> None:
    """Refuse NaN; `of_row`: the row of each label, where rows may have several."""
    if labels.dtype.kind == "O":
        missing = np.fromiter((label != label for label in labels), bool, labels.size)
    elif labels.dtype.kind in "fmM":
        missing = np.isnan(labels) if labels.dtype.kind == "f" else np.isnat(labels)
    else:
        return
    if missing.any():
        places = np.flatnonzero(missing)
        rows = places.size if of_row is None else np.unique(of_row[places]).size
        raise ValueError(
            f"{_named(places[0], of_row)} is NaN ({rows} rows in all); give these rows a label or remove them"
        )


def _number_objects(labels: np.ndarray, of_row: np.ndarray | None) -> dict[Any, int]:
    numbers: dict[Any, int] = {}
    for place, label in enumerate(labels):
        try:
            numbers.setdefault(label, len(numbers))
        except TypeError as error:
            raise TypeError(
                f"{_named(place, of_row)} is a {type(label).__name__}, which is not hashable; "
                "use numbers, strings or tuples as labels"
            ) from error
    return numbers


def _in_order(classes: list[Any]) -> list[Any]:
    """Sort, or where the classes have no common order, arrange them by type and then by how they print."""
    try:
        ordered = sorted(classes)
        # Some types (sets) have only a partial order, under which sorting depends on where one starts.
        if all(a < b for a, b in itertools.pairwise(ordered)):
            return ordered
    except TypeError:
        pass
    return sorted(classes, key=lambda label: (type(label).__name__, repr(label)))


def number_labels(labels: np.ndarray, of_row: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Classes in their order, and the code of each label; `of_row`: as for `reject_nan`."""
    if labels.dtype.kind != "O":
        classes, codes = np.unique(labels, return_inverse=True)
    else:
        numbers = _number_objects(labels, of_row)
        ordered = _in_order(list(numbers))
        classes = np.empty(len(ordered), dtype=object)
        for code, label in enumerate(ordered):
            classes[code] = label
            numbers[label] = code
        codes = np.fromiter((numbers[label] for label in labels), np.int32, labels.size)
    return classes, codes.astype(np.int32, copy=False)


def encode_labels(y: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Number the classes that occur.

    Parameters
    ----------
    y : iterable of hashable labels
        Numbers, strings, tuples, None, also mixed.

    Returns
    -------
    classes : ndarray of shape (K,)
        Each label once, in ascending order; of a native type where all labels are of one. Labels that
        cannot be compared are arranged by type name and then by `repr`.
    codes : int32 ndarray of shape (n,)
        `classes[codes]` are the labels again.

    Raises
    ------
    ValueError
        If a label is NaN, or if there are not at least two classes.
    """
    labels = as_labels(y)
    if labels.size == 0:
        raise ValueError("y has no labels; at least two classes are needed")
    reject_nan(labels)
    classes, codes = number_labels(labels)
    if classes.size == 1:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}, in all {labels.size} rows; "
            "at least two classes are needed"
        )
    return classes, codes


def _find(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Give the code of each label, -1 where it is unknown."""
    if labels.dtype.kind == classes.dtype.kind and labels.dtype.kind in "biufUS":
        places = np.minimum(np.searchsorted(classes, labels), classes.size - 1)
        return np.where(classes[places] == labels, places, -1).astype(np.int32)
    # Python's own equality: exact between integers and floats, and never true between numbers and strings.
    numbers = {label: code for code, label in enumerate(classes.tolist())}
    return np.fromiter((numbers.get(label, -1) for label in labels.tolist()), np.int32, labels.size)


def encode_known(y: Iterable[Any], classes: np.ndarray, *, unknown: Literal["error", "-1"] = "error") -> np.ndarray:
    """Encode labels by classes that are known already, such as those of a fitted model.

    Parameters
    ----------
    y : iterable of hashable labels
        What to encode.
    classes : ndarray of shape (K,)
        As `encode_labels` gives them.
    unknown : "error" or "-1"
        What to do with a label that is not among the classes: raise, or give it the code -1.

    Returns
    -------
    codes : int32 ndarray of shape (n,)
    """
    if unknown not in ("error", "-1"):
        raise ValueError(f'unknown must be "error" or "-1", got {unknown!r}')
    labels = as_labels(y)
    codes = _find(labels, classes)
    if unknown == "error" and (codes < 0).any():
        rows = np.flatnonzero(codes < 0)
        examples = list(dict.fromkeys(repr(label) for label in labels[rows].tolist()))
        more = f" and {len(examples) - 5} others" if len(examples) > 5 else ""
        raise ValueError(
            f"{rows.size} of {labels.size} labels are not among the {classes.size} known classes, "
            f"the first in row {rows[0]}: {', '.join(examples[:5])}{more}; "
            'remove these rows or encode them with unknown="-1"'
        )
    return codes
