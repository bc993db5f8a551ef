"""Encode labels of any kind as codes 0..K-1 of the sorted classes."""

import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

import numpy as np

NATIVE_KINDS = "biufUSmM"
PLAIN_TYPES = (str, bytes, bool, int, float)
DATES = (np.datetime64, np.timedelta64)

# A fixed-width string array gives every element the width of the longest one, at 4 bytes per character, and so does
# every array made from it, including predictions. Use one only up to this width,
WIDEST = 256
# and only up to this many bytes or this factor over the actual characters; otherwise store strings as objects.
ALWAYS_FIXED = 16 << 20
MOST_PADDING = 16


def as_labels(y: Iterable[Any]) -> np.ndarray:
    """Convert labels to a vector: native arrays as they are, numbers of one type as a native array, else objects."""
    if isinstance(y, np.ma.MaskedArray):
        y = y.tolist()  # None where it is masked
    if not isinstance(y, np.ndarray) and hasattr(y, "__array__"):
        y = np.asarray(y)
    if isinstance(y, np.ndarray):
        if y.ndim != 1:
            raise ValueError(f"labels must be a vector, got an array of shape {y.shape}; try y.ravel()")
        if y.dtype.kind in NATIVE_KINDS:
            return y
    # Convert NumPy scalars to Python's, so that np.int64(3) and 3 are one class and print the same.
    labels = [
        label.item() if isinstance(label, np.generic) and not isinstance(label, DATES) else label for label in y
    ]
    # A native string array would give every row the width of the longest one.
    strings = {type(label) for label in labels} & {str, bytes}
    return _boxed(labels) if strings else native_labels(labels)


def native_labels(labels: Sequence[Any]) -> np.ndarray:
    """Return a native array if all labels have one plain type and it needs little more memory, else objects."""
    kinds = {type(label) for label in labels}
    if kinds == {int, float}:
        kinds = {float}
    if len(kinds) != 1:
        return _boxed(labels)
    kind = kinds.pop()
    if issubclass(kind, DATES):
        return np.asarray(labels)
    if issubclass(kind, datetime) and all(label.tzinfo is None for label in labels):
        dates = np.array(labels, dtype="datetime64[us]")
        return dates if dates.tolist() == labels else _boxed(labels)  # some have nanoseconds
    if kind in PLAIN_TYPES and not (kind in (str, bytes) and _is_wide(labels)):
        array = np.asarray(labels)
        # numpy drops trailing NULs of strings, and integers may be too large for it.
        if array.dtype.kind in NATIVE_KINDS and array.tolist() == labels:
            return array
    return _boxed(labels)


def join_labels(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate vectors of labels."""
    if all(part.dtype.kind in "USO" for part in parts):
        return native_labels(list(itertools.chain.from_iterable(part.tolist() for part in parts)))
    return np.concatenate(parts)


def _is_wide(names: Sequence[Any]) -> bool:
    lengths = [len(name) for name in names]
    longest = max(lengths, default=0)
    return longest > WIDEST or 4 * longest * len(lengths) > max(ALWAYS_FIXED, 4 * MOST_PADDING * sum(lengths))


def _boxed(labels: Sequence[Any]) -> np.ndarray:
    return np.fromiter(labels, object, len(labels))


def _named(place: int, of_row: np.ndarray | None) -> str:
    return f"the label of row {place}" if of_row is None else f"a label of row {of_row[place]}"


def is_missing(label: Any) -> bool:
    """Whether a value is a missing label: None, NaN, NaT or NA."""
    if label is None:
        return True
    try:
        return bool(label != label)
    except TypeError:  # comparisons with pandas.NA are neither true nor false
        return True
    except ValueError:  # an array, which cannot be a label
        return False


def reject_missing(labels: np.ndarray, of_row: np.ndarray | None = None) -> None:
    """Raise ValueError for missing labels. `of_row` gives the row of each label if rows have several."""
    if labels.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, labels), bool, labels.size)
    elif labels.dtype.kind in "fmM":
        missing = np.isnan(labels) if labels.dtype.kind == "f" else np.isnat(labels)
    else:
        return
    if missing.any():
        places = np.flatnonzero(missing)
        count = places.size if of_row is None else np.unique(of_row[places]).size
        rows = "1 row" if count == 1 else f"{count} rows"
        found = labels[places[0]]
        shown = "NaN" if isinstance(found, float | np.floating) else str(found)
        raise ValueError(
            f"{_named(places[0], of_row)} is {shown}, which stands for a missing label ({rows} in all); give every "
            "row a label, or remove the rows without one"
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
    """Sort the classes, by type name and then by `repr` if they cannot be compared."""
    try:
        ordered = sorted(classes)
        # Some types, such as sets, are only partially ordered; sorting them depends on their initial order.
        if all(a < b for a, b in itertools.pairwise(ordered)):
            return ordered
    except TypeError:
        pass
    return sorted(classes, key=lambda label: (type(label).__name__, repr(label)))


def number_labels(labels: np.ndarray, of_row: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes and the code of each label; see `reject_missing` for `of_row`."""
    if labels.dtype.kind != "O":
        classes, codes = np.unique(labels, return_inverse=True)
        if labels.dtype.kind in "US":
            classes = native_labels(classes.tolist())
    else:
        numbers = _number_objects(labels, of_row)
        ordered = _in_order(list(numbers))
        classes = native_labels(ordered)
        numbers = {label: code for code, label in enumerate(ordered)}
        codes = np.fromiter((numbers[label] for label in labels), np.int32, labels.size)
    return classes, codes.astype(np.int32, copy=False)


def encode_labels(y: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels in ascending order, and for each row the index of its label among them.

    Labels are hashable values, which may be mixed; those that cannot be compared are sorted by type name and then by
    `repr`. The result has a native dtype if all labels have one type. Strings are stored as objects if one is longer
    than 256 characters, or if a fixed-width array would need more than 16 MiB and 16 times the actual characters.
    ValueError for a missing label (None, NaN, NaT, NA; the message names its row) and for fewer than two classes.
    """
    labels = as_labels(y)
    if labels.size == 0:
        raise ValueError("y has no labels; at least two classes are needed")
    reject_missing(labels)
    classes, codes = number_labels(labels)
    if classes.size == 1:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}, in all {labels.size} rows; "
            "at least two classes are needed"
        )
    return classes, codes


def _find(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the code of each label, or -1 if it is unknown."""
    if labels.dtype.kind == classes.dtype.kind and labels.dtype.kind in NATIVE_KINDS:
        places = np.minimum(np.searchsorted(classes, labels), classes.size - 1)
        return np.where(classes[places] == labels, places, -1).astype(np.int32)
    # Python equality compares integers and floats exactly, and numbers never equal strings.
    numbers = {label: code for code, label in enumerate(classes.tolist())}
    return np.fromiter((numbers.get(label, -1) for label in labels.tolist()), np.int32, labels.size)


def encode_known(y: Iterable[Any], classes: np.ndarray, *, unknown: Literal["error", "-1"] = "error") -> np.ndarray:
    """Encode labels by known `classes`, as from `encode_labels`; `unknown` ones are an error or become -1."""
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
