"""Codes decode to the original labels, and the order of the classes does not depend on the rows."""

import tracemalloc
from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyclass.data import encode_known, encode_labels
from manyclass.data.labels import native_labels

PLAIN = st.one_of(
    st.lists(st.integers(), min_size=1),
    st.lists(st.text(), min_size=1),
    st.lists(st.floats(allow_nan=False), min_size=1),
    st.lists(st.tuples(st.integers(0, 3), st.text(max_size=2)), min_size=1),
    st.lists(st.one_of(st.tuples(), st.integers(0, 5), st.text(max_size=2)), min_size=1),
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
        (["b", (), 3, "a", 20], "O", [20, 3, "a", "b", ()]),
        ([datetime(2024, 5, 1), datetime(2023, 1, 1)], "M", [datetime(2023, 1, 1), datetime(2024, 5, 1)]),
        (pd.Series(pd.to_datetime(["2024-05-01", "2023-01-01"])), "M", [datetime(2023, 1, 1), datetime(2024, 5, 1)]),
        (pd.Series([3, 1, 2], dtype="Int64"), "i", [1, 2, 3]),
        (pd.Series([True, False], dtype="boolean"), "b", [False, True]),
        (pd.Series(["b", "a"], dtype="string"), "U", ["a", "b"]),
        (pd.Series([(1, 2), "a", 3]), "O", [3, "a", (1, 2)]),
        ([2**70, 1], "O", [1, 2**70]),
    ],
)
def test_classes_are_sorted_and_of_a_native_type_where_there_is_one(y, kind, classes):
    found, _ = encode_labels(y)
    assert found.dtype.kind == kind and found.tolist() == classes


@pytest.mark.parametrize(
    ("y", "shown"),
    [
        ([1.0, np.nan, 2.0, np.nan], "NaN"),
        (["a", float("nan"), "b", np.nan], "NaN"),
        (np.array([1, np.nan, 2, np.nan]), "NaN"),
        (["a", Decimal("NaN"), "b", None], "NaN"),
        (["a", None, "b", None], "None"),
        (np.array([3, None, 4, None], dtype=object), "None"),
        (np.ma.array([1, 2, 3, 2], mask=[0, 1, 0, 1]), "None"),
        (np.array(["2020", "NaT", "2021", "NaT"], dtype="M8[D]"), "NaT"),
        ([pd.Timestamp(2020, 1, 1), pd.NaT, "b", pd.NaT], "NaT"),
        (pd.Series(["a", None, "b", None]), "(NaN|nan)"),
        (pd.Series(["a", None, "b", None], dtype=object), "None"),
        (pd.Series(["a", None, "b", None], dtype="string"), "<NA>"),
        (pd.Series(["a", None, "b", None], dtype="category"), "NaN"),
        (pd.Series(["a", None, "b", None], dtype="string[pyarrow]"), "<NA>"),
        (pd.Series([1, None, 2, None], dtype="Int64"), "(NaN|<NA>)"),
        (pd.Series([True, None, False, None], dtype="boolean"), "<NA>"),
        (pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01", None])), "NaT"),
    ],
)
def test_missing_labels_are_rejected_with_their_row(y, shown):
    with pytest.raises(ValueError, match=rf"the label of row 1 is {shown}, .* \(2 rows in all\)"):
        encode_labels(y)


def test_a_long_name_does_not_widen_the_others():
    """Memory is proportional to the actual characters; ordinary names stay in a fixed-width array."""
    long = "x" * 50_000
    names = [f"name {number}" for number in range(3000)]
    tracemalloc.start()
    classes, codes = encode_labels([*names, long, *names])
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < 5e6  # a fixed-width array would need 600 MB
    assert classes.dtype == object and classes[codes[3000]] == long and len(classes) == 3001
    np.testing.assert_array_equal(encode_known([long, "name 7"], classes), codes[[3000, 7]])
    assert encode_labels(names)[0].dtype == "<U9"


@pytest.mark.parametrize(
    ("lengths", "kind"),
    [
        ([1, 256], "U"),
        ([1, 257], "O"),
        ([257, 257], "O"),
        ([5] * 60_000 + [100], "O"),  # over 16 MiB, and 20 times the characters
        ([5] * 40_000 + [100], "U"),  # less than 16 MiB
        ([100] * 60_000, "U"),  # no padding
    ],
)
def test_names_are_objects_if_a_fixed_width_wastes_memory(lengths, kind):
    names = ["a" * length for length in lengths]
    assert native_labels(names).dtype.kind == kind and native_labels(names).tolist() == names


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


def test_numbers_never_equal_strings():
    np.testing.assert_array_equal(encode_known(["1", "2"], np.array([1, 2]), unknown="-1"), [-1, -1])
    np.testing.assert_array_equal(encode_known([1.0, 2.5], np.array([1, 2]), unknown="-1"), [0, -1])
    large = 2**53
    np.testing.assert_array_equal(encode_known([float(large)], np.array([large + 1, large + 2]), unknown="-1"), [-1])
