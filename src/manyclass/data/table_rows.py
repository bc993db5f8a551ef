"""Texts and labels of tables, hashed, as a source of rows for a store."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from .hashed_text import HASH_BITS, HashedText
from .labels import as_labels
from .row_parts import Place, RowPart, fingerprints
from .streams import PathOrFile, stream_name
from .svmlight import ParseError
from .text import iter_table
from .unlabelled import Unlabelled, labelled

# Characters of text, and rows, that are hashed at once.
TEXT_AT_ONCE = 4 << 20
ROWS_AT_ONCE = 1 << 14
READ_AT_ONCE = 1 << 20


class TableRows:
    """The rows of CSV, TSV, JSONL and Parquet files, one file after the other; see `RowSource`.

    Parameters
    ----------
    paths : sequence of str or path-like
        Text plain or compressed; `-` is standard input.
    text, label : str, optional
        The columns to read; `text` and `label` if not given.
    format : "csv", "tsv", "jsonl" or "parquet", optional
        Told from the names of the files if not given.
    hash_bits : int
        Texts become rows of 2 ** hash_bits features; see `HashedText`.
    unlabelled : "error" or "skip"
        What to do with rows without a label; see `read_table`.
    """

    def __init__(
        self,
        paths: Sequence[PathOrFile],
        *,
        text: str | None = None,
        label: str | None = None,
        format: str | None = None,
        hash_bits: int = HASH_BITS,
        unlabelled: Unlabelled = "error",
    ):
        self.paths, self._format, self._unlabelled = list(paths), format, unlabelled
        self._columns = (text or "text", label or "label")
        self._hashed = HashedText(hash_bits=hash_bits)
        self.dtype = np.dtype(np.float32)
        self.index_base: int | None = 0
        self.min_index, self.max_index = 0, self._hashed.n_features - 1
        self.reading: dict[str, Any] = {
            "text": {"hash_bits": hash_bits},
            "text_column": self._columns[0],
            "label_column": self._columns[1],
        }
        self.end = Place(len(self.paths))

    def settings(self) -> dict[str, Any]:
        """What tells whether this is the same source as another."""
        return {
            "files": fingerprints(self.paths),
            "format": self._format,
            "unlabelled": self._unlabelled,
            **self.reading,
        }

    def parts(self, begin: Place = Place()) -> Iterator[RowPart]:  # noqa: B008 - it is frozen
        """Read from a place on to the end of the last file.

        Raises
        ------
        ParseError
            With file and line.
        """
        for number in range(begin.file, len(self.paths)):
            done = begin.rows if number == begin.file else 0
            rows = itertools.islice(self._rows_of(self.paths[number]), done, None)
            while batch := _batch(rows):
                texts, labels = (list(column) for column in zip(*batch, strict=True))
                done += len(batch)
                yield self._hash(texts, labels, Place(number, rows=done))

    def _rows_of(self, path: PathOrFile) -> Iterator[tuple[str, Any]]:
        name = stream_name(path)
        if self._format == "parquet" or (self._format is None and PurePath(name).suffix.lower() == ".parquet"):
            return labelled(parquet_rows(path, *self._columns), name, self._columns[1], self._unlabelled)
        text, label = self._columns
        return iter_table(path, text=text, label=label, format=self._format, unlabelled=self._unlabelled)

    def _hash(self, texts: list[str], labels: list[Any], end: Place) -> RowPart:
        X = self._hashed.transform(texts)
        label_ptr = np.arange(len(labels) + 1)
        size = sum(map(len, texts))
        return RowPart(X.indptr.astype(np.int64), X.indices, X.data, label_ptr, as_labels(labels), end, size)


def _batch(rows: Iterator[tuple[str, Any]]) -> list[tuple[str, Any]]:
    batch: list[tuple[str, Any]] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row[0])
        if size >= TEXT_AT_ONCE or len(batch) == ROWS_AT_ONCE:
            break
    return batch


def parquet_rows(path: PathOrFile, text: str, label: str) -> Iterator[tuple[int, str, Any]]:
    """Numbers, texts and labels of the rows of a Parquet file, some thousand rows at a time.

    Raises
    ------
    ParseError
        For a file that is no Parquet, lacks a column, or has something else there; with the row in place of a line.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError('Parquet needs one more package: pip install "manyclass[blocks]"') from error
    name = stream_name(path)
    if name == "<stdin>":
        raise ParseError(name, 1, 1, "Parquet cannot be read from a pipe; pass a file")
    row = 0
    try:
        # Pages are read as they are needed: a group of rows can be as large as the file.
        with pq.ParquetFile(path, buffer_size=READ_AT_ONCE, pre_buffer=False) as file:
            columns = file.schema_arrow.names
            missing = [column for column in (text, label) if column not in columns]
            if missing:
                found = ", ".join(map(repr, columns))
                raise ParseError(name, 1, 1, f"no column {missing[0]!r}; the columns are {found}", "columns")
            for batch in file.iter_batches(ROWS_AT_ONCE // 16, columns=[text, label]):
                texts, labels = (batch.column(batch.schema.get_field_index(wanted)) for wanted in (text, label))
                for one, its_label in zip(texts.to_pylist(), labels.to_pylist(), strict=True):
                    row += 1
                    if not isinstance(one, str) or not isinstance(its_label, str | bool | int | float | None):
                        raise ParseError(
                            name, row, 1, f"the text is {one!r} and the label {its_label!r}; fill them in"
                        )
                    yield row, one, its_label
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ParseError(name, row + 1, 1, f"this is no Parquet, or damaged ({error})") from error
