"""Class weights apply to the rows of their class, even in folds, where labels are codes."""

import numpy as np
import pytest
import scipy.sparse as sp
from losses import text_like
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.utils.class_weight import compute_class_weight
from stored_fits import store_of

from manyclass import CalibratedClassifier, MaxEnt, MulticlassSVC, OneVsRestSVC, PPDSparse, load_model, select_C
from manyclass.estimators.calibration import held_out_scores
from manyclass.estimators.class_weights import weights_by_class

WEIGHTS = np.array([1.0, 20.0, 0.5, 1.0])
# The same classes, in the same order, under other names.
NAMINGS = {
    "codes": np.arange(4),
    "one more than codes": np.arange(1, 5),
    "codes and more": np.array([-2, 0, 1, 3]),
    "strings": np.array(["a", "b", "c", "d"]),
    "strings of digits": np.array(["0", "1", "2", "3"]),
    "fractions": np.array([0.5, 1.0, 1.5, 2.0]),
    "tuples": np.fromiter([(0,), (1, 5), (2,), (3,)], object, 4),
    "mixed": np.fromiter([7, "a", "b", ("b",)], object, 4),
}


def problem(seed=0, n=160):
    X, codes = text_like(n, 40, 4, seed=seed)
    flip = np.random.default_rng(seed).random(n) < 0.3
    codes[flip] = np.random.default_rng(seed + 1).integers(0, 4, flip.sum())
    return X, codes


def named(codes, names, weights=WEIGHTS):
    """Return the labels, and a dictionary of the weights other than 1."""
    given = {label: weight for label, weight in zip(names.tolist(), weights, strict=True) if weight != 1}
    return names[codes], given


@pytest.mark.parametrize("naming", NAMINGS)
def test_select_C_weights_the_rows_of_the_class(naming):
    X, codes = problem()
    y, given = named(codes, NAMINGS[naming])
    found = select_C(MulticlassSVC("cs", class_weight=given), X, y, [0.1, 1.0], cv=3)
    for fold, (learn, held_out) in enumerate(KFold(3, shuffle=True, random_state=0).split(X)):
        alone = MulticlassSVC("cs", C=0.1).fit(X[learn], codes[learn], WEIGHTS[codes[learn]])
        assert found.accuracies[0, fold] == np.mean(alone.predict(X[held_out]) == codes[held_out])
        assert found.gaps[0, fold] == alone.certificate_.gap


@pytest.mark.parametrize("naming", NAMINGS)
def test_calibration_weights_the_rows_of_the_class(naming):
    X, codes = problem()
    y, given = named(codes, NAMINGS[naming])
    model = CalibratedClassifier(MulticlassSVC("cs", class_weight=given), cv=3).fit(X, y)
    scores, truth, _ = held_out_scores(model.estimator_, X, codes, 3)
    expected = []
    for learn, held_out in KFold(3, shuffle=True, random_state=0).split(X):
        alone = MulticlassSVC("cs").fit(X[learn], codes[learn], WEIGHTS[codes[learn]])
        expected.append(alone.decision_function(X[held_out]))
    np.testing.assert_array_equal(scores, np.concatenate(expected))
    assert (truth < 4).all()
    assert model.rule_ != CalibratedClassifier(MulticlassSVC("cs"), cv=3).fit(X, y).rule_


def test_folds_may_lack_the_class_with_a_weight():
    X, codes = problem()
    codes[codes == 1] = 0
    codes[5] = 1  # a single row: its class is unknown in the fold that holds it out
    y = NAMINGS["strings"][codes]
    estimator = OneVsRestSVC(class_weight={"b": 20.0})
    assert np.isfinite(select_C(estimator, X, y, [1.0], cv=3).accuracies).all()
    assert np.isfinite(CalibratedClassifier(estimator, cv=3).fit(X, y).predict_proba(X)).all()


def test_folds_of_a_store(tmp_path):
    X, codes = problem()
    y, given = named(codes, NAMINGS["strings"])
    store = store_of(X, y, tmp_path / "store", 3)
    estimator = MulticlassSVC("cs", class_weight=given, engine="disk")
    by_id = select_C(MulticlassSVC("cs", engine="disk"), store, Cs=[1.0], cv=3, sample_weight=WEIGHTS[codes])
    np.testing.assert_array_equal(select_C(estimator, store, Cs=[1.0], cv=3).gaps, by_id.gaps)


def test_balanced_counts_the_rows_of_the_fold():
    """As with GridSearchCV, weights are computed from the training rows of the fold and their sample weights."""
    X, codes = problem()
    codes[: len(codes) // 2] = np.minimum(codes[: len(codes) // 2], 1)
    y, weight = NAMINGS["strings"][codes], np.random.default_rng(0).uniform(0.1, 3, len(codes))
    found = select_C(MaxEnt(class_weight="balanced"), X, y, [1.0], cv=KFold(2), sample_weight=weight)
    for fold, (learn, _) in enumerate(KFold(2).split(X)):
        present = np.unique(y[learn])
        of_class = compute_class_weight("balanced", classes=present, y=y[learn], sample_weight=weight[learn])
        alone = MaxEnt(C=1.0).fit(X[learn], y[learn], weight[learn] * of_class[np.searchsorted(present, y[learn])])
        assert found.gaps[0, fold] == pytest.approx(alone.certificate_.gap, rel=1e-9)


def sklearn_takes(class_weight, X, y):
    try:
        LogisticRegression(class_weight=class_weight).fit(X, y)
    except ValueError as error:
        assert "are not in class_weight" in str(error)
        return False
    return True


@pytest.mark.parametrize("naming", ["codes", "strings"])
@pytest.mark.parametrize("keyed", [[], [0], [0, 1], [0, 1, 2, 3], [9], [0, 9], [0, 1, 2, 3, 9]])
def test_takes_the_keys_that_scikit_learn_takes(naming, keyed):
    X, codes = problem()
    names = {code: label for code, label in enumerate(NAMINGS[naming].tolist())}
    y = NAMINGS[naming][codes]
    given = {names.get(key, "z" if naming == "strings" else 9): 2.0 for key in keyed}
    estimator = MulticlassSVC("cs", class_weight=given)
    if sklearn_takes(given, X, y):
        weight = np.where(np.isin(codes, keyed), 2.0, 1.0)
        expected = MulticlassSVC("cs").fit(X, y, weight)
        assert sp.issparse(X) and estimator.fit(X, y).certificate_.primal == expected.certificate_.primal
    else:
        with pytest.raises(ValueError, match=r"the classes .* are not in class_weight, and its keys .* not in y"):
            estimator.fit(X, y)
        with pytest.raises(ValueError, match="not in class_weight"):
            select_C(estimator, X, y, [1.0], cv=3)


def test_keys_of_another_type_are_other_keys():
    """A string of digits is not a number; 1 and 1.0 are the same label, as everywhere in Python."""
    np.testing.assert_array_equal(weights_by_class({1: 2.0}, np.array([0.0, 1.0])), [1, 2])
    with pytest.raises(ValueError, match="'0', '1' are not in class_weight, and its keys 1 are not in y"):
        weights_by_class({1: 2.0}, np.array(["0", "1"]))


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, "2", None])
def test_weights_are_numbers(weight):
    X, y = problem()
    with pytest.raises(ValueError, match="class_weight gives class 1 the weight"):
        MulticlassSVC(class_weight={1: weight}).fit(X, y)


def test_balanced_with_a_class_of_weight_zero_is_balanced_without_it():
    X, y = problem()
    weight = np.where(y == 2, 0.0, 1.0)
    kept = y != 2
    with_it = OneVsRestSVC(class_weight="balanced").fit(X, y, weight)
    without = OneVsRestSVC(class_weight="balanced").fit(X[kept], y[kept])
    np.testing.assert_allclose(with_it.coef_[[0, 1, 3]], without.coef_, rtol=1e-4, atol=1e-6)


def test_folds_do_not_write_into_the_folder_of_the_model(tmp_path):
    X, y = problem()
    CalibratedClassifier(PPDSparse(shards=tmp_path / "model"), cv=3).fit(X, y)
    assert load_model(tmp_path / "model").settings["n_rows"] == len(y)
    select_C(PPDSparse(shards=tmp_path / "none"), X, y, [1.0], cv=3)
    assert not (tmp_path / "none").exists()
