"""Read rows of text files in parts. Reading can resume at the end of any part."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import DTypeLike

from .json_content import Count
from .streams import CHUNK, PathOrFile, stream_name
from .svmlight import LONGEST_LINE, ParseError, feed, feed_source, new_parser, take, take_labels, take_pointers

# Bytes of text per part.
TEXT_AT_ONCE = 16 << 20


@dataclass(frozen=True)
class Place:
    """A position in a sequence of files: the file, and the bytes of text, lines and rows already read from it."""

    file: Count = 0
    offset: Count = 0
    line: Count = 0
    rows: Count = 0


@dataclass(frozen=True)
class RowPart:
    """Consecutive rows of a source."""

    indptr: np.ndarray
    indices: np.ndarray  # as written, counting from 0 or 1
    values: np.ndarray
    label_ptr: np.ndarray  # where the labels of each row begin
    labels: np.ndarray  # of all rows
    end: Place  # where the next part begins
    text_bytes: int  # read


class RowSource(Protocol):
    """A source of labelled rows, read once or resumed from a given place."""

    dtype: np.dtype
    index_base: int | None = 0  # the number that indices count from; None if it follows from the smallest index
    min_index: int = 0  # smallest index read so far, as written
    max_index: int = -1  # largest one; -1 if there are no features
    reading: dict[str, Any]  # for the manifest of a store, which scales the rows to unit length if it has `normalize`
    end: Place  # after the last row

    def parts(self, begin: Place = Place()) -> Iterator[RowPart]:
        """Read the rows from `begin` to the end; ParseError names the file and the place."""

    def settings(self) -> dict[str, Any]:
        """Return what identifies the source, as JSON values; `files` holds its `fingerprints`."""


def fingerprints(paths: Sequence[PathOrFile]) -> list[dict[str, Any]]:
    """Return the name, size and modification time of each file (for a stream, only its name)."""
    found: list[dict[str, Any]] = []
    for path in paths:
        if not isinstance(path, str | os.PathLike) or os.fspath(path) == "-" or not Path(path).is_file():
            found.append({"name": stream_name(path)})
            continue
        status = Path(path).stat()
        found.append({"name": str(Path(path).resolve()), "size": status.st_size, "changed": status.st_mtime_ns})
    return found


class TextRows(RowSource):
    """Rows of one or more svmlight or XMC files.

    Parameters
    ----------
    paths
        The files, plain or compressed. `-` reads standard input.
    xmc
        Whether the files are in the extreme-classification format, each with a header.
    index_base
        The number that indices count from. With 1, index 0 is an error. XMC files count from 0.
    normalize
        Whether the store scales the rows to unit length.
    """

    def __init__(
        self,
        paths: Sequence[PathOrFile],
        *,
        xmc: bool = False,
        dtype: DTypeLike = np.float32,
        index_base: int | None = None,
        normalize: bool = False,
    ):
        self.paths, self.xmc, self.dtype = list(paths), xmc, np.dtype(dtype)
        self.index_base = 0 if xmc else index_base
        self.min_index = np.iinfo(np.int64).max
        self.reading: dict[str, Any] = {"normalize": "l2"} if normalize else {}
        self.end = Place(len(self.paths))

    def settings(self) -> dict[str, Any]:
        return {"files": fingerprints(self.paths), "xmc": self.xmc, "dtype": self.dtype.name} | self.reading

    def parts(self, begin: Place = Place()) -> Iterator[RowPart]:
        for number in range(begin.file, len(self.paths)):
            yield from self._of_file(number, begin if number == begin.file else Place(number))

    def _of_file(self, number: int, begin: Place) -> Iterator[RowPart]:
        zero_based = "auto" if self.index_base is None else self.index_base == 0
        parser = new_parser(self.dtype, xmc=self.xmc, zero_based=zero_based)
        offset, rows, taken = begin.offset, begin.rows, 0
        skip = partial(self._skip, parser, begin) if begin.offset else None
        for count in feed_source(parser, self.paths[number], chunk=CHUNK, skip=skip):
            offset += count
            taken += count
            if taken >= TEXT_AT_ONCE and parser.n_rows:
                rows += parser.n_rows
                end = Place(number, offset - parser.unfinished, parser.line, rows)
                yield self._take(parser, end, taken)
                taken = 0
        yield self._take(parser, Place(number + 1), taken)

    def _skip(self, parser: Any, begin: Place, stream: BinaryIO) -> None:
        name, left = stream_name(self.paths[begin.file]), begin.offset
        if self.xmc:  # the parser needs the header to check the remaining rows
            header = stream.readline(LONGEST_LINE)
            left -= len(header)
            feed(parser, name, np.frombuffer(header, np.uint8))
        while left and (text := stream.read(min(left, CHUNK))):
            left -= len(text)
        if left:
            raise ParseError(name, begin.line, 1, "the file has become shorter since its first rows were read")
        parser.go_on_after(begin.line, begin.rows)

    def _take(self, parser: Any, end: Place, text_bytes: int) -> RowPart:
        n_rows, nnz = parser.n_rows, parser.nnz
        part = RowPart(
            indptr=take_pointers(parser.take_row_ends, n_rows),
            indices=take(parser.take_written_indices, nnz, np.int64 if parser.wide else np.int32),
            values=take(parser.take_values, nnz, self.dtype),
            label_ptr=take_pointers(parser.take_label_ends, n_rows),
            labels=take_labels(parser),
            end=end,
            text_bytes=text_bytes,
        )
        self.min_index = min(self.min_index, parser.min_index)
        self.max_index = max(self.max_index, parser.n_features - 1 if self.xmc else parser.max_index)
        parser.next_part()
        return part
