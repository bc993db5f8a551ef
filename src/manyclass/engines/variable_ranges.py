"""Regroup stored one-vs-rest dual variables by the ranges of classes that are trained now.

A fit with little memory trains one range of classes after another and stores their variables separately. The fit that
resumes may have more or less memory, and so other ranges.
"""

import re
from functools import reduce
from typing import NamedTuple

import numpy as np

from .._native import core, native
from ..solvers import Variables
from ..solvers.binary_variables import join_vectors, no_variables, only_rows, only_vectors
from .dual_store import DualStore, variables_of_rows
from .stored_rows import StoredRows


class Piece(NamedTuple):
    """Variables of a block for the classes from `low` to `high - 1`."""

    low: int
    high: int
    name: str


def gather_range(variables: DualStore, data: StoredRows, dtype: np.dtype) -> None:
    """Store the variables of the classes of `data` by themselves, whatever ranges they were stored in.

    Pieces are removed only after their replacement is stored, so the variables are feasible at any moment.
    """
    K = int(data.store.classes.size)
    low, high = data.classes or (0, K)
    stored = _pieces_by_block(variables, K)
    for block, name in zip(StoredRows(data.store, data.C).block_names, data.block_names, strict=True):
        touching = [piece for piece in stored.get(block, []) if piece.low < high and low < piece.high]
        if [(piece.low, piece.high) for piece in touching] in ([], [(low, high)]):
            continue
        _gather(variables, touching, Piece(low, high, name), block, dtype)
        variables.remove(piece.name for piece in touching if piece.name != name)


def _pieces_by_block(variables: DualStore, n_classes: int) -> dict[str, list[Piece]]:
    pieces: dict[str, list[Piece]] = {}
    for name in variables.names():
        found = re.fullmatch(r"(.+)\.(\d+)-(\d+)", name)
        block, low, high = (found[1], int(found[2]), int(found[3])) if found else (name, 0, n_classes)
        if 0 <= low < high <= n_classes:
            pieces.setdefault(block, []).append(Piece(low, high, name))
    return {block: sorted(of_block) for block, of_block in pieces.items()}


def _gather(variables: DualStore, pieces: list[Piece], wanted: Piece, block: str, dtype: np.dtype) -> None:
    """Store the wanted piece of a block, and the remains of the pieces that overlap it."""
    width = native(core, "BinaryStream", dtype).width

    def cut(stored: Variables, piece: Piece, low: int, high: int) -> Variables:
        return only_vectors(stored, (low - piece.low) // width, -(-(high - piece.low) // width))

    # Rows removed in the meantime may still be in some pieces.
    ids = reduce(np.intersect1d, (_stored(variables, piece)["ids"] for piece in pieces))
    parts, end = [], wanted.low
    for piece in pieces:
        stored = variables_of_rows(_stored(variables, piece), ids, only_rows)
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


def _stored(variables: DualStore, piece: Piece) -> Variables:
    stored = variables.get(piece.name)
    assert stored is not None
    return stored
