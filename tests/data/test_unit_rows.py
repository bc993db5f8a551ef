"""Rows get unit length whatever their values, type and layout."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from manyclass.data import UnitRows, unit_rows


@parametrize_with_checks([UnitRows()])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_equal_those_of_scikit_learn(dtype):
    X = sp.random(200, 30, 0.1, format="csr", dtype=dtype, random_state=0)
    found = UnitRows().fit_transform(X)
    assert found.dtype == dtype and found.has_sorted_indices
    np.testing.assert_allclose(found.toarray(), normalize(X).toarray(), rtol=2 * np.finfo(dtype).eps * 30)
    np.testing.assert_array_equal(UnitRows().transform(X.toarray()), found.toarray())


EXTREME = st.sampled_from([0.0, 1.0, -3.0, 1e-45, 1e-38, 1e38, 3e38, 1e-300, 1e-320, 1.7e308, -1e200])


@given(arrays(np.float64, (4, 5), elements=EXTREME), st.sampled_from([np.float32, np.float64]))
def test_the_length_is_1_or_0_for_all_finite_values(X, dtype):
    with np.errstate(over="ignore", under="ignore"):
        X = X.astype(dtype)
    X[~np.isfinite(X)] = 2
    lengths = np.sqrt((UnitRows().transform(X).astype(np.float64) ** 2).sum(axis=1))
    np.testing.assert_allclose(lengths, (X != 0).any(axis=1).astype(float), rtol=1e-6)


def test_empty_rows_stay_empty_and_zeros_zeros():
    X = sp.csr_matrix((np.array([0.0, 3, 4, 0]), [1, 0, 2, 1], [0, 1, 1, 3, 4]), shape=(4, 3))
    found = UnitRows().transform(X)
    np.testing.assert_array_equal(found.toarray(), [[0, 0, 0], [0, 0, 0], [0.6, 0, 0.8], [0, 0, 0]])
    assert UnitRows().transform(sp.csr_matrix((3, 4))).nnz == 0


def test_duplicates_are_added_up_first_and_the_input_stays():
    X = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), [2, 2, 0], [0, 3]), shape=(1, 3))
    np.testing.assert_allclose(UnitRows().transform(X).toarray(), [[0.8, 0, 0.6]])
    assert X.data.tolist() == [1, 2, 4]


def test_wide_indices_stay_as_they_are():
    X = sp.csr_matrix((2, 1 << 40), dtype=np.float32)
    X.data, X.indices = np.float32([3, 4]), np.array([7, 1 << 39])
    X.indptr = np.array([0, 2, 2])
    found = UnitRows().transform(X)
    assert found.indices.dtype == found.indptr.dtype == np.int64
    np.testing.assert_array_equal(found.data, np.float32([0.6, 0.8]))


def test_pieces_do_not_matter(monkeypatch):
    X = sp.random(50, 20, 0.3, format="csr", random_state=0)
    whole = UnitRows().transform(X).data
    monkeypatch.setattr(unit_rows, "VALUES_AT_ONCE", 4)
    np.testing.assert_array_equal(UnitRows().transform(X).data, whole)
