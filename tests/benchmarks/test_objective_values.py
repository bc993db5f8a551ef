"""The objective against values worked out by hand, and against the formula written without blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.objective import LOSSES, error_rate, primal

BY_CLASS = [loss for loss in LOSSES if not loss.startswith("ovo_")]
# Two rows, three classes. Scores: row 0 (1, 0, 0.5), row 1 (0, -1, 2); own classes 0 and 1; |W|^2 = 6.25.
X = sp.csr_matrix(np.eye(2))
Y = np.array([0, 1])
W = np.array([[1.0, 0.0, 0.5], [0.0, -1.0, 2.0]])


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        # Row 0: 1-1+0 = 0 and 1-1+0.5 = 0.5. Row 1: 1+1+0 = 2 and 1+1+2 = 4.
        ("ww", 0.5 + 2 + 4),
        ("cs", 0.5 + 4),
        # Row 0: 1-1, 1+0, 1+0.5. Row 1: 1+0, 1-(-1), 1+2.
        ("hinge", 0 + 1 + 1.5 + 1 + 2 + 3),
        ("squared_hinge", 0 + 1 + 2.25 + 1 + 4 + 9),
    ],
)
@pytest.mark.parametrize("block", [1, 2, 3])
def test_value_worked_out_by_hand(loss, value, block):
    assert primal(loss, X, Y, W, C=2.0, block=block) == pytest.approx(0.5 * 6.25 + 2 * value)


def plain(loss, X, y, W, C):
    scores = X @ W
    rows = np.arange(len(y))
    if loss in ("ww", "cs"):
        hinge = np.maximum(0, 1 - scores[rows, y][:, None] + scores)
        hinge[rows, y] = 0
        total = hinge.sum() if loss == "ww" else hinge.max(axis=1).sum()
    elif loss == "maxent":
        total = (np.log(np.exp(scores).sum(axis=1)) - scores[rows, y]).sum()
    elif loss == "llw":
        hinge = np.maximum(0, 1 + scores)
        hinge[rows, y] = 0
        total = hinge.sum()
    elif loss == "logistic":
        sign = -np.ones_like(scores)
        sign[rows, y] = 1
        total = np.log(1 + np.exp(-sign * scores)).sum()
    else:
        sign = -np.ones_like(scores)
        sign[rows, y] = 1
        total = (np.maximum(0, 1 - sign * scores) ** (1 if loss == "hinge" else 2)).sum()
    return 0.5 * (W**2).sum() + C * total


@pytest.mark.parametrize("loss", BY_CLASS)
@pytest.mark.parametrize("intercept", [0, 1])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix, sp.csc_matrix], ids=["dense", "csr", "csc"])
def test_blocks_and_storage_do_not_matter(loss, intercept, store):
    rng = np.random.default_rng(3)
    rows = sp.random(17, 9, 0.4, format="csr", random_state=3)
    y = rng.integers(0, 7, 17)
    W = rng.normal(size=(9 + intercept, 7)) * (rng.random((9 + intercept, 7)) < 0.5)
    dense = np.hstack([rows.toarray(), np.ones((17, intercept))])
    assert primal(loss, rows, y, store(W), 0.3, block=4) == pytest.approx(plain(loss, dense, y, W, 0.3))
    expected = np.mean((dense @ W).argmax(axis=1) != y)
    assert error_rate(rows, y, store(W), block=4) == pytest.approx(expected)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_one_vs_one_is_a_problem_a_pair(store):
    rng = np.random.default_rng(4)
    rows, y = sp.random(30, 9, 0.5, format="csr", random_state=4), rng.integers(0, 4, 30)
    W = rng.normal(size=(9, 6))
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    expected, votes, margins = 0.0, np.zeros((30, 4)), np.zeros((30, 4))
    for column, (a, b) in enumerate(pairs):
        s, taking_part = rows @ W[:, column], (y == a) | (y == b)
        sign = np.where(y == a, 1.0, -1.0)
        expected += 0.5 * (W[:, column] ** 2).sum()
        expected += 0.3 * (np.maximum(0, 1 - sign * s) ** 2)[taking_part].sum()
        votes[:, a] += s > 0
        votes[:, b] += s < 0
        margins[:, a] += s
        margins[:, b] -= s
    assert primal("ovo_squared_hinge", rows, y, store(W), 0.3) == pytest.approx(expected)
    best = [max(range(4), key=lambda c, i=i: (votes[i, c], margins[i, c])) for i in range(30)]
    assert error_rate(rows, y, store(W), pairs=True) == pytest.approx(np.mean(np.array(best) != y))


def test_float32_weights_are_summed_in_float64():
    W32 = np.full((2, 3), 0.1, dtype=np.float32)
    assert primal("hinge", X, Y, W32) == pytest.approx(plain("hinge", X, Y, W32.astype(np.float64), 1.0), abs=1e-14)


def test_zero_weights():
    empty = np.zeros((2, 3))
    expected = {"ww": 4, "cs": 2, "llw": 4, "hinge": 6, "squared_hinge": 6}
    expected |= {"logistic": 6 * np.log(2), "maxent": 2 * np.log(3)}
    for loss in BY_CLASS:
        assert primal(loss, X, Y, empty) == pytest.approx(expected[loss])
    assert error_rate(X, np.array([-1, 0]), empty) == 0.5


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="unknown loss 'absolute'"):
        primal("absolute", X, Y, W)
    with pytest.raises(ValueError, match="5 rows of weights do not fit 2 features"):
        primal("ww", X, Y, np.zeros((5, 3)))
