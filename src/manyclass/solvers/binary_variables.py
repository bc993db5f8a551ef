"""Dual variables of one-vs-rest as plain arrays: some of their rows, or of their classes, or several ranges together.

`counts` has, for each vector of neighbouring classes, the number of rows with variables; `rows` are these rows, one
vector after the other; `lanes` the classes of the vector that they have variables for, a bit each; `values` the
variables; `active` a bit per row and vector: whether the row is still visited.
"""

from collections.abc import Sequence

import numpy as np

from .stream import Variables


def count_bits(lanes: np.ndarray) -> np.ndarray:
    """The number of variables of each row of a vector."""
    return np.unpackbits(lanes.view(np.uint8)).reshape(-1, 16).sum(axis=1, dtype=np.int64)


def only_rows(variables: Variables, rows: np.ndarray, before: int) -> Variables:
    """Keep some rows.

    Parameters
    ----------
    variables : dict of arrays
    rows : ndarray
        Which rows, ascending.
    before : int
        The number of rows that the variables belong to.
    """
    vectors = variables["counts"].size
    place = np.full(before, -1, np.int32)
    place[rows] = np.arange(rows.size)
    kept = place[variables["rows"]] >= 0
    of_vector = np.repeat(np.arange(vectors), variables["counts"])[kept]
    return {
        "counts": np.bincount(of_vector, minlength=vectors),
        "rows": place[variables["rows"][kept]],
        "lanes": variables["lanes"][kept],
        "values": variables["values"][np.repeat(kept, count_bits(variables["lanes"]))],
        "active": _pack(_marks(variables, before)[:, rows]),
    }


def only_vectors(variables: Variables, first: int, last: int) -> Variables:
    """Keep the vectors of classes `first` to `last - 1`."""
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
    """Where all rows begin: no variables, and every row is to be visited."""
    return {
        "counts": np.zeros(vectors, np.int64),
        "rows": np.empty(0, np.int32),
        "lanes": np.empty(0, np.uint16),
        "values": np.empty(0, dtype),
        "active": _pack(np.ones((vectors, n_rows), np.uint8)),
    }


def join_vectors(parts: Sequence[Variables]) -> Variables:
    """Put neighbouring ranges of classes together; all of them belong to the same rows."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _marks(variables: Variables, rows: int) -> np.ndarray:
    bits = variables["active"].reshape(variables["counts"].size, -1)
    return np.unpackbits(bits, axis=1, bitorder="little", count=rows)


def _pack(marks: np.ndarray) -> np.ndarray:
    return np.packbits(marks, axis=1, bitorder="little").reshape(-1)
