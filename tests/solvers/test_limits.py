"""Where the limits of penalties, rows and elastic nets lie, and what is said of rows that train slowly."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import check_matrix
from manyclass.data.matrix import RowMatrix
from manyclass.problems import PROBLEMS
from manyclass.problems.sparse_binary import SparseHinge
from manyclass.solvers import TrainingSet
from manyclass.solvers.scale import APART, LONG, check_scale, longest_row, slow_because

TYPES = [np.float32, np.float64]


def limits(dtype):
    """The largest number, and the smallest penalty."""
    found = np.finfo(dtype)
    return float(found.max), float(found.tiny) / float(found.eps) ** 2


def refused(reason, *arguments, dtype):
    with pytest.raises(ValueError, match=reason) as caught:
        longest_row(*arguments, dtype)
    assert ("or use float64" in str(caught.value)) == (dtype == np.float32)


@pytest.mark.parametrize("dtype", TYPES)
def test_penalties_between_the_limits_are_accepted(dtype):
    most, least = limits(dtype)
    ww = PROBLEMS["ww"]
    assert longest_row(ww, 4, least, least, dtype) == most
    refused("too small", ww, 4, least, 0.999 * least, dtype=dtype)
    W = (most / 8 * ww.loss_at_zero(4)) ** 0.5  # leaves (1 + 2 |x| |W|)^2 = 16
    assert longest_row(ww, 4, most / 16, 1.0, dtype) ** 0.5 * W == pytest.approx(1.5)
    refused("add up to .*, too much", ww, 4, 1.001 * most / 16, 1.0, dtype=dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("loss", ["ww", "cs", "hinge", "maxent"])
@pytest.mark.parametrize("total", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("tau", [1.0, 0.2, 5.0])
def test_the_longest_row_takes_the_bound_to_the_largest_number(dtype, loss, total, tau):
    """`max(1, total) (1 + 2 |x| |W|)^2`, with `tau / 2 |W|^2` all that the rows lose at weights 0."""
    problem = PROBLEMS[loss] if tau == 1 else SparseHinge(tau=tau)
    most, _ = limits(dtype)
    W = (2 * total * problem.loss_at_zero(7) / tau) ** 0.5
    longest = longest_row(problem, 7, total, total, dtype) ** 0.5
    bound = max(1.0, total) ** 0.5 * (1 + 2 * longest * W)
    assert bound == pytest.approx(most**0.5) or longest == pytest.approx((most * min(1, tau)) ** 0.5)
    assert bound <= most**0.5 * (1 + 1e-9)


@pytest.mark.parametrize("dtype", TYPES)
def test_short_penalties_leave_what_the_type_can_hold(dtype):
    most, least = limits(dtype)
    for tau in (0.2, 1.0, 5.0):
        found = longest_row(SparseHinge(tau=tau), 7, 1e6 * least, 1e6 * least, dtype)
        assert found == pytest.approx(most * min(1, tau))


@pytest.mark.parametrize("dtype", TYPES)
def test_elastic_nets_between_the_limits_are_accepted(dtype):
    root = limits(dtype)[0] ** 0.5
    for inside in ({"lam": 0.0}, {"lam": root}, {"tau": root}, {"tau": 1 / root}):
        assert longest_row(SparseHinge(**inside), 4, 1.0, 1.0, dtype) > 0
    for name, value in (("lam", -1e-9), ("lam", 1.001 * root), ("tau", 1.001 * root), ("tau", 0.999 / root)):
        refused(f"{name} must be from", SparseHinge(**{name: value}), 4, 1.0, 1.0, dtype=dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_up_to_the_longest_are_accepted(dtype):
    """A constant feature counts as part of each row."""
    C = limits(dtype)[0] ** 0.5 * np.array([1.0, 0.0, 2.0])
    problem = PROBLEMS["ww"]
    most = longest_row(problem, 4, C.sum(), C.max(), np.dtype(dtype))

    def check(square, constant_square):
        rows = RowMatrix(3, 1, dense=np.ones((3, 1), dtype), longest=square)
        data = TrainingSet(rows, np.arange(3, dtype=np.int32), C, 4, constant=constant_square**0.5)
        check_scale(problem, data, np.dtype(dtype))

    check(most, 0.0)
    check(0.0, 0.9999 * most)
    check(0.6 * most, 0.3999 * most)
    wider = "or use float64" if dtype == np.float32 else "or lower C$"
    with pytest.raises(ValueError, match=f"rows of length .* scale the features.* {wider}"):
        check(0.6 * most, 0.4001 * most)
    with pytest.raises(ValueError, match=f"a constant feature .* lower it, .*{wider}"):
        check(0.4 * most, 0.6001 * most)


def test_well_scaled_rows_are_not_slow():
    assert slow_because(check_matrix(np.eye(3))) == ""
    assert slow_because(check_matrix(np.full((5, 1), LONG))) == ""
    assert slow_because(check_matrix(np.array([[1e-3, 1e-3 * APART, 0.0]]))) == ""
    assert slow_because(check_matrix(sp.csr_matrix((2, 3)))) == ""


@pytest.mark.parametrize("given", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_why_training_is_slow(given):
    """Typical lengths are over all rows, typical values over the rows that have the feature."""
    long = slow_because(check_matrix(given([[30.0, 0, 40.0], [0.0, 0, 50.0]])))
    assert "because the rows are long (typical length 50): scale" in long
    assert "typical length 12)" in slow_because(check_matrix(given([[12.0]])))
    apart = slow_because(check_matrix(given([[3e-3, 0, 0.5, 0], [4e-3, 0, 0, 0]])))
    assert "because the features are on different scales (typical values from 0.0035 to 0.5): scale" in apart
    both = slow_because(check_matrix(given([[0.1, 0, 0], [0, 20.0, 0]])))
    assert "typical length 14.1) and the features are on different scales" in both
