"""Compare sparse rows bit for bit."""

import numpy as np


def assert_same(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
