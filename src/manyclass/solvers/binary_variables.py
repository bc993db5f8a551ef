"""Dual variables of one-vs-rest as plain arrays: select rows or classes, join ranges of classes.

`counts` has the number of rows with variables for each vector of neighbouring classes; `rows` has these rows, one
vector after the other; `lanes` has one bit for each class of the vector that the row has a variable for; `values` has
the variables; `active` has one bit per vector and row, set if the row is still visited.
"""

from collections.abc import Sequence

import numpy as np

from .stream import Variables


def count_bits(lanes: np.ndarray) -> np.ndarray:
    """Return the number of variables of each entry of `lanes`."""
    return np.unpackbits(lanes.view(np.uint8)).reshape(-1, 16).sum(axis=1, dtype=np.int64)


def only_rows(variables: Variables, rows: np.ndarray, before: int) -> Variables:
    """Select rows, ascending, of the `before` rows that `variables` belong to."""
    vectors = variables["counts"].size
    new_row = np.full(before, -1, np.int32)
    new_row[rows] = np.arange(rows.size)
    wanted = new_row[variables["rows"]] >= 0
    of_vector = np.repeat(np.arange(vectors), variables["counts"])[wanted]
    return {
        "counts": np.bincount(of_vector, minlength=vectors),
        "rows": new_row[variables["rows"][wanted]],
        "lanes": variables["lanes"][wanted],
        "values": variables["values"][np.repeat(wanted, count_bits(variables["lanes"]))],
        "active": _pack(_marks(variables, before)[:, rows]),
    }


def only_vectors(variables: Variables, first: int, last: int) -> Variables:
    """Select the vectors of classes `first` to `last - 1`."""
    counts = variables["counts"]
    begin, end = int(counts[:first].sum()), int(counts[:last].sum())
    sizes = count_bits(variables["lanes"][:end])
    here = slice(begin, end)
    return {
        "counts": counts[first:last],
        "rows": variables["rows"][here],
        "lanes": variables["lanes"][here],
        "values": variables["values"][int(sizes[:begin].sum()) : int(sizes.sum())],
        "active": variables["active"].reshape(counts.size, -1)[first:last].reshape(-1),
    }


def no_variables(vectors: int, n_rows: int, dtype: np.dtype) -> Variables:
    """Return the variables at the start: none, with every row to be visited."""
    return {
        "counts": np.zeros(vectors, np.int64),
        "rows": np.empty(0, np.int32),
        "lanes": np.empty(0, np.uint16),
        "values": np.empty(0, dtype),
        "active": _pack(np.ones((vectors, n_rows), np.uint8)),
    }


def join_vectors(parts: Sequence[Variables]) -> Variables:
    """Join neighbouring ranges of classes of the same rows."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _marks(variables: Variables, rows: int) -> np.ndarray:
    bits = variables["active"].reshape(variables["counts"].size, -1)
    return np.unpackbits(bits, axis=1, bitorder="little", count=rows)


def _pack(marks: np.ndarray) -> np.ndarray:
    return np.packbits(marks, axis=1, bitorder="little").reshape(-1)
