"""Matrices are shared if possible, otherwise copied with a record of the copy, and never changed."""

import logging

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from manyclass.data import check_matrix


def shares(rows, X):
    return all(
        np.shares_memory(a, b) for a, b in [(rows.indptr, X.indptr), (rows.indices, X.indices), (rows.values, X.data)]
    )


@pytest.fixture
def X():
    return sp.random(20, 10, 0.3, "csr", np.float32, random_state=0)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_is_used_as_it_is(X, container, index_type, dtype):
    X = container(X.astype(dtype))
    X.indptr, X.indices = X.indptr.astype(index_type), X.indices.astype(index_type)
    rows = check_matrix(X, dtype=dtype)
    assert shares(rows, X) and rows.copies == []
    assert rows.indices.dtype == index_type and rows.dtype == dtype and rows.is_sparse
    assert (rows.n_rows, rows.n_features, rows.nnz) == (20, 10, X.nnz)
    assert rows.as_csr().indices.dtype == index_type and shares(rows, rows.as_csr())


def test_read_only_and_memory_mapped_arrays(tmp_path, X):
    maps = []
    for name in ("indptr", "indices", "data"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    mapped = sp.csr_matrix((maps[2], maps[1], maps[0]), shape=X.shape, copy=False)
    rows = check_matrix(mapped, dtype=np.float32)
    assert rows.copies == [] and (rows.as_csr() != X).nnz == 0
    dense = X.toarray()
    dense.flags.writeable = False
    assert check_matrix(dense, dtype=np.float32).dense is dense


@pytest.mark.parametrize("format", ["csc", "coo", "lil", "bsr", "dok"])
def test_other_formats_are_converted_and_reported(X, format, caplog):
    with caplog.at_level(logging.INFO, "manyclass"):
        rows = check_matrix(X.asformat(format), dtype=np.float32)
    assert (rows.as_csr() != X).nnz == 0
    assert rows.copies[0].startswith(f"converted {format} to csr: ") and rows.copies[0].endswith(" MB")
    assert rows.copies[0] in caplog.text


def test_the_size_of_a_copy_is_recorded():
    X = sp.random(1000, 1000, 0.5, "csr", np.float64, random_state=0)
    assert check_matrix(X, dtype=np.float32).copies == ["converted float64 to float32: 2.0 MB"]


def test_dense_orders_types_and_frames(X):
    dense = X.toarray()
    assert check_matrix(dense).dense is dense
    for other, what in [
        (np.asfortranarray(dense), "C order"),
        (dense[:, ::2], "C order"),
        (dense.astype(np.int32), "int32 to float64"),
        (pd.DataFrame(dense), "DataFrame"),
    ]:
        rows = check_matrix(other)
        assert any(what in copy for copy in rows.copies)
        np.testing.assert_array_equal(rows.dense, np.asarray(other))
    assert check_matrix(dense.astype(bool)).dtype == np.float64


def test_unsorted_rows_and_duplicates_are_corrected_in_a_copy():
    data, indices, indptr = np.arange(1.0, 7), np.array([3, 1, 3, 0, 2, 0]), np.array([0, 3, 3, 6])
    X = sp.csr_matrix((data.copy(), indices.copy(), indptr.copy()), shape=(3, 4), copy=False)
    X.has_canonical_format = True  # wrong, and must not be trusted
    before = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    rows = check_matrix(X)
    np.testing.assert_array_equal(rows.as_csr().toarray(), [[0, 2, 0, 4], [0, 0, 0, 0], [10, 0, 5, 0]])
    np.testing.assert_array_equal(rows.indices, [1, 3, 0, 2])
    assert len(rows.copies) == 1 and "duplicates" in rows.copies[0]
    for array, old in zip([X.data, X.indices, X.indptr], before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_nonfinite_values_are_rejected_with_their_place(value, name):
    dense = np.ones((5, 4))
    dense[3, 2] = value
    for X in (dense, sp.csr_matrix(dense), sp.csc_matrix(dense)):
        with pytest.raises(ValueError, match=f"{name} at row 3, column 2"):
            check_matrix(X)


def every_layout(dense):
    return [dense, np.asfortranarray(dense), sp.csr_matrix(dense), sp.csc_matrix(dense)]


def test_values_that_overflow_on_conversion_are_rejected():
    dense = np.zeros((5, 4))
    dense[3, 2], dense[3, 0] = 1e300, 1.0
    for X in every_layout(dense):
        with pytest.raises(ValueError, match=r"1e\+300 at row 3, column 2, too large for float32.* or use float64"):
            check_matrix(X, dtype=np.float32)
        assert check_matrix(X, dtype=np.float64).dtype == np.float64
    # Without `used_as`, the square of the value need not fit.
    assert check_matrix(dense / 1e280, dtype=np.float32).dense[3, 2] == np.float32(1e20)


@pytest.mark.parametrize("kept_in", [np.float32, np.float64])
def test_rows_too_long_for_the_type_they_are_used_in_are_rejected(kept_in):
    dense = np.ones((5, 4), kept_in)
    dense[3] = 1, -1.5e19, 1.4e19, 0  # each square fits float32, but not their sum
    for X in every_layout(dense):
        with pytest.raises(ValueError, match=r"-1.5e\+19 at row 3, column 1, too large for float32.*4.21e\+38"):
            check_matrix(X, used_as=np.float32)
        assert check_matrix(X, used_as=np.float64).longest == pytest.approx(4.21e38, rel=1e-3)
    dense[3] = 1, -1.5e19, 1e19, 0
    for X in every_layout(dense):
        assert check_matrix(X, used_as=np.float32).dtype == kept_in


def test_a_square_that_overflows_float64_is_rejected():
    dense = np.ones((5, 4))
    dense[3, 2] = -1.7e308
    for X in every_layout(dense):
        with pytest.raises(
            ValueError, match=r"-1.7e\+308 at row 3, column 2, too large for float64: .* rescale the feature$"
        ):
            check_matrix(X, used_as=np.float64)
        assert check_matrix(X).longest == np.inf


def test_duplicates_that_add_up_to_too_much_are_rejected():
    X = sp.csr_matrix((np.full(2, 1.2e19), [1, 1], [0, 0, 2]), shape=(2, 3))
    with pytest.raises(ValueError, match=r"2.4e\+19 at row 1, column 1, too large for float32"):
        check_matrix(X, used_as="float32")


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("indices", [0, 4, 1], "row 0 of X has column index 4, outside 0..3"),
        ("indices", [0, 1, -1], "row 2 of X has column index -1, outside 0..3"),
        ("indptr", [0, 2, 1, 3], "falls from 2 to 1 at row 1"),
        ("indptr", [0, 2, 2, 9], "only 3 values are stored"),
        ("indptr", [1, 2, 2, 3], "must start with 0"),
        ("indptr", [0, 2, 3], "3 rows need 4 entries"),
        ("indices", [0, 1], "2 column indices for 3 values"),
    ],
)
def test_inconsistent_arrays_are_rejected(name, array, reason):
    X = sp.csr_matrix((np.ones(3), [0, 1, 2], [0, 2, 2, 3]), shape=(3, 4))
    setattr(X, name, np.array(array, np.int32))
    with pytest.raises(ValueError, match=reason):
        check_matrix(X)


def test_arrays_longer_than_needed_are_cut_without_a_copy():
    X = sp.csr_matrix((np.ones(2), [0, 1], [0, 1, 2]), shape=(2, 2))
    X.data, X.indices = np.array([1.0, 2.0, np.nan]), np.array([0, 1, 99], np.int32)
    rows = check_matrix(X)
    assert rows.values.size == 2 and rows.copies == [] and shares(rows, X)


def test_vectors_complex_numbers_and_strings_are_rejected():
    with pytest.raises(ValueError, match="Reshape your data"):
        check_matrix(np.ones(3))
    with pytest.raises(ValueError, match="Complex data not supported"):
        check_matrix(np.ones((2, 2), complex))
    with pytest.raises(ValueError, match="not a number"):
        check_matrix(np.array([["a", 1]], dtype=object))
    with pytest.raises(ValueError, match="dtype must be"):
        check_matrix(np.ones((2, 2)), dtype=np.int32)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_consecutive_rows_are_judged_by_their_own_lengths(kind):
    rows = check_matrix(kind([[1.0, 2.0], [1e30, 0.0], [3.0, 4.0]]))
    rows[:1].check_fits(np.dtype(np.float32))
    rows[2:].check_fits(np.dtype(np.float32))
    with pytest.raises(ValueError, match=r"1e\+30 at row 1, column 0"):
        rows[:2].check_fits(np.dtype(np.float32))
