"""Read texts from tables, with their labels or row ids."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from reprlib import repr
from typing import Any, Literal

from .labels import is_missing
from .streams import PathOrFile, StreamError, stream_name
from .svmlight import ParseError
from .tables import TableFormat, iter_columns

logger = logging.getLogger("manyclass")

Unlabelled = Literal["error", "skip", "keep"]


def _text(value: Any, name: str, place: int, column: str) -> str:
    if not isinstance(value, str):
        raise ParseError(name, place, 1, f"{column!r} is {repr(value)}; a text must be a string")
    return value


def iter_texts(
    path: PathOrFile, *, text: str | None = None, id: str | None = None, **options: Any
) -> Iterator[tuple[str, Any]]:
    """Read texts row by row, each with its value in the column `id` (else None); `options` go to `iter_columns`."""
    name, column = stream_name(path), text or "text"
    columns = [column] if id is None else [column, id]
    for place, (value, *ids) in iter_columns(path, columns, **options):
        yield _text(value, name, place, column), ids[0] if ids else None


def iter_table(
    path: PathOrFile,
    *,
    text: str | None = None,
    label: str | None = None,
    unlabelled: Unlabelled = "error",
    **options: Any,
) -> Iterator[tuple[str, Any]]:
    """Read texts and labels row by row; see `read_table`. `options` go to `iter_columns`."""
    name, column = stream_name(path), label or "label"
    rows = _labelled_texts(path, text or "text", column, options)
    skipped = first = 0
    for place, its_text, its_label in rows:
        if unlabelled == "keep" or not _is_empty(its_label):
            yield its_text, its_label
        elif unlabelled == "skip":
            skipped, first = skipped + 1, first or place
        else:
            count = 1 + _count_empty(rows)
            found = "1 row has" if count == 1 else f"{count:,} rows have"
            raise ParseError(name, place, 1, f"no label in {column!r}; {found} no label", "unlabelled")
    if skipped:
        rows_without = "1 row without a label was" if skipped == 1 else f"{skipped:,} rows without a label were"
        logger.warning("%s: %s skipped, the first on line %d", name, rows_without, first)


def _labelled_texts(
    path: PathOrFile, text: str, label: str, options: dict[str, Any]
) -> Iterator[tuple[int, str, Any]]:
    name = stream_name(path)
    for place, (its_text, its_label) in iter_columns(path, (text, label), **options):
        if not isinstance(its_label, str | bool | int | float | None):
            reason = f"{label!r} is {repr(its_label)}; a label must be a string, a number or a boolean"
            raise ParseError(name, place, 1, reason)
        yield place, _text(its_text, name, place, text), its_label


def _is_empty(label: Any) -> bool:
    return not label.strip() if isinstance(label, str) else is_missing(label)


def _count_empty(rows: Iterator[tuple[int, str, Any]]) -> int:
    count = 0
    # Ignore other errors for now; they are reported once the labels are filled in.
    with suppress(ParseError, UnicodeDecodeError, StreamError):
        for _, _, label in rows:
            count += _is_empty(label)
    return count


def read_table(
    path: PathOrFile,
    *,
    text: str | None = None,
    label: str | None = None,
    format: TableFormat | None = None,
    delimiter: str | None = None,
    unlabelled: Unlabelled = "error",
) -> tuple[list[str], list[Any]]:
    """Read texts and labels from a CSV, TSV, JSON lines or Parquet file.

    Parameters
    ----------
    path : str, path-like or binary file object
        The file to read: UTF-8, plain or compressed with gzip, bzip2, xz or zstd. `-` reads standard input.
    text, label : str, optional
        Names of the columns to read. Default: `text` and `label`.
    format : "csv", "tsv", "jsonl" or "parquet", optional
        Default: inferred from the file name.
    delimiter : str, optional
        Field delimiter of a CSV or TSV file. Default: a comma or a tab.
    unlabelled : "error", "skip" or "keep"
        How to treat rows whose label is empty, null or NaN: raise an error, skip them and log a warning with their
        number, or keep them unchanged.

    Returns
    -------
    texts : list of str
    labels : list
        Strings from CSV and TSV; strings, numbers or booleans from JSON lines and Parquet.

    Raises
    ------
    ParseError
        If the file cannot be read. The message names the line (in Parquet, the row). For a missing column it lists
        the columns found; for a missing label it says how many rows lack one.
    """
    table = iter_table(path, text=text, label=label, unlabelled=unlabelled, format=format, delimiter=delimiter)
    rows = list(table)
    return [text for text, _ in rows], [label for _, label in rows]
