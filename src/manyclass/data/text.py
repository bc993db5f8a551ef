"""Tables of texts and labels."""

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, Literal

from .streams import SUFFIXES, PathOrFile, StreamError, open_input, stream_name
from .svmlight import ParseError
from .unlabelled import Unlabelled, labelled

FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def _format_of(source: PathOrFile, given: str | None) -> str:
    if given is not None:
        if given not in FORMATS.values():
            raise ValueError(f"format must be csv, tsv or jsonl, got {given!r}")
        return given
    suffixes = [suffix.lower() for suffix in PurePath(stream_name(source)).suffixes]
    if suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    raise ValueError(f"{stream_name(source)}: the name does not tell the format; pass format='csv', 'tsv' or 'jsonl'")


class _Lines:
    """The lines of a binary stream as text, counted."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._stream:
            self.number += 1
            yield line.decode("utf-8-sig" if self.number == 1 else "utf-8")


def _missing(name: str, line: int, wanted: list[str], found: Iterable[str]) -> ParseError:
    columns = ", ".join(repr(column) for column in found) or "none"
    lacking = " and ".join(repr(column) for column in wanted)
    return ParseError(
        name,
        line,
        1,
        f"no column {lacking}; the columns are {columns}",
        "columns",
    )


def _separated_rows(lines: _Lines, name: str, delimiter: str, columns: list[str]) -> Iterator[tuple[int, str, Any]]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise _missing(name, 1, missing, header)
        text, label = (header.index(column) for column in columns)
        end = reader.line_num
        for fields in reader:
            start, end = end + 1, reader.line_num
            if not fields:
                continue
            if len(fields) != len(header):
                raise ParseError(
                    name, start, 1, f"{len(fields)} fields, but the header has {len(header)}; quote the text"
                )
            yield start, fields[text], fields[label]
    except csv.Error as error:
        raise ParseError(name, reader.line_num, 1, f"{error}; check the quotes and the format") from error


def _json_rows(lines: _Lines, name: str, columns: list[str]) -> Iterator[tuple[int, str, Any]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ParseError(name, number, error.colno, f"{error.msg}; each line must be a JSON object") from error
        if not isinstance(record, dict):
            raise ParseError(name, number, 1, f"a {type(record).__name__}; each line must be a JSON object")
        missing = [column for column in columns if column not in record]
        if missing:
            raise _missing(name, number, missing, record)
        text, label = (record[column] for column in columns)
        if not isinstance(text, str):
            raise ParseError(name, number, 1, f"{columns[0]!r} is a {type(text).__name__}; it must be a string")
        if isinstance(label, (dict, list)):
            raise ParseError(
                name,
                number,
                1,
                f"{columns[1]!r} is {label!r}; a label must be a string, a number or a truth value",
            )
        yield number, text, label


def iter_table(
    path: PathOrFile,
    *,
    text: str | None = None,
    label: str | None = None,
    format: str | None = None,
    unlabelled: Unlabelled = "error",
) -> Iterator[tuple[str, Any]]:
    """Read texts and labels one row at a time; see `read_table`."""
    name = stream_name(path)
    kind = _format_of(path, format)
    columns = [text or "text", label or "label"]
    with open_input(path) as stream:
        lines = _Lines(stream)
        if kind == "jsonl":
            rows = _json_rows(lines, name, columns)
        else:
            rows = _separated_rows(lines, name, "," if kind == "csv" else "\t", columns)
        try:
            yield from labelled(rows, name, columns[1], unlabelled)
        except UnicodeDecodeError as error:
            raise ParseError(
                name, lines.number, error.start + 1, f"not UTF-8 ({error.reason}); convert the file first"
            ) from error
        except StreamError as error:
            raise ParseError(name, lines.number + 1, 1, str(error)) from error


def read_table(
    path: PathOrFile,
    *,
    text: str | None = None,
    label: str | None = None,
    format: Literal["csv", "tsv", "jsonl"] | None = None,
    unlabelled: Unlabelled = "error",
) -> tuple[list[str], list[Any]]:
    """Read texts and labels from CSV, TSV or JSON lines.

    Parameters
    ----------
    path : str, path-like or binary file object
        UTF-8, plain or compressed with gzip, bzip2, xz or zstd; `-` is standard input.
    text, label : str, optional
        The columns to read; `text` and `label` if not given.
    format : "csv", "tsv" or "jsonl", optional
        Told from the name of the file if not given.
    unlabelled : "error", "skip" or "keep"
        What to do with rows whose label is empty, null or NaN: raise, leave them out (a warning is logged that says
        how many), or keep them as they are.

    Returns
    -------
    texts : list of str
    labels : list
        Strings from CSV and TSV; from JSON lines also numbers and truth values.

    Raises
    ------
    ParseError
        With the line of what is wrong and the columns found; of rows without a label, also how many there are.
    """
    texts: list[str] = []
    labels: list[Any] = []
    for row_text, row_label in iter_table(path, text=text, label=label, format=format, unlabelled=unlabelled):
        texts.append(row_text)
        labels.append(row_label)
    return texts, labels
