"""Read and write svmlight (LIBSVM) text."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from .._native import core
from .bad_file import BadFileError
from .known_features import KnownFeatures
from .matrix import check_matrix, index_type
from .remedies import REMEDIES
from .streams import CHUNK, PathOrFile, StreamError, open_input, open_output, stream_name

ROWS_PER_BLOCK = 4096
LONGEST_LINE = 1 << 28
PARSERS = {np.dtype(np.float32): core.RowParserFloat32, np.dtype(np.float64): core.RowParserFloat64}


class ParseError(BadFileError):
    """A file does not follow its format.

    Attributes
    ----------
    line, column
        Where the offending text starts. Both count from 1, the column in bytes.
    reason
        What is wrong, in words that fit any interface.
    remedy
        Key of the advice in `REMEDIES`; empty if the reason already says what to do.
    """

    def __init__(self, file: str, line: int, column: int, reason: str, remedy: str = ""):
        super().__init__(file, line, column, reason, remedy)
        self.file, self.line, self.column, self.reason, self.remedy = file, line, column, reason, remedy

    def __str__(self) -> str:
        return self.told(REMEDIES)

    def told(self, remedies: Mapping[str, str]) -> str:
        """Return the message, with the advice of one interface."""
        advice = f"; {remedies[self.remedy]}" if self.remedy else ""
        return f"{self.file}:{self.line}:{self.column}: {self.reason}{advice}"


def _choice(name: str, value: bool | str) -> int:
    if isinstance(value, str) and value == "auto":
        return -1
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    raise ValueError(f'{name} must be True, False or "auto", got {value!r}')


def new_parser(
    dtype: DTypeLike,
    *,
    n_features: int | None = None,
    multilabel: bool | str = "auto",
    zero_based: bool | str = "auto",
    allow_nonfinite: bool = False,
    xmc: bool = False,
) -> Any:
    """Create a native parser; pass it text with `feed` or `feed_source`."""
    if np.dtype(dtype) not in PARSERS:
        raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype)}")
    if n_features is not None and n_features < 0:
        raise ValueError(f"n_features must not be negative, got {n_features}")
    return PARSERS[np.dtype(dtype)](
        n_features=-1 if n_features is None else int(n_features),
        zero_based=_choice("zero_based", zero_based),
        multilabel=_choice("multilabel", multilabel),
        allow_nonfinite=allow_nonfinite,
        xmc=xmc,
    )


def feed(parser: Any, name: str, text: np.ndarray) -> None:
    """Pass the next chunk of text to a parser; reject long lines, which a few compressed bytes can expand to."""
    if failure := parser.feed(text):
        raise ParseError(name, *failure)
    if parser.unfinished > LONGEST_LINE:
        raise ParseError(name, parser.line + 1, 1, f"this line is longer than {LONGEST_LINE >> 20} MiB")


def feed_source(
    parser: Any, source: PathOrFile, *, chunk: int = CHUNK, skip: Callable[[BinaryIO], None] | None = None
) -> Iterator[int]:
    """Pass all of `source`, after what `skip` reads, to a parser, and yield the size of each chunk."""
    name, buffer = stream_name(source), np.empty(chunk, np.uint8)
    try:
        with open_input(source) as stream:
            if skip is not None:
                skip(stream)
            while count := stream.readinto(buffer):  # type: ignore[attr-defined]
                feed(parser, name, buffer[:count])
                yield count
    except StreamError as error:
        raise ParseError(name, parser.line + 1, 1, str(error)) from error
    if failure := parser.finish():
        raise ParseError(name, *failure)


def parse_rows(source: PathOrFile, *, dtype: DTypeLike, **options: Any) -> Any:
    """Parse all of `source` and return the parser (made with `options`), for `matrix_of` and `labels_of`."""
    parser = new_parser(dtype, **options)
    for _ in feed_source(parser, source):  # Python can handle Ctrl-C between the chunks
        pass
    return parser


def take(out_of: Callable[[np.ndarray], None], size: int, dtype: DTypeLike) -> np.ndarray:
    """Move an array out of a parser with one of its `take_*` methods."""
    array = np.empty(size, dtype)
    out_of(array)
    return array


def take_pointers(out_of: Callable[[np.ndarray], None], n_rows: int, dtype: DTypeLike = np.int64) -> np.ndarray:
    """Move row ends out of a parser as offsets that start with 0."""
    pointers = np.zeros(n_rows + 1, np.int64)
    out_of(pointers[1:])
    return pointers.astype(dtype, copy=False)


def take_labels(parser: Any) -> np.ndarray:
    """Move the labels of all rows, concatenated, out of a parser."""
    return take(parser.take_labels, parser.n_labels_read, np.int64 if parser.labels_are_integers else np.float64)


def _assemble(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> sp.csr_matrix:
    matrix = sp.csr_matrix((data, indices, indptr), shape=shape, copy=False)
    # The parser has sorted each row and rejected duplicates.
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


def matrix_of(parser: Any, dtype: DTypeLike) -> sp.csr_matrix:
    """Move the features out of a finished parser."""
    n_rows, n_features, nnz = parser.n_rows, parser.n_features, parser.nnz
    wanted = index_type(n_features, nnz)
    indptr = take_pointers(parser.take_row_ends, n_rows, wanted)
    indices = take(parser.take_indices, nnz, wanted)
    return _assemble(take(parser.take_values, nnz, dtype), indices, indptr, (n_rows, n_features))


def labels_of(parser: Any, n_labels: int | None = None) -> np.ndarray | sp.csr_matrix:
    """Move the labels out of a finished parser, after `matrix_of`."""
    labels, n_rows = take_labels(parser), parser.n_rows
    if not parser.multilabel:
        return labels
    n_labels = parser.max_label + 1 if n_labels is None else n_labels
    wanted = index_type(n_labels, labels.size)
    indptr = take_pointers(parser.take_label_ends, n_rows, wanted)
    ones = np.ones(labels.size, np.int32)
    return _assemble(ones, labels.astype(wanted, copy=False), indptr, (n_rows, n_labels))


def load_svmlight(
    path_or_file: PathOrFile,
    *,
    n_features: int | None = None,
    unknown_features: Literal["error", "ignore"] = "error",
    multilabel: bool | Literal["auto"] = "auto",
    zero_based: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float32,
    allow_nonfinite: bool = False,
) -> tuple[sp.csr_matrix, np.ndarray | sp.csr_matrix]:
    """Read an svmlight file: `label index:value ...`, one row per line.

    The file may be compressed with gzip, bzip2, xz or zstd (detected from the first bytes). It is read in chunks, so
    memory is proportional to the number of non-zeros. Indices need not be sorted. Blank lines and comments (`#` to
    the end of the line) are skipped.

    Parameters
    ----------
    path_or_file : str, path-like or binary file object
        The file to read; `-` reads standard input.
    n_features : int, optional
        Number of columns of `X`. Default: as many as occur.
    unknown_features : "error" or "ignore"
        How to treat features beyond `n_features`, for which a model has no weights: raise an error, or drop them.
    multilabel : bool or "auto"
        Whether rows may have any number of labels (`3,7,9 1:0.5`). "auto": if some row does not have exactly one.
    zero_based : bool or "auto"
        Whether indices count from 0. "auto": if index 0 occurs.
    dtype : float32 or float64
        Type of the values, which are correctly rounded.
    allow_nonfinite : bool
        Accept NaN and infinity as values.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_rows, n_features)
        The rows, with sorted indices: 32-bit if they fit, otherwise 64-bit.
    y : ndarray of shape (n_rows,), or csr_matrix of shape (n_rows, largest label + 1)
        With one label per row, int64 if all labels are written as integers, otherwise float64. With several labels
        per row, a sparse indicator.

    Raises
    ------
    ParseError
        If the file is malformed. The message names file, line and column; nothing is returned.
    """
    if unknown_features not in ("error", "ignore"):
        raise ValueError(f'unknown_features must be "error" or "ignore", got {unknown_features!r}')
    ignore = unknown_features == "ignore"
    if ignore and n_features is None:
        raise ValueError('unknown_features="ignore" needs n_features, the number of known features')
    wanted: dict[str, Any] = {"multilabel": multilabel, "zero_based": zero_based, "allow_nonfinite": allow_nonfinite}
    parser = parse_rows(path_or_file, dtype=dtype, n_features=None if ignore else n_features, **wanted)
    X = matrix_of(parser, dtype)
    if ignore and n_features is not None:
        X = KnownFeatures(n_features).keep(X)
    return X, labels_of(parser)


def label_blocks(y: ArrayLike | sp.spmatrix, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of all rows concatenated, and the offsets where each row's labels end."""
    if sp.issparse(y):
        indicator = sp.csr_matrix(y, copy=True)
        indicator.sum_duplicates()
        indicator.eliminate_zeros()
        ends, labels = indicator.indptr[1:], indicator.indices
    else:
        labels = np.asarray(y)
        if labels.ndim != 1:
            raise ValueError(f"y must have one dimension or be a sparse indicator, got shape {labels.shape}")
        ends = np.arange(1, labels.size + 1)
    if ends.size != n_rows:
        raise ValueError(f"X has {n_rows} rows, but y has {ends.size}")
    if labels.dtype.kind in "biu":
        return labels.astype(np.int64), ends.astype(np.int64)
    if labels.dtype.kind != "f":
        raise ValueError(f"svmlight labels are numbers, got {labels.dtype}; encode them first (encode_labels)")
    if not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"label {labels[row]} of row {row} is not finite; give the row a finite label")
    return labels.astype(np.float64), ends.astype(np.int64)


def format_blocks(X: Any, y: ArrayLike | sp.spmatrix, *, base: int, mark_empty: bool) -> Iterator[bytes]:
    """Format rows as text, a few thousand at a time to keep memory small."""
    rows = check_matrix(X, dtype=None).as_csr()
    labels, label_ends = label_blocks(y, rows.shape[0])
    if mark_empty and rows.shape[1] == 0 and (np.diff(label_ends, prepend=0) == 0).any():
        raise ValueError("a row without labels and features cannot be written as svmlight text; use save_xmc")
    for start in range(0, rows.shape[0], ROWS_PER_BLOCK):
        stop = min(start + ROWS_PER_BLOCK, rows.shape[0])
        block = slice(rows.indptr[start], rows.indptr[stop])
        first_label = int(label_ends[start - 1]) if start else 0
        yield core.format_rows(
            rows.indptr[start + 1 : stop + 1].astype(np.int64) - int(rows.indptr[start]),
            rows.indices[block].astype(np.int64),
            rows.data[block],
            label_ends[start:stop] - first_label,
            labels[first_label : label_ends[stop - 1]],
            base,
            mark_empty,
        )


def save_svmlight(
    X: Any, y: ArrayLike | sp.spmatrix, path: str | os.PathLike[str], *, zero_based: bool = False
) -> None:
    """Write an svmlight file that `load_svmlight` reads back exactly.

    Parameters
    ----------
    X : sparse or dense matrix
        The rows. Values are written as the shortest decimals that read back the same in their type.
    y : array of numbers, or sparse indicator
        One label per row, or any number of labels per row. A row with neither labels nor features is written as
        one explicit zero, because a blank line does not count as a row.
    path : str or path-like
        The suffix `.gz`, `.bz2`, `.xz` or `.zst` selects compression. The file appears only once it is complete.
    zero_based : bool
        Count features from 0 instead of 1.
    """
    with open_output(path) as out:
        for text in format_blocks(X, y, base=0 if zero_based else 1, mark_empty=True):
            out.write(text)
