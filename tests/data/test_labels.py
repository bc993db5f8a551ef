"""Codes and classes give the labels back, in an order that does not depend on the rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyclass.data import encode_known, encode_labels

PLAIN = st.one_of(
    st.lists(st.integers(), min_size=1),
    st.lists(st.text(), min_size=1),
    st.lists(st.floats(allow_nan=False), min_size=1),
    st.lists(st.tuples(st.integers(0, 3), st.text(max_size=2)), min_size=1),
    st.lists(st.one_of(st.none(), st.integers(0, 5), st.text(max_size=2)), min_size=1),
    st.lists(st.frozensets(st.integers(0, 3)), min_size=1),
)


@given(PLAIN, st.randoms(use_true_random=False))
def test_classes_of_codes_are_the_labels_in_any_order_of_rows(y, random):
    if len(set(y)) < 2:
        with pytest.raises(ValueError, match="only one class"):
            encode_labels(y)
        return
    classes, codes = encode_labels(y)
    assert codes.dtype == np.int32 and len(set(classes.tolist())) == len(classes) == len(set(y))
    assert [classes[code] for code in codes] == y
    np.testing.assert_array_equal(encode_known(y, classes), codes)
    shuffled = list(y)
    random.shuffle(shuffled)
    again = encode_labels(shuffled)[0]
    assert again.tolist() == classes.tolist() and again.dtype.kind == classes.dtype.kind


@pytest.mark.parametrize(
    ("y", "kind", "classes"),
    [
        ([3, 1, 2, 1], "i", [1, 2, 3]),
        ([1.0, 2.0, 1.0], "f", [1.0, 2.0]),
        (["b", "a"], "U", ["a", "b"]),
        (np.array(["b", "a"], dtype=object), "U", ["a", "b"]),
        (np.array([True, False]), "b", [False, True]),
        (pd.Series(["x", "y", "x"]), "U", ["x", "y"]),
        (pd.Categorical(["x", "y", "x"]), "U", ["x", "y"]),
        ([(2, "a"), (1, "b")], "O", [(1, "b"), (2, "a")]),
        (["b", None, 3, "a", 20], "O", [None, 20, 3, "a", "b"]),
        ([2**70, 1], "O", [1, 2**70]),
    ],
)
def test_classes_are_sorted_and_of_a_native_type_where_there_is_one(y, kind, classes):
    found, _ = encode_labels(y)
    assert found.dtype.kind == kind and found.tolist() == classes


@pytest.mark.parametrize("y", [[1.0, np.nan, 2.0], ["a", float("nan"), "b"], np.array([1, np.nan, 2])])
def test_nan_is_refused_with_its_row(y):
    with pytest.raises(ValueError, match="row 1 is NaN"):
        encode_labels(y)


def test_one_class_no_rows_and_odd_shapes():
    with pytest.raises(ValueError, match="only one class, 'spam'"):
        encode_labels(["spam", "spam"])
    with pytest.raises(ValueError, match="no labels"):
        encode_labels([])
    with pytest.raises(ValueError, match=r"shape \(2, 1\)"):
        encode_labels(np.array([[1], [2]]))
    with pytest.raises(TypeError, match="row 1 is a dict"):
        encode_labels(["a", {}])


def test_unknown_labels_are_listed_and_counted():
    classes = np.array(["a", "b"])
    np.testing.assert_array_equal(encode_known(["b", "z", "a"], classes, unknown="-1"), [1, -1, 0])
    with pytest.raises(ValueError, match=r"3 of 4 labels .* 2 known classes, the first in row 1: 'z', 'y'; remove"):
        encode_known(["b", "z", "z", "y"], classes)
    with pytest.raises(ValueError, match="and 15 others"):
        encode_known(range(20), np.array([100, 200]))


def test_numbers_and_words_are_never_mistaken_for_each_other():
    np.testing.assert_array_equal(encode_known(["1", "2"], np.array([1, 2]), unknown="-1"), [-1, -1])
    np.testing.assert_array_equal(encode_known([1.0, 2.5], np.array([1, 2]), unknown="-1"), [0, -1])
    large = 2**53
    np.testing.assert_array_equal(encode_known([float(large)], np.array([large + 1, large + 2]), unknown="-1"), [-1])
