"""Encode several labels per row as a sparse indicator matrix with one column per class."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Literal, TypeGuard

import numpy as np
import scipy.sparse as sp

from .labels import as_labels, encode_known, number_labels, reject_missing
from .matrix import chosen_entries, index_type, pointers

# Types that hold the labels of one row. A tuple is hashable, so it counts as a single label.
COLLECTIONS = (list, set, frozenset, np.ndarray)


def has_label_sets(y: Any) -> bool:
    """Whether `y` holds a set of labels per row rather than one label per row.

    True for a sparse matrix, for a two-dimensional array with more than one column, and for a list or vector in which
    a row is a list, set, frozenset or array.
    """
    y = _unwrapped(y)
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return y.shape[1] > 1
    return sp.issparse(y) or (_is_list(y) and any(map(_is_set, y)))


def is_dense_indicator(y: Any) -> bool:
    """Whether label sets are an array of 0 and 1, or a list of its rows, of the same length of at least 2."""
    y = _unwrapped(y)
    if _is_list(y):
        lengths = {len(row) if isinstance(row, list | np.ndarray) else -1 for row in y}
        if len(lengths) != 1 or lengths.pop() < 2:
            return False
        array = np.array([list(row) for row in y], dtype=object)
        return array.ndim == 2 and all(_is_bit(value) for value in array.flat)
    return not sp.issparse(y)


def encode_label_sets(y: Any) -> tuple[np.ndarray, sp.csr_matrix]:
    """Find the classes and encode any number of labels per row as an indicator matrix.

    Parameters
    ----------
    y : sparse matrix or array of shape (n, K), or sequence of n collections of labels
        Either an indicator of zeros and ones, whose columns are the classes 0..K-1 (a column may be empty), or a
        list, set or array of labels per row, of any kind that `encode_labels` accepts. A set may be empty;
        duplicates count once.

    Returns
    -------
    classes : ndarray of shape (K,)
        The column numbers, or the labels that occur, ordered as by `encode_labels`.
    Y : csr_matrix of shape (n, K)
        Ones, with sorted indices.

    Raises
    ------
    ValueError, TypeError
        If an indicator value is neither 0 nor 1, if a label is missing or not hashable (the message names its row),
        or if no row has a label.
    """
    y = _unwrapped(y)
    if not _is_list(y) or is_dense_indicator(y):
        Y = _indicator(y)
        classes = np.arange(Y.shape[1])
    else:
        labels, ptr = _flat(y)
        of_row = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
        reject_missing(labels, of_row)
        classes, codes = number_labels(labels, of_row)
        Y = _of_codes(codes, ptr, classes.size)
    if Y.nnz == 0:
        raise ValueError(f"none of the {Y.shape[0]} rows of y has a label; at least one label is needed")
    return classes, Y


def encode_known_sets(
    y: Any, classes: np.ndarray, *, unknown: Literal["error", "count"] = "error"
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Encode label sets with known classes, such as those of a fitted model.

    Parameters
    ----------
    y : as for `encode_label_sets`
        The columns of a matrix correspond to `classes`.
    classes : ndarray of shape (K,)
        The classes, as returned by `encode_label_sets`.
    unknown : "error" or "count"
        How to treat labels that are not among the classes: raise an error, or count them.

    Returns
    -------
    Y : csr_matrix of shape (n, K)
        Ones for the known labels of each row.
    unknown : int64 ndarray of shape (n,)
        The number of unknown labels per row.
    """
    if unknown not in ("error", "count"):
        raise ValueError(f'unknown must be "error" or "count", got {unknown!r}')
    y = _unwrapped(y)
    if not _is_list(y) or is_dense_indicator(y):
        Y = _indicator(y)
        if Y.shape[1] != len(classes):
            raise ValueError(
                f"y has {Y.shape[1]} columns, but there are {len(classes)} classes; pass one column per class, or "
                "the labels themselves as a list of sets"
            )
        return Y, np.zeros(Y.shape[0], np.int64)
    labels, ptr = _flat(y)
    numbered, codes = number_labels(labels, np.repeat(np.arange(ptr.size - 1), np.diff(ptr)))
    Y = _of_codes(codes, ptr, numbered.size)
    return keep_known(Y, numbered, classes, unknown=unknown)


def keep_known(
    Y: sp.csr_matrix, labels: np.ndarray, classes: np.ndarray, *, unknown: Literal["error", "count"] = "error"
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Map an indicator whose columns are `labels` to one whose columns are `classes`; see `encode_known_sets`."""
    if Y.nnz == 0:
        return sp.csr_matrix((Y.shape[0], len(classes)), dtype=np.int32), np.zeros(Y.shape[0], np.int64)
    code_of = encode_known(labels, classes, unknown="-1")
    codes = code_of[Y.indices]
    lacking = np.add.reduceat(np.append(codes < 0, 0), Y.indptr[:-1]) * (np.diff(Y.indptr) > 0)
    if unknown == "error" and lacking.any():
        names = [repr(label) for label in labels[code_of < 0][:5].tolist()]
        raise ValueError(
            f"{lacking.sum()} labels in {np.count_nonzero(lacking)} of {Y.shape[0]} rows are not among the "
            f"{len(classes)} known classes, the first in row {np.flatnonzero(lacking)[0]}: {', '.join(names)}"
            f"{', ...' if (code_of < 0).sum() > 5 else ''}; remove them, or pass unknown='count'"
        )
    ptr, known = chosen_entries(codes >= 0, Y.indptr, codes)
    return _of_codes(known, ptr, len(classes)), lacking.astype(np.int64)


# ---- Matrices of zeros and ones


def _indicator(y: Any) -> sp.csr_matrix:
    if not sp.issparse(y):
        y = np.asarray(y)
        if y.ndim != 2:
            raise ValueError(f"an indicator of labels must have two dimensions, got an array of shape {y.shape}")
        return _of_array(y)
    at = y if y.format == "csr" else y.tocoo()
    wrong = np.flatnonzero(~((at.data == 1) | (at.data == 0)))
    if wrong.size:
        where = at.tocoo()
        _refuse(where.row[wrong[0]], where.col[wrong[0]], at.data[wrong[0]])
    Y = sp.csr_matrix(y, dtype=np.int32, copy=True)
    Y.eliminate_zeros()
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def _of_array(y: np.ndarray) -> sp.csr_matrix:
    if y.dtype.kind == "O":
        wrong = np.fromiter((not _is_bit(value) for value in y.flat), bool, y.size).reshape(y.shape)
    else:
        wrong = ~((y == 1) | (y == 0)) if y.dtype.kind in "biuf" else np.ones(y.shape, bool)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        _refuse(row, column, y[row, column])
    Y = sp.csr_matrix(y.astype(bool), dtype=np.int32)
    Y.sort_indices()
    return Y


def _refuse(row: int, column: int, value: Any) -> None:
    shown = value.item() if isinstance(value, np.generic) else value
    raise ValueError(
        f"y has {shown!r} in row {row}, column {column}; a matrix of labels holds 1 for each label of a row, else 0. "
        "Pass a vector for one label per row, or the labels themselves as a list of sets"
    )


def _is_bit(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.generic) and (value == 0 or value == 1)


# ---- Lists of sets


def _unwrapped(y: Any) -> Any:
    """Convert pandas-like columns and tables to arrays."""
    known = sp.issparse(y) or isinstance(y, np.ndarray | Sequence)
    return np.asarray(y) if not known and hasattr(y, "__array__") else y


def _is_list(y: Any) -> TypeGuard[Sequence[Any]]:
    if isinstance(y, np.ndarray):
        return y.ndim == 1 and y.dtype.kind == "O"
    return isinstance(y, Sequence) and not isinstance(y, str | bytes)


def _is_set(of_row: Any) -> bool:
    return isinstance(of_row, COLLECTIONS) and not (isinstance(of_row, np.ndarray) and of_row.ndim == 0)


def _flat(y: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of all rows concatenated, and the offsets where each row begins."""
    sets = list(y)
    for row, labels in enumerate(sets):
        if not _is_set(labels):
            reason = f"row {row} of y is {labels!r}, not a set of labels like other rows"
            raise ValueError(f"{reason}; for a set of one, write [{labels!r}]")
    ptr = pointers([len(labels) for labels in sets])
    members = (labels.tolist() if isinstance(labels, np.ndarray) else labels for labels in sets)
    return as_labels(list(chain.from_iterable(members))), ptr


def _of_codes(codes: np.ndarray, ptr: np.ndarray, n_classes: int) -> sp.csr_matrix:
    wanted = index_type(codes.size, n_classes)
    ones = np.ones(codes.size, np.int32)
    Y = sp.csr_matrix((ones, codes.astype(wanted), ptr.astype(wanted)), shape=(ptr.size - 1, n_classes))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y
