import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, top_k_accuracy_score

from manyclass.metrics import error_rate, f1_scores, topk_error

K = 6
pairs = st.lists(st.tuples(st.integers(0, K - 1), st.integers(0, K - 1)), min_size=1, max_size=40)


@given(pairs)
def test_error_and_f1_agree_with_scikit_learn(rows):
    truth, found = np.array(rows).T
    micro, macro = f1_scores(truth, found, K)
    assert error_rate(truth, found) == pytest.approx(1 - accuracy_score(truth, found))
    assert micro == pytest.approx(f1_score(truth, found, average="micro"))
    assert macro == pytest.approx(f1_score(truth, found, average="macro"))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_topk_error_agrees_with_scikit_learn(k):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, K))
    truth = rng.integers(K, size=200)
    best = np.argsort(-scores, axis=1)[:, :k]
    expected = 1 - top_k_accuracy_score(truth, scores, k=k, labels=np.arange(K))
    assert topk_error(truth, best) == pytest.approx(expected)


def test_an_unknown_class_is_an_error_in_every_measure():
    truth, found = np.array([0, -1]), np.array([0, 1])
    assert error_rate(truth, found) == 0.5
    assert topk_error(truth, np.array([[0, 1], [1, -1]])) == 0.5
    # Class 0 is right and class 1 wrongly predicted; the unknown class has no score of its own.
    assert f1_scores(truth, found, 2) == (0.5, 0.5)


@pytest.mark.parametrize("measure", [error_rate, topk_error])
def test_shapes_that_do_not_match_are_rejected(measure):
    with pytest.raises(ValueError, match="expected"):
        measure(np.zeros(3, int), np.zeros((2, 2), int))


def test_an_empty_input_is_rejected():
    with pytest.raises(ValueError, match="no rows"):
        error_rate(np.zeros(0, int), np.zeros(0, int))
