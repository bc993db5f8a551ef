"""Dual variables of one-vs-rest that were kept for other ranges of classes than those that are trained now.

A fit with little memory trains one range of classes after another, and keeps their variables apart. The fit that goes
on from them may have more memory, or less, and other ranges.
"""

import re
from typing import NamedTuple

import numpy as np

from .._native import core, native
from ..solvers import Variables
from ..solvers.binary_variables import join_vectors, no_variables, only_rows, only_vectors
from .disk import names_of
from .dual_store import DualStore
from .stored_rows import StoredRows


class Piece(NamedTuple):
    """The variables of a block for the classes from `low` to `high - 1`."""

    low: int
    high: int
    name: str


def gather_range(variables: DualStore, data: StoredRows, dtype: np.dtype) -> None:
    """Let the variables of the classes of `data` lie by themselves, whatever ranges they were kept in.

    All of them are feasible together at any moment: pieces are removed only after what replaces them was kept.
    """
    K = int(data.store.classes.size)
    low, high = data.classes or (0, K)
    kept = _pieces_by_block(variables, K)
    for block, name in zip(names_of(StoredRows(data.store, data.C)), names_of(data), strict=True):
        touching = [piece for piece in kept.get(block, []) if piece.low < high and low < piece.high]
        if [(piece.low, piece.high) for piece in touching] in ([], [(low, high)]):
            continue
        _gather(variables, touching, Piece(low, high, name), block, dtype)
        variables.remove(piece.name for piece in touching if piece.name != name)


def _pieces_by_block(variables: DualStore, n_classes: int) -> dict[str, list[Piece]]:
    kept: dict[str, list[Piece]] = {}
    for name in variables.names():
        found = re.fullmatch(r"(.+)\.(\d+)-(\d+)", name)
        block, low, high = (found[1], int(found[2]), int(found[3])) if found else (name, 0, n_classes)
        if 0 <= low < high <= n_classes:
            kept.setdefault(block, []).append(Piece(low, high, name))
    return {block: sorted(pieces) for block, pieces in kept.items()}


def _gather(variables: DualStore, pieces: list[Piece], wanted: Piece, block: str, dtype: np.dtype) -> None:
    """Keep the wanted piece of a block, and what else is in the pieces that touch it."""
    width = native(core, "BinaryStream", dtype).width

    def cut(stored: Variables, piece: Piece, low: int, high: int) -> Variables:
        return only_vectors(stored, (low - piece.low) // width, -(-(high - piece.low) // width))

    parts, end = [], wanted.low
    ids = _common_ids(variables, pieces)
    for piece in pieces:
        stored = _of_rows(variables.get(piece.name), ids)
        for low, high in ((piece.low, wanted.low), (wanted.high, piece.high)):
            if piece.low <= low < high <= piece.high:
                variables.put(f"{block}.{low}-{high}", ids, cut(stored, piece, low, high))
        low, high = max(end, piece.low), min(wanted.high, piece.high)
        if low < high:
            parts.append(no_variables((low - end) // width, ids.size, dtype))
            parts.append(cut(stored, piece, low, high))
            end = high
    parts.append(no_variables(-(-(wanted.high - end) // width), ids.size, dtype))
    variables.put(wanted.name, ids, join_vectors(parts))


def _common_ids(variables: DualStore, pieces: list[Piece]) -> np.ndarray:
    """The rows that all of them have: rows that were removed in between may be in some."""
    common: np.ndarray | None = None
    for piece in pieces:
        stored = variables.get(piece.name)
        assert stored is not None
        common = stored["ids"] if common is None else np.intersect1d(common, stored["ids"])
    assert common is not None
    return common


def _of_rows(stored: Variables | None, ids: np.ndarray) -> Variables:
    assert stored is not None
    found = {name: array for name, array in stored.items() if name != "ids"}
    if np.array_equal(stored["ids"], ids):
        return found
    return only_rows(found, np.flatnonzero(np.isin(stored["ids"], ids)), stored["ids"].size)
