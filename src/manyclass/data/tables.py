"""Read selected columns of CSV, TSV, JSON lines and Parquet files row by row."""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, BinaryIO, Literal

from .streams import SUFFIXES, PathOrFile, StreamError, open_input, stream_name
from .svmlight import ParseError

TableFormat = Literal["csv", "tsv", "jsonl", "parquet"]
FORMATS: dict[str, TableFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
DELIMITERS = {"csv": ",", "tsv": "\t"}
# Maximum characters per CSV or TSV field: longer than any text, but short enough to catch a quote that never closes.
LONGEST_FIELD = 1 << 24
# Maximum bytes per line, because a few compressed bytes can expand to a huge line.
LONGEST_LINE = 1 << 26
# Parquet: rows per batch, and bytes per read.
ROWS_AT_ONCE = 1 << 10
READ_AT_ONCE = 1 << 20
READ_WHOLE = 64 << 20  # Parquet files up to this many bytes are read one whole column at a time

# The line number of a row (in Parquet, the row number) and its values.
Row = tuple[int, list[Any]]


def format_by_name(name: str) -> TableFormat | None:
    """Infer the format of a table from its file name; None if the name has no known suffix."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    if suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    return FORMATS.get(suffixes[-1]) if suffixes else None


def check_delimiter(delimiter: str) -> str:
    """Check that this is a usable field delimiter, and return it."""
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"a delimiter is one character, neither a quote nor a line end; got {delimiter!r}")
    return delimiter


def iter_columns(
    path: PathOrFile, columns: Sequence[str], *, format: TableFormat | None = None, delimiter: str | None = None
) -> Iterator[Row]:
    """Yield for each row of a table its place, counted from 1, and its values in some columns, using little memory.

    The place is a line, or in Parquet the row number. The values are strings from CSV and TSV, otherwise any type the
    file holds. See `read_table` for the parameters.
    """
    name = stream_name(path)
    kind = format or format_by_name(name)
    if kind is None:
        raise ValueError(f"{name}: the name does not show the format; pass format='csv', 'tsv', 'jsonl' or 'parquet'")
    if kind not in FORMATS.values():
        raise ValueError(f"format must be csv, tsv, jsonl or parquet, got {kind!r}")
    if delimiter is not None and kind not in DELIMITERS:
        raise ValueError(f"{name}: {kind} has no delimiter; only csv and tsv do")
    if kind == "parquet":
        return _parquet(path, name, columns)
    if kind == "jsonl":
        return _of_lines(path, lambda lines: _json_lines(lines, name, columns))
    separator = check_delimiter(delimiter or DELIMITERS[kind])
    return _of_lines(path, lambda lines: _separated(lines, name, columns, separator))


def _missing(name: str, line: int, wanted: Sequence[str], found: Iterable[str]) -> ParseError:
    there = list(found)
    lacking = " and ".join(repr(column) for column in wanted if column not in there)
    columns = ", ".join(map(repr, there)) or "none"
    return ParseError(name, line, 1, f"no column {lacking}; the columns are {columns}", "columns")


def _refuse_twice(name: str, wanted: Sequence[str], found: Sequence[str]) -> None:
    for column in wanted:
        if found.count(column) > 1:
            raise ParseError(name, 1, 1, f"the column {column!r} appears twice; rename one of them")


# ---- Text


class _Lines:
    """Decode and count the lines of a binary stream."""

    def __init__(self, stream: BinaryIO, name: str):
        self._stream, self._name = stream, name
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._stream.readline(LONGEST_LINE + 1):
            self.number += 1
            if len(line) > LONGEST_LINE:
                reason = f"this line is longer than {LONGEST_LINE >> 20} MiB; split it"
                raise ParseError(self._name, self.number, 1, reason)
            yield line.decode("utf-8-sig" if self.number == 1 else "utf-8")


def _of_lines(path: PathOrFile, read: Any) -> Iterator[Row]:
    name = stream_name(path)
    with open_input(path) as stream:
        lines = _Lines(stream, name)
        try:
            yield from read(lines)
        except UnicodeDecodeError as error:
            reason = f"not UTF-8 ({error.reason}); convert the file first"
            raise ParseError(name, lines.number, error.start + 1, reason) from error
        except StreamError as error:
            raise ParseError(name, lines.number + 1, 1, str(error)) from error


def _separated(lines: _Lines, name: str, columns: Sequence[str], delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        if not set(columns) <= set(header):
            error = _missing(name, 1, columns, header)
            if len(header) == 1 and any(mark in header[0] for mark in ",;\t|"):
                error = ParseError(name, 1, 1, error.reason, "delimiter")
            raise error
        _refuse_twice(name, columns, header)
        places = [header.index(column) for column in columns]
        end = reader.line_num
        for fields in reader:
            start, end = end + 1, reader.line_num
            if not fields:
                continue
            if len(fields) != len(header):
                reason = f"{len(fields)} fields, but the header has {len(header)}; quote the text"
                raise ParseError(name, start, 1, reason)
            yield start, [fields[place] for place in places]
    except csv.Error as error:
        raise ParseError(name, reader.line_num, 1, f"{error}; check the quotes and the format") from error


def _json_lines(lines: _Lines, name: str, columns: Sequence[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ParseError(name, number, error.colno, f"{error.msg}; each line must be a JSON object") from error
        except (ValueError, RecursionError) as error:  # a number with thousands of digits, or very deep nesting
            raise ParseError(name, number, 1, f"this JSON is too large ({error}); simplify the line") from error
        if not isinstance(record, dict):
            raise ParseError(name, number, 1, f"found a {type(record).__name__}; each line must be a JSON object")
        if not record.keys() >= set(columns):
            raise _missing(name, number, columns, record)
        yield number, [record[column] for column in columns]


# ---- Parquet


def _parquet(path: PathOrFile, name: str, columns: Sequence[str]) -> Iterator[Row]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError('Parquet needs one more package: pip install "manyclass[blocks]"') from error
    if name == "<stdin>":
        raise ParseError(name, 1, 1, "Parquet cannot be read from a pipe; pass a file")
    row = 0
    try:
        # Read large files page by page, because a row group can be as large as the file. Not small ones: in this mode
        # arrow allocates whatever size a page claims, up to 2 GB for a damaged file of a few bytes.
        size = os.stat(path).st_size if isinstance(path, str | os.PathLike) else path.seek(0, os.SEEK_END)
        buffer_size = READ_AT_ONCE if size > READ_WHOLE else 0
        with pq.ParquetFile(path, buffer_size=buffer_size, pre_buffer=False) as file:
            there = file.schema_arrow.names
            if not set(columns) <= set(there):
                raise _missing(name, 1, columns, there)
            _refuse_twice(name, columns, there)
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=list(dict.fromkeys(columns))):
                values = [batch.column(batch.schema.get_field_index(column)).to_pylist() for column in columns]
                for found in zip(*values, strict=True):
                    row += 1
                    yield row, list(found)
    except ParseError:
        raise
    # Values that Python cannot represent, such as dates after the year 9999, raise ValueError or OverflowError.
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system could not open the file
            raise OSError(error.errno, os.strerror(error.errno), name) from error
        reason = " ".join(str(error).split())
        raise ParseError(name, row + 1, 1, f"not a Parquet file, or a damaged one ({reason})") from error
