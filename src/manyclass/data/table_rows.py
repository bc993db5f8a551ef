"""Read tables of texts and labels as hashed rows for a store."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .hashed_text import HASH_BITS, HashedText
from .labels import as_labels
from .row_parts import Place, RowPart, RowSource, fingerprints
from .streams import PathOrFile
from .tables import TableFormat
from .text import Unlabelled, iter_table

# Maximum characters and rows hashed at once.
TEXT_AT_ONCE = 4 << 20
ROWS_AT_ONCE = 1 << 14


class TableRows(RowSource):
    """Rows of one or more tables; the parameters are those of `read_table` and `HashedText`."""

    def __init__(
        self,
        paths: Sequence[PathOrFile],
        *,
        text: str | None = None,
        label: str | None = None,
        format: TableFormat | None = None,
        delimiter: str | None = None,
        hash_bits: int = HASH_BITS,
        unlabelled: Unlabelled = "error",
    ):
        self.paths = list(paths)
        self._columns: dict[str, Any] = {"text": text or "text", "label": label or "label"}
        self._options: dict[str, Any] = {"format": format, "delimiter": delimiter, "unlabelled": unlabelled}
        self._hashed = HashedText(hash_bits=hash_bits)
        self.dtype = np.dtype(np.float32)
        self.max_index = self._hashed.n_features - 1
        self.reading = {
            "text": {"hash_bits": hash_bits},
            "text_column": self._columns["text"],
            "label_column": self._columns["label"],
        }
        self.end = Place(len(self.paths))

    def settings(self) -> dict[str, Any]:
        return {"files": fingerprints(self.paths)} | self._options | self.reading

    def parts(self, begin: Place = Place()) -> Iterator[RowPart]:  # noqa: B008 - it is frozen
        for number in range(begin.file, len(self.paths)):
            done = begin.rows if number == begin.file else 0
            table = iter_table(self.paths[number], **self._columns, **self._options)
            rows = itertools.islice(table, done, None)
            while batch := _batch(rows):
                texts, labels = (list(column) for column in zip(*batch, strict=True))
                done += len(batch)
                yield self._hash(texts, labels, Place(number, rows=done))

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
