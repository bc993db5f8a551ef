"""Probabilities, and the same optimum as scikit-learn's logistic regression."""

import numpy as np
import pytest
from losses import text_like
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from manyclass import MaxEnt, OneVsRestLogistic
from manyclass.estimators import ESTIMATORS, estimator_for

TIGHT = {"tol": 1e-8, "dtype": "float64", "max_iter": 100_000, "fit_intercept": False}


def test_maxent_is_multinomial_logistic_regression():
    X, y = text_like(150, 60, 6, seed=0)
    ours = MaxEnt(C=3.0, **TIGHT).fit(X, y)
    theirs = LogisticRegression(C=3.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-4)


def test_each_class_of_one_vs_rest_is_a_binary_logistic_regression():
    X, y = text_like(150, 60, 6, seed=1)
    ours = OneVsRestLogistic(C=3.0, **TIGHT).fit(X, y)
    for c in range(6):
        theirs = LogisticRegression(C=3.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y == c)
        np.testing.assert_allclose(ours.coef_[c], theirs.coef_[0], atol=2e-4)


@pytest.mark.parametrize("kind", [MaxEnt, OneVsRestLogistic])
@pytest.mark.parametrize("K", [2, 5])
def test_probabilities_add_up_and_agree_with_predict(kind, K):
    X, y = text_like(120, 40, K, seed=2)
    model = kind().fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (120, K) and p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))


def test_one_vs_rest_probabilities_are_those_of_the_classes_scaled():
    X, y = text_like(80, 40, 4, seed=3)
    model = OneVsRestLogistic().fit(X, y)
    alone = expit(model.decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X), alone / alone.sum(axis=1, keepdims=True), rtol=1e-5)


def test_the_default_of_C_depends_on_the_loss():
    """Logistic losses have a larger default, because of the measurements in docs/choosing.md."""
    of_loss = {loss: estimator_for(loss).C for loss in ESTIMATORS}
    logistic = {"maxent", "logistic", "ovo_logistic"}
    assert of_loss == {loss: 8.0 if loss in logistic else 1.0 for loss in ESTIMATORS}
