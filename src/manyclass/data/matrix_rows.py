"""Use matrices in memory as a source of rows for a store."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from .labels import as_labels, reject_missing
from .matrix import check_matrix
from .row_parts import Place, RowPart, RowSource
from .svmlight import label_blocks

ROWS_AT_ONCE = 1 << 14


class MatrixRows(RowSource):
    """Rows of a matrix with n labels or a sparse indicator, whose labels are its column numbers."""

    def __init__(self, X: Any, y: Any, *, dtype: DTypeLike = np.float32):
        self.dtype = np.dtype(dtype)
        self._rows = check_matrix(X, dtype=self.dtype).as_csr()
        n, d = self._rows.shape
        if sp.issparse(y):
            labels, ends = label_blocks(y, n)
        else:
            labels, ends = as_labels(y), np.arange(1, n + 1)
            if labels.size != n:
                raise ValueError(f"X has {n} rows, but y has {labels.size}")
            reject_missing(labels)
        self._labels, self._label_ptr = labels, np.concatenate([[0], ends])
        self.max_index = d - 1
        self.reading, self.end = {}, Place(1)

    def settings(self) -> dict[str, Any]:  # they do not identify the matrix
        return {"files": [{"name": "<matrix>"}], "dtype": self.dtype.name}

    def parts(self, begin: Place = Place()) -> Iterator[RowPart]:  # noqa: B008 - it is frozen
        indptr, n = self._rows.indptr.astype(np.int64, copy=False), self._rows.shape[0]
        for first in range(begin.rows, n, ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, n)
            entries = slice(indptr[first], indptr[last])
            labels = slice(self._label_ptr[first], self._label_ptr[last])
            yield RowPart(
                indptr[first : last + 1] - indptr[first],
                self._rows.indices[entries],
                self._rows.data[entries],
                self._label_ptr[first : last + 1] - self._label_ptr[first],
                self._labels[labels],
                Place(0, rows=last),
                0,
            )


class MatrixParts(RowSource):
    """Rows of a sequence of pairs `(X, y)` as for `MatrixRows`, with the same features, such as from a generator."""

    def __init__(self, parts: Iterable[tuple[Any, Any]], *, dtype: DTypeLike = np.float32):
        self._parts, self.dtype = parts, np.dtype(dtype)
        self.reading, self.end = {}, Place(1)

    def settings(self) -> dict[str, Any]:  # they do not identify the matrices
        return {"files": [{"name": "<matrices>"}], "dtype": self.dtype.name}

    def parts(self, begin: Place = Place()) -> Iterator[RowPart]:  # noqa: B008 - it is frozen
        rows = 0
        for number, pair in enumerate(self._parts):
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise TypeError(f"part {number} must be a pair of rows and labels, not {type(pair).__name__}")
            matrix = MatrixRows(*pair, dtype=self.dtype)
            self.max_index = max(self.max_index, matrix.max_index)
            for part in matrix.parts():
                rows += part.indptr.size - 1
                yield replace(part, end=Place(0, rows=rows))
