"""Probabilities of calibrated classifiers."""

import numpy as np
import pandas as pd
import pytest
from losses import make, slow_if, text_like
from scipy.special import softmax
from sklearn.metrics import log_loss

from manyclass import CalibratedClassifier, MaxEnt, MulticlassSVC, load_model, save_model
from manyclass.estimators.calibration import _most_likely_rule, held_out_scores
from manyclass.model.probability import probabilities


def halves(seed=0, K=5):
    X, y = text_like(600, 60, K, seed=seed)
    flip = np.random.default_rng(seed).random(600) < 0.2
    y[flip] = np.random.default_rng(seed + 1).integers(0, K, flip.sum())
    return X[:400], y[:400], X[400:], y[400:]


@pytest.mark.parametrize("loss", slow_if(["ww", "cs", "llw", "hinge", "squared_hinge", "ovo_hinge"], "cs", "hinge"))
@pytest.mark.parametrize("method", ["temperature", "sigmoid"])
def test_is_neither_overconfident_nor_underconfident(loss, method):
    X, y, X_test, y_test = halves()
    model = CalibratedClassifier(make(loss, C=30.0), method=method).fit(X, y)
    p = model.predict_proba(X_test)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(X_test), model.estimator_.predict(X_test))
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(X_test))
    scores = model.decision_function(X_test).astype(float)
    scores /= scores.std()
    # Compare with an overconfident and an underconfident slope.
    assert log_loss(y_test, p) < min(log_loss(y_test, softmax(slope * scores, axis=1)) for slope in (5, 0.1))


def test_finds_the_most_likely_temperature():
    """No other slope makes the held-out rows more likely."""
    X, y, _, _ = halves(seed=2)
    model = CalibratedClassifier(MulticlassSVC("cs"), method="temperature", cv=4).fit(X, y)
    scores, truth, counted = held_out_scores(model.estimator_, X, y, 4)

    def surprise(slope):
        return log_loss(truth, softmax(slope * scores, axis=1), labels=range(5))

    best = model.rule_["slope"]
    assert len(truth) == 400 and (counted == 1).all()
    assert surprise(best) <= min(surprise(best * 1.05), surprise(best / 1.05))


@pytest.mark.parametrize("loss", ["ww", "cs", "squared_hinge", "ovo_hinge"])
def test_two_numbers_fit_no_worse_than_one(loss):
    """A sigmoid far from its bend is a temperature, so its fit cannot be worse."""
    X, y, _, _ = halves(seed=6)
    fitted = make(loss).fit(X, y)
    scores, truth, counted = held_out_scores(fitted, X, y, 4)
    surprises = [
        log_loss(truth, probabilities(_most_likely_rule(method, scores, truth, counted), scores), labels=range(5))
        for method in ("temperature", "sigmoid")
    ]
    assert surprises[1] <= surprises[0] + 1e-5
    assert CalibratedClassifier(make(loss)).fit(X, y).rule_["method"] == "sigmoid"


def test_tables_keep_their_names_and_no_number_of_folds_is_five():
    X, y, _, _ = halves(seed=7)
    table = pd.DataFrame(X.toarray(), columns=[f"feature {j}" for j in range(60)])
    model = CalibratedClassifier(MulticlassSVC(), cv=None).fit(table, y)
    np.testing.assert_array_equal(model.feature_names_in_, table.columns)
    assert not hasattr(CalibratedClassifier(MulticlassSVC()).fit(X, y), "feature_names_in_")
    assert model.rule_ == CalibratedClassifier(MulticlassSVC(), cv=np.int64(5)).fit(table, y).rule_


def test_maxent_needs_little_of_it():
    X, y, X_test, y_test = halves(seed=3)
    plain = MaxEnt(C=1.0).fit(X, y)
    calibrated = CalibratedClassifier(MaxEnt(C=1.0), method="temperature").fit(X, y)
    assert 0.5 < calibrated.rule_["slope"] < 5
    assert log_loss(y_test, calibrated.predict_proba(X_test)) < log_loss(y_test, plain.predict_proba(X_test)) + 0.02


def test_topk_and_file(tmp_path):
    X, y, X_test, _ = halves(seed=4)
    model = CalibratedClassifier(MulticlassSVC(), method="sigmoid").fit(X, y)
    labels, p = model.predict_topk_proba(X_test, 3)
    everything = model.predict_proba(X_test)
    np.testing.assert_array_equal(p, np.take_along_axis(everything, labels, axis=1))
    assert (np.diff(p, axis=1) <= 0).all()
    save_model(model.estimator_.model_, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").probabilities(X_test), everything)


def test_only_calibrated_and_logistic_estimators_have_probabilities():
    X, y, _, _ = halves()
    model = MulticlassSVC().fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert hasattr(MaxEnt(), "predict_proba")
    with pytest.raises(ValueError, match="has no probabilities"):
        model.model_.probabilities(X)


def test_rare_classes():
    """Some classes have one row, and are unknown in the fold that holds it out."""
    X, y = text_like(60, 40, 40, seed=5)
    p = CalibratedClassifier(MulticlassSVC()).fit(X, y).predict_proba(X)
    assert p.shape == (60, 40) and np.isfinite(p).all()


def test_no_rows_to_calibrate_on():
    X, y = text_like(6, 30, 6, seed=6)
    with pytest.raises(ValueError, match="no held-out row"):
        CalibratedClassifier(MulticlassSVC()).fit(X, y)


def test_bad_method():
    X, y, _, _ = halves()
    with pytest.raises(ValueError, match="method"):
        CalibratedClassifier(MulticlassSVC(), method="isotonic").fit(X, y)
