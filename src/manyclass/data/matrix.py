"""Check the rows of X and present them in the one form that all solvers use, without hidden copies."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from .._native import core

logger = logging.getLogger("manyclass")

# Values checked at a time, so that the masks stay small next to X.
CHECKED_AT_ONCE = 1 << 20
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
LARGEST = {dtype: float(np.finfo(dtype).max) for dtype in FLOATS}
INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))
CLEAN = -1  # returned by the core if all rows can be used as they are


@dataclass(frozen=True)
class RowMatrix:
    """Sparse or dense rows that have been checked. Shared freely, so never write to them.

    Attributes
    ----------
    indptr, indices, values
        Sparse rows in CSR form with ascending, unique indices; both index arrays are int32 or both int64.
    dense
        Dense rows in C order, in place of the three arrays above.
    copies
        The copies that had to be made, with their sizes.
    longest
        Upper bound on the squared length of a row; infinity if unknown.
    """

    n_rows: int
    n_features: int
    indptr: np.ndarray | None = None
    indices: np.ndarray | None = None
    values: np.ndarray | None = None
    dense: np.ndarray | None = None
    copies: list[str] = field(default_factory=list)
    longest: float = np.inf

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.n_rows, self.n_features

    def __getitem__(self, rows: slice) -> "RowMatrix":
        """Return consecutive rows as a view."""
        begin, end, step = rows.indices(self.n_rows)
        if step != 1:
            raise ValueError(f"only consecutive rows can be taken, got a step of {step}")
        end = max(begin, end)
        if self.dense is not None:
            return RowMatrix(end - begin, self.n_features, dense=self.dense[begin:end], longest=self.longest)
        indptr, indices, values = self.csr_arrays
        ends = indptr[begin : end + 1]
        entries = slice(ends[0], ends[-1])
        arrays = ends - ends[0], indices[entries], values[entries]
        return RowMatrix(end - begin, self.n_features, *arrays, longest=self.longest)

    @property
    def csr_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`indptr`, `indices` and `values` of sparse rows."""
        assert self.indptr is not None and self.indices is not None and self.values is not None
        return self.indptr, self.indices, self.values

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are in CSR form."""
        return self.dense is None

    @property
    def dtype(self) -> np.dtype:
        """The type of the values: float32 or float64."""
        return (self.csr_arrays[2] if self.dense is None else self.dense).dtype

    @property
    def nnz(self) -> int:
        """The number of stored values."""
        return int((self.csr_arrays[2] if self.dense is None else self.dense).size)

    @property
    def nbytes(self) -> int:
        """Total size of the arrays in bytes."""
        arrays = (self.indptr, self.indices, self.values, self.dense)
        return sum(array.nbytes for array in arrays if array is not None)

    def check_fits(self, dtype: np.dtype) -> None:
        """Check that the squared length of every row fits a type; see `check_values`."""
        if self.longest > LARGEST[dtype]:
            self.check_values(dtype)

    def check_values(self, used_as: np.dtype | None) -> "RowMatrix":
        """Return the rows with `longest` set; reject values and squared lengths that `used_as` cannot hold."""
        if self.dense is not None:
            row, longest = core.check_dense_rows(self.dense, _most(used_as))
            if row != CLEAN:
                _refuse(self.dense[row], None, row, used_as)
        else:
            indptr, indices, values = self.csr_arrays
            row, longest = core.check_rows(indptr, indices, values, self.n_features, _most(used_as))
            if row != CLEAN:
                entries = slice(indptr[row], indptr[row + 1])
                _refuse(values[entries], indices[entries], row, used_as)
        return replace(self, longest=longest)

    def as_csr(self) -> sp.csr_matrix:
        """Return the rows as a SciPy matrix: a view if they are sparse, a copy if they are dense."""
        if self.dense is not None:
            return sp.csr_matrix(self.dense)
        return csr_of(*self.csr_arrays, self.shape)


def csr_of(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> sp.csr_matrix:
    """Return a SciPy matrix of these arrays, without the copies that SciPy's constructor may make to change types."""
    matrix = sp.csr_matrix(shape, dtype=values.dtype)
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, values
    return matrix


def pointers(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the offsets of consecutive groups with these sizes."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def chosen_entries(chosen: np.ndarray, indptr: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the pointers and arrays of CSR rows with only the chosen entries."""
    return pointers(chosen)[indptr], *(array[chosen] for array in arrays)


def index_type(*largest: int) -> type:
    """Return the type of indices up to these numbers: int32 if they fit, else int64."""
    return np.int32 if max(largest) <= np.iinfo(np.int32).max else np.int64


class UnfitRowError(ValueError):
    """A row of X holds NaN, infinity or values too large to compute with."""


def _note(copies: list[str], what: str, *arrays: np.ndarray) -> None:
    """Record and log a copy."""
    copies.append(f"{what}: {sum(array.nbytes for array in arrays) / 1e6:.1f} MB")
    logger.info(copies[-1])


def _float_type(found: np.dtype, wanted: DTypeLike | None) -> np.dtype:
    if found.kind == "c":
        raise ValueError(f"Complex data not supported: X has type {found}; pass real numbers")
    if wanted is not None:
        if np.dtype(wanted) not in FLOATS:
            raise ValueError(f"dtype must be float32, float64 or None, got {np.dtype(wanted)}")
        return np.dtype(wanted)
    return found if found in FLOATS else np.dtype(np.float64)


def _first_nonfinite(values: np.ndarray) -> int | None:
    for start in range(0, values.size, CHECKED_AT_ONCE):
        part = values[start : start + CHECKED_AT_ONCE]
        finite = np.isfinite(part)
        if not finite.all():
            return start + int(np.argmin(finite))
    return None


def _refuse(values: np.ndarray, columns: np.ndarray | None, row: int, used_as: np.dtype | None) -> NoReturn:
    """Raise an error about the worst value of a row. `columns` gives the columns of its values (None: all)."""
    finite = np.isfinite(values)
    worst = int(np.argmin(finite)) if not finite.all() else int(np.argmax(np.abs(values)))
    column = worst if columns is None else int(columns[worst])
    value = values[worst]
    if not np.isfinite(value):
        kind = "NaN" if np.isnan(value) else "infinity"
        raise UnfitRowError(
            f"X contains {kind} at row {row}, column {column}; remove or fill in such values before fitting or "
            "predicting"
        )
    assert used_as is not None
    with np.errstate(over="ignore"):
        square = float(np.square(values, dtype=np.float64).sum())
    raise UnfitRowError(
        f"X has {value:g} at row {row}, column {column}, too large for {used_as}: the squared length of a row, here "
        f"{square:.3g}, can be at most {LARGEST[used_as]:.3g}; rescale the feature{_or_float64(used_as)}"
    )


def _or_float64(dtype: np.dtype) -> str:
    return ", or use float64" if dtype == np.float32 else ""


def _convert(values: np.ndarray, dtype: np.dtype, place: Callable[[int], tuple[int, int]]) -> np.ndarray:
    """Convert values to another type. `place` maps a position to row and column, for the error message."""
    try:
        with np.errstate(over="ignore"):
            converted = values.astype(dtype, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"X has type {values.dtype}, which holds something that is not a number: {error}") from error
    if values.dtype.kind == "f" and values.dtype.itemsize > dtype.itemsize:
        position = _first_nonfinite(converted.reshape(-1))
        if position is not None and np.isfinite(values.flat[position]):
            row, column = place(position)
            raise ValueError(
                f"X has {values.flat[position]:g} at row {row}, column {column}, too large for {dtype}, whose "
                f"largest number is {LARGEST[dtype]:.3g}; rescale the feature{_or_float64(dtype)}"
            )
    return converted


def _check_pointers(indptr: np.ndarray, n_rows: int, stored: int) -> None:
    if indptr.shape != (n_rows + 1,):
        raise ValueError(f"X.indptr has shape {indptr.shape}, but {n_rows} rows need {n_rows + 1} entries; rebuild X")
    if indptr[0] != 0:
        raise ValueError(f"X.indptr starts with {indptr[0]}; it must start with 0, rebuild X")
    steps = np.diff(indptr)
    if steps.size and steps.min() < 0:
        row = int(np.argmax(steps < 0))
        raise ValueError(f"X.indptr falls from {indptr[row]} to {indptr[row + 1]} at row {row}; rebuild X")
    if indptr[-1] > stored:
        raise ValueError(f"X.indptr ends with {indptr[-1]}, but only {stored} values are stored; rebuild X")


def _row_of(indptr: np.ndarray, position: int) -> int:
    return int(np.searchsorted(indptr, position, side="right")) - 1


def _check_indices(indices: np.ndarray, indptr: np.ndarray, n_features: int) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= n_features):
        position = int(np.flatnonzero((indices < 0) | (indices >= n_features))[0])
        raise ValueError(
            f"row {_row_of(indptr, position)} of X has column index {indices[position]}, outside "
            f"0..{n_features - 1}; correct the index or the shape of X"
        )


def _can_check(X: sp.csr_matrix, dtype: DTypeLike | None) -> bool:
    """Whether the core can check the arrays without converting them."""
    return bool(
        X.data.dtype in FLOATS
        and (dtype is None or X.data.dtype == dtype)
        and X.indptr.dtype in INDEX_TYPES
        and X.indptr.dtype == X.indices.dtype
        and X.indptr.shape == (X.shape[0] + 1,)
        and X.indices.shape == X.data.shape
        and _contiguous(X.indptr, X.indices, X.data)
    )


def _contiguous(*arrays: np.ndarray) -> bool:
    return all(array.flags.c_contiguous for array in arrays)


def _check_sparse(X: Any, dtype: DTypeLike | None, used_as: np.dtype | None) -> RowMatrix:
    n_rows, n_features = X.shape
    if X.format == "csr" and _can_check(X, dtype):
        # Fast path: a single call to the core, which matters when predicting single rows.
        row, longest = core.check_rows(X.indptr, X.indices, X.data, n_features, _most(used_as))
        if row == CLEAN:
            stored = X.indptr[-1]
            return RowMatrix(n_rows, n_features, X.indptr, X.indices[:stored], X.data[:stored], longest=longest)
    copies: list[str] = []
    value_type = _float_type(X.dtype, dtype)
    if X.format != "csr":
        name, X = X.format, X.tocsr()
        _note(copies, f"converted {name} to csr", X.data, X.indices, X.indptr)
    indptr, indices, values = np.asarray(X.indptr), np.asarray(X.indices), np.asarray(X.data)
    if indices.size != values.size:
        raise ValueError(f"X has {indices.size} column indices for {values.size} values; rebuild X")
    _check_pointers(indptr, n_rows, values.size)
    if indptr.dtype not in INDEX_TYPES or indices.dtype not in INDEX_TYPES or indptr.dtype != indices.dtype:
        wanted = index_type(values.size, n_features)
        indptr = np.ascontiguousarray(indptr, dtype=wanted)
        found, indices = indices.dtype, np.ascontiguousarray(indices, dtype=wanted)
        _note(copies, f"converted indices from {found} to {indices.dtype}", indptr, indices)
    stored = int(indptr[-1])
    indices, values = indices[:stored], values[:stored]
    _check_indices(indices, indptr, n_features)
    if not _contiguous(indptr, indices, values):
        indptr, indices, values = map(np.ascontiguousarray, (indptr, indices, values))
        _note(copies, "made strided csr arrays contiguous", indptr, indices, values)
    if values.dtype != value_type:
        found = values.dtype
        values = _convert(values, value_type, lambda e: (_row_of(indptr, e), int(indices[e])))
        _note(copies, f"converted {found} to {value_type}", values)
    # Wrap the arrays anew, because the flags of X itself may be out of date.
    view = csr_of(indptr, indices, values, X.shape)
    if not view.has_canonical_format:
        view = csr_of(indptr.copy(), indices.copy(), values.copy(), X.shape)
        view.sum_duplicates()
        indptr, indices, values = view.indptr, view.indices, view.data
        _note(copies, "sorted csr rows and added up duplicates", indptr, indices, values)
    return RowMatrix(n_rows, n_features, indptr, indices, values, copies=copies).check_values(used_as)


def _check_dense(X: Any, dtype: DTypeLike | None, used_as: np.dtype | None) -> RowMatrix:
    copies: list[str] = []
    found = np.asarray(X)
    if found.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, got an array of shape {found.shape}. Reshape your data: "
            "X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single feature"
        )
    value_type = _float_type(found.dtype, dtype)
    if not isinstance(X, np.ndarray):
        _note(copies, f"converted {type(X).__name__} to an array", found)
    if found.dtype != value_type:
        name, width = found.dtype, found.shape[1]
        found = _convert(found, value_type, lambda e: divmod(e, width))
        _note(copies, f"converted {name} to {value_type}", found)
    if not (found.flags.c_contiguous and found.flags.aligned):
        found = np.array(found, order="C")
        _note(copies, "converted to C order", found)
    return RowMatrix(found.shape[0], found.shape[1], dense=found, copies=copies).check_values(used_as)


def _most(used_as: np.dtype | None) -> float:
    return np.inf if used_as is None else LARGEST[used_as]


def check_matrix(X: Any, *, dtype: DTypeLike | None = None, used_as: DTypeLike | None = None) -> RowMatrix:
    """Check a matrix of any format and return its rows, sharing its memory where possible.

    CSR matrices with sorted, unique 32- or 64-bit indices and dense arrays in C order are not copied, even if they
    are read-only or memory-mapped. Everything else is converted; each copy is listed in the result and logged (logger
    `manyclass`, level INFO). `X` itself is never changed. ValueError names the row and column of a value that is NaN,
    infinite or too large.

    Parameters
    ----------
    dtype
        The type of the returned values. None keeps float32 and float64, and converts everything else to float64.
    used_as
        The type that training or prediction computes in. The squared length of every row must fit it. None skips
        this check.
    """
    in_type = None if used_as is None else np.dtype(used_as)
    return _check_sparse(X, dtype, in_type) if sp.issparse(X) else _check_dense(X, dtype, in_type)
