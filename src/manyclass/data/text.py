"""Texts of tables, with their labels or with whatever tells the rows apart."""

from collections.abc import Iterator
from reprlib import repr
from typing import Any

from .streams import PathOrFile, stream_name
from .svmlight import ParseError
from .tables import TableFormat, iter_columns
from .unlabelled import Unlabelled, labelled


def _text(value: Any, name: str, place: int, column: str) -> str:
    if not isinstance(value, str):
        raise ParseError(name, place, 1, f"{column!r} is {repr(value)}; a text must be a string")
    return value


def iter_texts(
    path: PathOrFile,
    *,
    text: str | None = None,
    id: str | None = None,
    format: TableFormat | None = None,
    delimiter: str | None = None,
) -> Iterator[tuple[str, Any]]:
    """Read texts one row at a time, each with what its row has in the column `id`, or None without such a column."""
    name, column = stream_name(path), text or "text"
    columns = [column] if id is None else [column, id]
    for place, (value, *ids) in iter_columns(path, columns, format=format, delimiter=delimiter):
        yield _text(value, name, place, column), ids[0] if ids else None


def iter_table(
    path: PathOrFile,
    *,
    text: str | None = None,
    label: str | None = None,
    format: TableFormat | None = None,
    delimiter: str | None = None,
    unlabelled: Unlabelled = "error",
) -> Iterator[tuple[str, Any]]:
    """Read texts and labels one row at a time; see `read_table`."""
    name = stream_name(path)
    columns = text or "text", label or "label"

    def rows() -> Iterator[tuple[int, str, Any]]:
        for place, (its_text, its_label) in iter_columns(path, columns, format=format, delimiter=delimiter):
            if not isinstance(its_label, str | bool | int | float | None):
                raise ParseError(
                    name,
                    place,
                    1,
                    f"{columns[1]!r} is {repr(its_label)}; a label must be a string, a number or a truth value",
                )
            yield place, _text(its_text, name, place, columns[0]), its_label

    return labelled(rows(), name, columns[1], unlabelled)


def read_table(
    path: PathOrFile,
    *,
    text: str | None = None,
    label: str | None = None,
    format: TableFormat | None = None,
    delimiter: str | None = None,
    unlabelled: Unlabelled = "error",
) -> tuple[list[str], list[Any]]:
    """Read texts and labels from CSV, TSV, JSON lines or Parquet.

    Parameters
    ----------
    path : str, path-like or binary file object
        Text is UTF-8, plain or compressed with gzip, bzip2, xz or zstd; `-` is standard input.
    text, label : str, optional
        The columns to read; `text` and `label` if not given.
    format : "csv", "tsv", "jsonl" or "parquet", optional
        Told from the name of the file if not given.
    delimiter : str, optional
        The character between the fields of CSV or TSV, if it is neither a comma nor a tab.
    unlabelled : "error", "skip" or "keep"
        What to do with rows whose label is empty, null or NaN: raise, leave them out (a warning is logged that says
        how many), or keep them as they are.

    Returns
    -------
    texts : list of str
    labels : list
        Strings from CSV and TSV; from JSON lines and Parquet also numbers and truth values.

    Raises
    ------
    ParseError
        With the line of what is wrong (the row, in Parquet) and the columns found; of rows without a label, also how
        many there are.
    """
    texts: list[str] = []
    labels: list[Any] = []
    for row_text, row_label in iter_table(
        path, text=text, label=label, format=format, delimiter=delimiter, unlabelled=unlabelled
    ):
        texts.append(row_text)
        labels.append(row_label)
    return texts, labels
