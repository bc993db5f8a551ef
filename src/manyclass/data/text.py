"""Read texts from tables, with their labels or row ids."""

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
    """Read texts row by row, each with its value in the column `id` (None if no such column is named)."""
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
    """Read texts and labels row by row; see `read_table`."""
    name = stream_name(path)
    columns = text or "text", label or "label"

    def rows() -> Iterator[tuple[int, str, Any]]:
        for place, (its_text, its_label) in iter_columns(path, columns, format=format, delimiter=delimiter):
            if not isinstance(its_label, str | bool | int | float | None):
                raise ParseError(
                    name,
                    place,
                    1,
                    f"{columns[1]!r} is {repr(its_label)}; a label must be a string, a number or a boolean",
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
    texts: list[str] = []
    labels: list[Any] = []
    for row_text, row_label in iter_table(
        path, text=text, label=label, format=format, delimiter=delimiter, unlabelled=unlabelled
    ):
        texts.append(row_text)
        labels.append(row_label)
    return texts, labels
