"""Read the rows to train on, from svmlight or XMC text or from tables of texts."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..data import BlockStore, Chain, ParseError, TextFeatures, UnitRows, read_table
from ..data.label_sets import keep_known
from ..data.streams import stream_name
from ..data.svmlight import labels_of, matrix_of, parse_rows
from ..data.unit_rows import scale_to_unit_length
from ..engines import join_rows, share_rows
from . import ranks
from .formats import ROWS_OF_FEATURES, FileOptions, kind_of
from .output import InputError
from .wording import SEVERAL_LABELS, told

ALWAYS_UNIT = "rows made from texts always have length 1; omit --no-normalize"


@dataclass(frozen=True)
class LabelledRows:
    """Rows with labels, and what a model must know to read more of them."""

    X: sp.csr_matrix
    labels: Any  # one per row, or sets of labels as ones in a matrix
    classes: np.ndarray | None = None  # for sets of labels, the labels of the columns
    chain: Chain = field(default_factory=Chain)  # the preprocessing steps that were applied
    reading: dict[str, Any] = field(default_factory=dict)  # entries for the model's settings

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def normalized(self, *, copy: bool = True) -> "LabelledRows":
        """Return the same rows scaled to length 1, which those made from texts already have."""
        if self.chain:
            return self
        X = self.X.copy() if copy else self.X
        scale_to_unit_length(X.indptr, X.data)
        return replace(self, X=X, chain=Chain([UnitRows()]))


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Prefix errors with the name of the file if they lack it."""
    try:
        yield
    except ParseError:
        raise
    except InputError as error:
        raise InputError(f"{stream_name(path)}: {error}") from error
    except ValueError as error:
        raise InputError(f"{stream_name(path)}: {told(error)}") from error


@contextlib.contextmanager
def supposed(file: FileOptions, otherwise: str) -> Iterator[None]:
    """If the format is only a guess and the first line cannot be read, add to the error what the file may be."""
    try:
        yield
    except ParseError as error:
        if file.format != "auto" or error.line > 1 or error.remedy:
            raise
        raise ParseError(error.file, error.line, error.column, f"{error.reason}; {otherwise}") from error


def open_store(path: str, file: FileOptions) -> BlockStore | None:
    """Return the store of that name, or None if it is not a folder; reject options for tables for a store."""
    if path == "-" or not Path(path).is_dir():
        return None
    store = BlockStore(path)
    if file.given:
        raise InputError(f"{path}: {file.given[0]} does not apply to a store")
    return store


def check_is_file(path: str) -> None:
    """Reject a folder."""
    if path != "-" and Path(path).is_dir():
        raise InputError(f"{path} is a folder; pass a file")


class ParsedRows(NamedTuple):
    """Rows of svmlight or XMC text; for sets of labels, `classes` has the labels of the columns."""

    X: sp.csr_matrix
    labels: Any
    classes: np.ndarray | None
    from_zero: bool


def parsed(
    path: str,
    kind: str,
    dtype: Any,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    multilabel: bool | str = "auto",
) -> ParsedRows:
    """Read a file; reject more features than `n_features`."""
    if kind == "xmc":
        parser = parse_rows(path, multilabel=True, zero_based=True, dtype=dtype, xmc=True)
        X = matrix_of(parser, dtype)
        if n_features is not None and X.shape[1] > n_features:
            raise ValueError(f"the header has {X.shape[1]} features, but the model knows {n_features}")
        Y = labels_of(parser, n_labels=parser.label_limit)
        return ParsedRows(X, Y, np.arange(Y.shape[1]), True)
    parser = parse_rows(path, n_features=n_features, multilabel=multilabel, zero_based=zero_based, dtype=dtype)
    X, labels = matrix_of(parser, dtype), labels_of(parser)
    labels, classes = _only_used(labels) if sp.issparse(labels) else (labels, None)
    return ParsedRows(X, labels, classes, parser.zero_based)


def _only_used(Y: sp.csr_matrix) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the columns that have rows, and their numbers."""
    used, places = np.unique(Y.indices, return_inverse=True)
    return sp.csr_matrix((Y.data, places.reshape(-1), Y.indptr), shape=(Y.shape[0], used.size)), used


# ---- To train on


def read_labelled(
    path: str,
    file: FileOptions,
    *,
    min_df: int | float,
    dtype: Any,
    several: bool = False,
    normalize: bool | None = None,
) -> LabelledRows:
    """Read rows and labels to train on.

    Parameters
    ----------
    path
        A file, or `-` for standard input. With `{rank}` in its name, each rank of mpirun reads its own file, and the
        rows of all are joined in the order of the ranks.
    dtype
        Type of the values of svmlight and XMC text.
    several
        Whether rows may have sets of labels. XMC text always has them, and svmlight text if some row does not have
        exactly one label.
    normalize
        Whether to scale rows to length 1. Rows made from texts always have it, so False is rejected for them.
    """
    divided, path = ranks.one_each(path), ranks.own_file(path)
    check_is_file(path)
    kind = kind_of(path, file, otherwise="svmlight")
    if kind == "xmc" and not several:
        raise InputError(f"{stream_name(path)}: XMC text has sets of labels; {SEVERAL_LABELS}")
    if normalize is False and kind not in ROWS_OF_FEATURES:
        raise InputError(f"{stream_name(path)}: {ALWAYS_UNIT}")

    def read() -> Any:
        if kind in ROWS_OF_FEATURES:
            with supposed(file, "for a table of texts pass --text-column and --label-column, or --format"):
                return parsed(path, kind, dtype, multilabel="auto" if several else False)
        return read_table(path, **file.table(kind))

    def as_rows(parts: Sequence[Any]) -> LabelledRows:
        if kind not in ROWS_OF_FEATURES:
            return _as_features(parts, file, min_df)
        rows = _as_rows(parts)
        return rows.normalized(copy=False) if normalize else rows

    with naming(path):
        if divided:
            return join_rows(read(), as_rows, ranks.peers())
        return share_rows(lambda: as_rows([read()]), ranks.peers())


def _as_rows(parts: Sequence[ParsedRows]) -> LabelledRows:
    X, labels, classes, from_zero = _put_together(parts) if len(parts) > 1 else parts[0]
    return LabelledRows(X, labels, classes, reading={"index_base": 0 if from_zero else 1})


def _as_features(
    parts: Sequence[tuple[list[str], list[Any]]], file: FileOptions, min_df: int | float
) -> LabelledRows:
    texts, labels = (list(itertools.chain.from_iterable(found)) for found in zip(*parts, strict=True))
    if not texts:
        raise ValueError("no rows; a header and at least two rows are needed")
    features = TextFeatures(min_df=min_df)
    X = features.fit_transform(texts)
    reading = {"text_column": file.text or "text", "label_column": file.label or "label"}
    return LabelledRows(X, labels, chain=Chain([features]), reading=reading)


def _put_together(parts: Sequence[ParsedRows]) -> ParsedRows:
    """Join the rows of several files as if they were one, with indices from 0 if one of them has them."""
    from_zero = any(part.from_zero for part in parts)
    shifts = [from_zero and not part.from_zero for part in parts]
    n_features = max(part.X.shape[1] + shift for part, shift in zip(parts, shifts, strict=True))
    matrices = [
        sp.csr_matrix((X.data, X.indices + shift, X.indptr), (X.shape[0], n_features))
        for (X, *_), shift in zip(parts, shifts, strict=True)
    ]
    return ParsedRows(sp.vstack(matrices, "csr"), *_labels_together(parts), from_zero)


def _labels_together(parts: Sequence[ParsedRows]) -> tuple[Any, np.ndarray | None]:
    if all(part.classes is None for part in parts):
        return np.concatenate([part.labels for part in parts]), None
    sets = [(part.labels, part.classes) if part.classes is not None else _sets_of_one(part.labels) for part in parts]
    classes = np.unique(np.concatenate([known for _, known in sets]))
    return sp.vstack([keep_known(Y, known, classes)[0] for Y, known in sets], "csr"), classes


def _sets_of_one(labels: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
    if labels.dtype.kind != "i" or (labels < 0).any():
        raise ValueError("if some files have several labels per row, all labels must be integers of at least 0")
    rows = np.arange(labels.size)
    return _only_used(sp.csr_matrix((np.ones(rows.size, np.int32), (rows, labels))))


def class_sizes(counts: np.ndarray) -> dict[str, float]:
    """Describe the number of rows per class."""
    return {
        "smallest": int(counts.min()),
        "median": float(np.median(counts)),
        "largest": int(counts.max()),
        "with_one_row": int((counts == 1).sum()),
    }
