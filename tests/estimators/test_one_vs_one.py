"""One-vs-one: votes, and problems that are too large."""

import numpy as np
import pytest
import scipy.sparse as sp
from losses import make, text_like
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC

from manyclass import OneVsOneSVC
from manyclass.solvers import estimate

TIGHT = {"tol": 1e-8, "dtype": "float64", "max_iter": 100_000, "fit_intercept": False}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_predicts_what_scikit_learn_does(loss):
    X, y = text_like(200, 60, 6, seed=0)
    ours = OneVsOneSVC(loss, **TIGHT).fit(X[:120], y[:120])
    theirs = OneVsOneClassifier(LinearSVC(loss=loss, tol=1e-8, max_iter=10**6, fit_intercept=False))
    theirs.fit(X[:120], y[:120])
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    # Votes and tie-breaking; both scale the latter in the same way.
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_each_pair_is_a_binary_problem_on_its_rows():
    X, y = text_like(150, 60, 4, seed=1)
    ours = make("ovo_logistic", **TIGHT).fit(X, y)
    for pair, (a, b) in enumerate(zip(*np.triu_indices(4, 1), strict=True)):
        rows = (y == a) | (y == b)
        theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X[rows], y[rows] == a)
        np.testing.assert_allclose(ours.coef_[pair], theirs.coef_[0], atol=2e-4)


def test_topk_follows_the_votes():
    X, y = text_like(100, 40, 7, seed=2)
    model = OneVsOneSVC().fit(X, y)
    labels, scores = model.predict_topk(X, 3)
    votes = model.decision_function(X)
    np.testing.assert_array_equal(labels, np.argsort(-votes, axis=1, kind="stable")[:, :3])
    np.testing.assert_array_equal(scores, np.take_along_axis(votes, labels, axis=1))
    # One vote per pair, unless a score is exactly 0.
    assert np.round(votes).sum(axis=1).max() == 21


def test_a_row_without_features_has_no_votes():
    X, y = text_like(60, 30, 4, seed=3)
    model = OneVsOneSVC(fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(sp.csr_matrix((1, 30))), np.zeros((1, 4)))


def test_absurd_sizes_are_refused_with_the_figure(monkeypatch):
    X, y = text_like(60, 30, 6, seed=4)
    monkeypatch.setattr(estimate, "_free_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"6 classes means 15 problems and needs about .* GB .* use one-vs-rest"):
        OneVsOneSVC().fit(X, y)
    monkeypatch.setattr(estimate, "_free_memory", lambda: 10**15)
    monkeypatch.setattr(estimate, "SECONDS_A_PAIR_AND_NONZERO", 1e6)
    with pytest.raises(ValueError, match=r"would take about .* hours; use one-vs-rest"):
        OneVsOneSVC().fit(X, y)
