"""Two classes in scikit-learn's form: shapes, signs and scales."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from losses import LOSSES, make, text_like
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC
from stored_fits import store_of

from manyclass import (
    CalibratedClassifier,
    MaxEnt,
    MulticlassSVC,
    OneVsOneSVC,
    OneVsRestLogistic,
    OneVsRestSVC,
    load_model,
    save_model,
)

EXACT = {"tol": 1e-9, "dtype": "float64", "max_iter": 100_000}


def two_classes(n=150, seed=0):
    X, y = text_like(n, 30, 2, seed=seed)
    flip = np.random.default_rng(seed).random(n) < 0.2
    return X, np.where(flip, 1 - y, y)


def assert_same(ours, theirs, X, atol=1e-4):
    assert ours.coef_.shape == theirs.coef_.shape == (1, 30)
    assert ours.intercept_.shape == np.shape(theirs.intercept_) == (1,)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=atol)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=atol)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_linear_svc(loss):
    X, y = two_classes()
    theirs = LinearSVC(loss=loss, tol=1e-10, max_iter=10**6, random_state=0).fit(X, y)
    assert_same(OneVsRestSVC(loss, **EXACT).fit(X, y), theirs, X, atol=2e-3 if loss == "hinge" else 1e-4)


def test_crammer_singer():
    """`LinearSVC` also offers the loss `max(0, 1 - margin)` of Crammer and Singer."""
    X, y = two_classes()
    theirs = LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=10**6, random_state=0).fit(X, y)
    assert_same(MulticlassSVC("cs", **EXACT).fit(X, y), theirs, X, atol=5e-3)


def test_logistic_regression():
    X, y = two_classes()
    theirs = LogisticRegression(tol=1e-12, max_iter=10_000, fit_intercept=False).fit(X, y)
    ours = OneVsRestLogistic(C=1.0, fit_intercept=False, **EXACT).fit(X, y)
    assert_same(ours, theirs, X)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-3)


def test_maximum_entropy_is_logistic_regression_with_twice_the_penalty():
    """Two weight vectors of half the length have half the squared length of one."""
    X, y = two_classes()
    theirs = LogisticRegression(C=2.0, tol=1e-12, max_iter=10_000, fit_intercept=False).fit(X, y)
    assert_same(MaxEnt(C=1.0, fit_intercept=False, **EXACT).fit(X, y), theirs, X)


def test_one_vs_one():
    X, y = two_classes()
    ours = OneVsOneSVC(**EXACT).fit(X, y)
    theirs = OneVsOneClassifier(LinearSVC(tol=1e-10, max_iter=10**6, random_state=0)).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.estimators_[0].coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.estimators_[0].intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": False}, {"dtype": "float64"}])
def test_the_sign_is_the_class(loss, parameters):
    X, y = two_classes(seed=1)
    fitted = make(loss, **parameters).fit(X, np.array(["no", "yes"])[y])
    scores = fitted.decision_function(X)
    assert scores.shape == (150,) and fitted.coef_.shape == (1, 30) and fitted.intercept_.shape == (1,)
    np.testing.assert_array_equal(fitted.predict(X), np.where(scores > 0, "yes", "no"))
    own = (X @ fitted.coef_.T + fitted.intercept_)[:, 0]
    np.testing.assert_array_equal(own > 0, scores > 0)
    if not loss.startswith("ovo"):
        np.testing.assert_allclose(own, scores, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fitted.sparsify().coef_.toarray(), fitted.densify().coef_)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "cs", "maxent"])
def test_the_sign_is_the_class_where_classes_have_features_of_their_own(loss):
    X, y = two_classes(n=40, seed=4)
    fitted = make(loss, feature_reduction=True).fit(X, y)
    weights = sp.csr_matrix(fitted.model_.matrix).toarray()
    assert (weights[:, 0] != -weights[:, 1]).any()
    np.testing.assert_array_equal(fitted.predict(X), fitted.decision_function(X) > 0)
    np.testing.assert_array_equal((X @ fitted.coef_.T + fitted.intercept_)[:, 0] > 0, fitted.predict(X))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_vs_rest_is_one_problem_to_the_last_bit(loss, dtype):
    """Each class is trained against the other, so the second column of the model is `coef_`."""
    X, y = two_classes(seed=2)
    for fitted in (make(loss, dtype=dtype).fit(X, y), make(loss, dtype=dtype, solver="auto", n_jobs=2).fit(X, y)):
        weights = sp.csr_matrix(fitted.model_.matrix).toarray()
        np.testing.assert_array_equal(weights[:, 0], -weights[:, 1])
        np.testing.assert_array_equal(fitted.coef_[0], weights[:, 1])
        np.testing.assert_array_equal(fitted.decision_function(X), fitted.model_.scores(X)[:, 1])


def test_probabilities_are_those_of_the_score():
    X, y = two_classes()
    logistic, maxent = OneVsRestLogistic().fit(X, y), MaxEnt().fit(X, y)
    for fitted in (logistic, maxent):
        np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], expit(fitted.decision_function(X)), rtol=1e-5)
        np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), fitted.predict_proba(X), rtol=1e-5)
    calibrated = CalibratedClassifier(OneVsRestSVC()).fit(X, y)
    np.testing.assert_array_equal(calibrated.predict_proba(X)[:, 1] > 0.5, calibrated.decision_function(X) > 0)
    np.testing.assert_allclose(np.exp(calibrated.predict_log_proba(X)), calibrated.predict_proba(X), rtol=1e-5)


def test_logarithms_of_tiny_probabilities():
    X, y = text_like(100, 20, 3)
    for fitted in (MaxEnt().fit(X, y), OneVsRestLogistic().fit(X, y)):
        logs = fitted.predict_log_proba(1000 * X)
        assert np.isfinite(logs).all() and logs.min() < -200
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-4)
    assert not hasattr(MulticlassSVC().fit(X, y), "predict_log_proba")


def test_sets_of_two_labels_are_not_two_classes():
    X, y = two_classes()
    fitted = OneVsRestSVC().fit(X, np.column_stack([y, y == 0]))
    assert fitted.coef_.shape == (2, 30) and fitted.decision_function(X).shape == (150, 2)
    one = OneVsRestSVC().fit(X, sp.csr_matrix(y[:, None]))
    assert one.coef_.shape == (1, 30) and one.decision_function(X).shape == (150, 1)


def test_stores_and_files(tmp_path):
    X, y = two_classes()
    fitted = OneVsRestSVC(engine="disk").fit(store_of(X, y, tmp_path / "store", 3))
    theirs = LinearSVC(tol=1e-10, max_iter=10**6, random_state=0).fit(X, y)
    assert fitted.coef_.shape == (1, 30)
    np.testing.assert_allclose(fitted.decision_function(X), theirs.decision_function(X), atol=0.1)
    save_model(fitted.model_, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), fitted.predict(X))


# ---- Assigned weights


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("sparse", [False, True])
def test_predictions_follow_assigned_weights(loss, K, sparse):
    X, y = text_like(100, 30, K, seed=3)
    fitted, other = make(loss).fit(X, y), make(loss, C=0.01).fit(X, y)
    before = fitted.decision_function(X)
    fitted.coef_ = sp.csr_matrix(other.coef_) if sparse else other.coef_.copy()
    fitted.intercept_ = other.intercept_.copy()
    np.testing.assert_allclose(fitted.coef_, other.coef_, rtol=1e-6)
    np.testing.assert_allclose(fitted.intercept_, other.intercept_, rtol=1e-6)
    np.testing.assert_allclose(fitted.decision_function(X), other.decision_function(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(fitted.predict(X), other.predict(X))
    assert np.abs(fitted.decision_function(X) - before).max() > 1e-3
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))


def test_weights_cannot_be_changed_in_place_unnoticed():
    X, y = two_classes()
    fitted = OneVsRestSVC().fit(X, y)
    for array in (fitted.coef_, fitted.intercept_, fitted.densify().coef_):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    fitted.intercept_ = 0.5
    assert fitted.intercept_.tolist() == [0.5]
    with pytest.raises(ValueError, match=r"coef_ must keep the shape \(1, 30\) it has after fit, got \(2, 30\)"):
        fitted.coef_ = np.zeros((2, 30))
    with pytest.raises(ValueError, match=r"intercept_ must keep the shape \(1,\)"):
        fitted.intercept_ = np.zeros(2)
    with pytest.raises(NotFittedError):
        OneVsRestSVC().coef_ = np.zeros((1, 30))


def test_looking_at_intercepts_does_not_expand_the_weights():
    X = sp.random(200, 100_000, 1e-4, format="csr", random_state=0)
    fitted = OneVsRestSVC().fit(X, np.arange(200) % 2)
    tracemalloc.start()
    assert fitted.intercept_.shape == (1,)
    fitted.intercept_ = fitted.intercept_ + 1
    assert tracemalloc.get_traced_memory()[1] < 50_000
    tracemalloc.stop()


def test_passes_are_an_array():
    X, y = two_classes()
    theirs = LogisticRegression().fit(X, y).n_iter_
    ours = OneVsRestLogistic().fit(X, y).n_iter_
    assert ours.shape == theirs.shape == (1,) and ours.dtype == theirs.dtype and ours[0] >= 1
