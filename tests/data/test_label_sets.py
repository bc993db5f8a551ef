"""Encoded label sets decode to the original ones; invalid input is rejected with its place."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from manyclass.data import encode_known_sets, encode_label_sets, has_label_sets

Y = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 1]])


def sets_of(classes, Y):
    return [{classes[c] for c in Y.indices[Y.indptr[i] : Y.indptr[i + 1]]} for i in range(Y.shape[0])]


@given(
    st.one_of(
        st.lists(st.lists(st.integers()), min_size=1),
        st.lists(st.sets(st.text()), min_size=1),
        st.lists(st.frozensets(st.tuples(st.integers(0, 3), st.text(max_size=2))), min_size=1),
        st.lists(st.lists(st.one_of(st.tuples(), st.integers(0, 5), st.text(max_size=2))), min_size=1),
    )
)
def test_classes_of_columns_are_the_labels(y):
    # Rows of equal length that hold only 0 and 1 are an indicator.
    indicator = len(set(map(len, y))) == 1 and len(y[0]) > 1 and all(label in (0, 1) for row in y for label in row)
    if not any(any(row) if indicator else row for row in y):
        with pytest.raises(ValueError, match="has a label"):
            encode_label_sets(y)
        return
    classes, found = encode_label_sets(y)
    if indicator:
        np.testing.assert_array_equal(found.toarray(), np.array([list(row) for row in y], int))
        return
    assert sets_of(classes.tolist(), found) == [set(row) for row in y]
    assert len(classes) == found.shape[1] == len({label for row in y for label in row})
    assert found.has_sorted_indices and (found.data == 1).all()
    known, unknown = encode_known_sets(y, classes)
    np.testing.assert_array_equal(known.toarray(), found.toarray())
    assert not unknown.any()


@pytest.mark.parametrize(
    "y",
    [
        Y,
        Y.astype(bool),
        Y.astype(float),
        Y.astype(object),
        Y.tolist(),
        list(Y),
        pd.DataFrame(Y),
        *(form(Y) for form in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.lil_matrix, sp.csr_array)),
    ],
)
def test_indicators_keep_all_their_columns(y):
    assert has_label_sets(y)
    classes, found = encode_label_sets(y)
    assert classes.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(found.toarray(), Y)
    np.testing.assert_array_equal(encode_known_sets(y, np.array(list("abcd")))[0].toarray(), Y)


def test_duplicates_count_once_and_stored_zeros_not_at_all():
    twice = sp.coo_matrix(([1, 1, 0], ([0, 0, 1], [2, 2, 1])), shape=(2, 3))
    np.testing.assert_array_equal(encode_label_sets(twice)[1].toarray(), [[0, 0, 1], [0, 0, 0]])
    classes, found = encode_label_sets([["b", "a", "b"], []])
    assert classes.tolist() == ["a", "b"] and found.toarray().tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("y", "several"),
    [
        ([1, 2, 3], False),
        ([(1, 2), (3, 4)], False),
        (["ab", "cd"], False),
        (np.array([[1], [2]]), False),
        (pd.Series(["a", "b"]), False),
        (np.array([(1, 2), None], dtype=object), False),
        ([[1], [2]], True),
        ([{1}, set()], True),
        ([frozenset("a")], True),
        (pd.Series([["a"], ["a", "b"]]), True),
        ([np.array([1, 2]), np.array([])], True),
        (sp.csr_matrix(np.array([[1], [0]])), True),
    ],
)
def test_label_sets_are_told_from_single_labels(y, several):
    assert has_label_sets(y) == several


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.array([[0, 1], [2, 0]]), ValueError, "2 in row 1, column 0"),
        (np.array([[0, 1], [np.nan, 0]]), ValueError, "nan in row 1, column 0"),
        (np.array([["a", "b"], ["c", "d"]]), ValueError, "'a' in row 0, column 0"),
        (sp.csr_matrix([[0, 1], [0, -1]]), ValueError, "-1 in row 1, column 1"),
        ([["a"], [float("nan"), "b"]], ValueError, "a label of row 1 is NaN"),
        ([[1.0], [2.0], [np.nan]], ValueError, "a label of row 2 is NaN"),
        ([["a"], ["b", {}]], TypeError, "a label of row 1 is a dict"),
        ([["a"], "b"], ValueError, r"row 1 of y is 'b', not a set .* write \['b'\]"),
        ([["a"], None], ValueError, "row 1 of y is None"),
        ([[], []], ValueError, "none of the 2 rows"),
        (np.zeros((3, 2)), ValueError, "none of the 3 rows"),
        (sp.csr_matrix((3, 0)), ValueError, "none of the 3 rows"),
    ],
)
def test_invalid_label_sets_are_rejected_with_their_place(y, error, message):
    with pytest.raises(error, match=message):
        encode_label_sets(y)


def test_unknown_labels_are_counted():
    classes = np.array(["a", "c"])
    y = [["c", "x", "y"], [], ["a", "x", "x"], ["c", "a"]]
    found, unknown = encode_known_sets(y, classes, unknown="count")
    assert found.toarray().tolist() == [[0, 1], [0, 0], [1, 0], [1, 1]]
    assert unknown.tolist() == [2, 0, 1, 0]
    with pytest.raises(ValueError, match=r"3 labels in 2 of 4 rows .* the first in row 0: 'x', 'y'; remove"):
        encode_known_sets(y, classes)
    found, unknown = encode_known_sets([["x"], []], classes, unknown="count")
    assert found.shape == (2, 2) and found.nnz == 0 and unknown.tolist() == [1, 0]
    found, unknown = encode_known_sets([[], []], classes)
    assert found.shape == (2, 2) and found.nnz == 0 and not unknown.any()
    with pytest.raises(ValueError, match="3 columns, but there are 2 classes"):
        encode_known_sets(sp.csr_matrix((4, 3)), classes)
