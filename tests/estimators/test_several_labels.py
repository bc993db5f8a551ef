"""Rows with sets of labels: each label is a separate binary problem, whatever other labels the rows have."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from losses import LOSSES, make, text_like
from oracle import optimum
from sklearn.metrics import accuracy_score
from stored_fits import assert_same_bits, store_of, weights_of

from manyclass import CalibratedClassifier, OneVsRestLogistic, OneVsRestSVC, load_model, save_model
from manyclass.estimators import select_C
from manyclass.metrics import precisions_at_k

ONE_VS_REST = ["hinge", "squared_hinge", "logistic"]
EXACT = {"tol": 1e-8, "dtype": "float64", "max_iter": 100_000}


def labelled(n=60, d=25, K=5, seed=0):
    """Rows with any number of labels: the first has none, the last label has no row, and one row is empty."""
    X, y = text_like(n, d, K - 1, seed=seed)
    X = X.tolil()
    X[3] = 0
    Y = sp.random(n, K, 0.2, format="lil", random_state=seed).astype(bool).astype(int)
    Y[np.arange(n), y] = 1
    Y[0], Y[:, K - 1] = 0, 0
    return X.tocsr(), Y.tocsr()


@pytest.mark.parametrize("constant", [0.0, 1.5])
@pytest.mark.parametrize("loss", ONE_VS_REST)
def test_the_optimum_is_that_of_each_label(loss, constant):
    X, Y = labelled(40, 12)
    C = np.random.default_rng(0).uniform(0.2, 2, 40)
    parameters = EXACT | {"fit_intercept": constant > 0, "intercept_scaling": constant or 1.0}
    found = make(loss, **parameters).fit(X, Y, sample_weight=C).certificate_
    expected = sum(optimum(loss, X, Y[:, c].toarray().ravel(), C, 2, constant) / 2 for c in range(5))
    assert found.primal == pytest.approx(expected, rel=2e-6)
    assert found.dual == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("loss", ONE_VS_REST)
def test_weights_are_those_of_each_label(loss):
    X, Y = labelled()
    found = weights_of(make(loss, **EXACT).fit(X, Y))
    for c in range(4):
        alone = make(loss, **EXACT).fit(X, Y[:, c].toarray().ravel())
        np.testing.assert_allclose(found[:, c], weights_of(alone)[:, 1], atol=1e-4)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_newton_has_the_same_optimum(loss):
    X, Y = labelled()
    primal = [make(loss, solver=solver, **EXACT).fit(X, Y).certificate_.primal for solver in ("dual", "newton")]
    assert primal[0] == pytest.approx(primal[1], rel=1e-7)


@pytest.mark.parametrize("loss", ONE_VS_REST)
def test_feature_reduction_leaves_the_features_of_the_rows_with_the_label(loss):
    X, Y = labelled(60, 60)
    fitted = make(loss, feature_reduction=True, fit_intercept=False, **EXACT).fit(X, Y)
    kept = ((Y.T @ (X != 0)) > 0).toarray()
    assert fitted.kept_weights_ == kept.sum() and not kept[4].any()
    assert not fitted.coef_[~kept].any()
    loss_at_zero = X.shape[0] * (np.log(2) if loss == "logistic" else 1.0)
    expected = loss_at_zero + sum(
        optimum(loss, X[:, kept[c]], Y[:, c].toarray().ravel(), np.ones(60), 2) / 2 for c in range(4)
    )
    assert fitted.certificate_.primal == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("reduced", [False, True])
def test_a_sparse_model_has_the_certified_value(reduced):
    X, y = text_like(400, 20_000, 300, nnz=10)
    Y = sp.csr_matrix(np.eye(300, dtype=int)[y]) + sp.random(400, 300, 0.01, format="csr", random_state=0).astype(
        bool
    )
    Y = (Y > 0).astype(int)
    fitted = OneVsRestSVC("hinge", dtype="float64", feature_reduction=reduced, fit_intercept=False).fit(X, Y)
    assert sp.issparse(fitted.model_.weights)
    margins = (2 * Y.toarray() - 1) * fitted.decision_function(X)
    primal = 0.5 * (fitted.model_.weights.data**2).sum() + np.maximum(0, 1 - margins).sum()
    assert fitted.certificate_.primal == pytest.approx(primal, rel=1e-9)
    assert fitted.certificate_.gap <= 0.01


@pytest.mark.parametrize(
    ("loss", "more"),
    [
        ("hinge", {}),
        ("squared_hinge", {}),
        ("logistic", {}),
        ("squared_hinge", {"solver": "newton"}),
        ("hinge", {"feature_reduction": True}),
    ],
)
def test_sets_of_one_label_are_labels(loss, more):
    X, y = text_like(150, 60, 40, seed=2)
    plain = make(loss, **more).fit(X, y)
    for sets in ([[label] for label in y], sp.csr_matrix(np.eye(40)[y])):
        several = make(loss, **more).fit(X, sets)
        assert_same_bits([plain, several])
        np.testing.assert_array_equal(several.classes_, plain.classes_)


@pytest.mark.parametrize("loss", ONE_VS_REST)
def test_the_same_bits_for_any_threads_and_workers(loss):
    X, Y = labelled(120, 60, 70)
    one, three = (make(loss, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 3))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        sent = make(loss, engine="joblib", n_jobs=None).fit(X, Y)
    assert_same_bits([one, three, sent])


@pytest.mark.filterwarnings("ignore")
def test_a_stopped_fit_resumes_for_the_same_sets_only(tmp_path):
    X, Y = labelled(200, 60, 120)
    whole = OneVsRestSVC(tol=1e-4, n_jobs=1).fit(X, Y)
    part = OneVsRestSVC(tol=1e-4, n_jobs=1, checkpoint=tmp_path, every=0, max_iter=2).fit(X, Y)
    assert part.certificate_.exit_reason == "max_iter"
    going_on = OneVsRestSVC(tol=1e-4, n_jobs=2, checkpoint=tmp_path, every=0, resume=True)
    other = Y.tolil()
    other[0, 2] = 1
    with pytest.raises(ValueError, match="another problem: labels"):
        going_on.fit(X, other)
    np.testing.assert_array_equal(weights_of(going_on.fit(X, Y)), weights_of(whole))


def test_warm_starts_begin_near_the_end():
    X, Y = labelled(120, 60, 20)
    fitted = OneVsRestSVC("hinge", C=1.0, tol=1e-3, warm_start=True).fit(X, Y)
    cold = OneVsRestSVC("hinge", C=0.5, tol=1e-3).fit(X, Y)
    again = fitted.set_params(tol=2e-3).fit(X, Y)
    assert again.n_iter_ == 1
    assert fitted.set_params(C=0.5, tol=1e-3).fit(X, Y).certificate_.primal == pytest.approx(
        cold.certificate_.primal, rel=2e-3
    )


@pytest.mark.parametrize("loss", ONE_VS_REST)
def test_a_store_has_the_same_optimum(loss, tmp_path):
    X, Y = labelled(120, 60, 6)
    stored = make(loss, **EXACT | {"tol": 1e-6}).fit(store_of(X, Y, tmp_path / "s", 5))
    there = make(loss, **EXACT).fit(X, Y[:, :5])
    assert stored.certificate_.primal == pytest.approx(there.certificate_.primal, rel=2e-6)
    np.testing.assert_array_equal(stored.predict(X).toarray(), there.predict(X).toarray())
    store = store_of(X, Y, tmp_path / "t", 3)
    np.testing.assert_array_equal(stored.predict(store).toarray(), there.predict(X).toarray())
    assert stored.score(store) == there.score(X, Y[:, :5])


def test_weights_of_rows_are_their_repetition():
    X, Y = labelled()
    weight = np.arange(60) % 3
    rows = np.repeat(np.arange(60), weight)
    weighted = OneVsRestSVC(**EXACT).fit(X, Y, sample_weight=weight).certificate_.primal
    assert weighted == pytest.approx(OneVsRestSVC(**EXACT).fit(X[rows], Y[rows]).certificate_.primal, rel=1e-7)


def test_one_label_in_all():
    X, Y = labelled()
    fitted = OneVsRestSVC().fit(X, [["spam"] if has else [] for has in Y[:, 0].toarray().ravel()])
    assert fitted.classes_.tolist() == ["spam"] and fitted.predict(X).shape == (60, 1)
    alone = OneVsRestSVC().fit(X, Y[:, 0].toarray().ravel())
    assert fitted.score(X, Y[:, [0]]) == alone.score(X, Y[:, 0].toarray().ravel())


# ---- Predictions


def test_predictions_by_threshold_and_by_number():
    X, Y = labelled()
    fitted = OneVsRestSVC(C=10.0).fit(X, Y)
    assert fitted.model_.settings["multilabel"] is True
    scores = fitted.decision_function(X)
    for found, expected in (
        (fitted.predict(X), scores > 0),
        (fitted.predict(X, threshold=-0.5), scores > -0.5),
        (fitted.predict(X, k=2), scores >= np.sort(scores)[:, [-2]]),
        (fitted.model_.predict(X, k=2), scores >= np.sort(scores)[:, [-2]]),
    ):
        assert sp.issparse(found) and found.format == "csr" and (found.data == 1).all()
        np.testing.assert_array_equal(found.toarray(), expected)
    labels, best = fitted.predict_topk(X, 3)
    matrix = fitted.predict_topk(X, 3, sparse=True)
    assert matrix.nnz == 180 and matrix.has_sorted_indices
    np.testing.assert_array_equal(np.take_along_axis(matrix.toarray(), labels, axis=1), best)


def test_an_array_gives_an_array():
    X, Y = labelled()
    fitted = OneVsRestSVC(C=10.0).fit(X, Y)
    for y in (Y.toarray(), Y.toarray().astype(bool), Y.toarray().tolist()):
        found = OneVsRestSVC(C=10.0).fit(X, y).predict(X)
        assert isinstance(found, np.ndarray) and found.dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(found, fitted.predict(X).toarray())


def test_the_score_is_the_share_of_sets_that_are_right():
    X, Y = labelled()
    fitted = OneVsRestSVC(C=3.0).fit(X, Y)
    right = accuracy_score(Y.toarray(), fitted.predict(X).toarray())
    assert 0.3 < right < 1 and fitted.score(X, Y) == pytest.approx(right)
    names = [[f"label {c}" for c in row.indices] for row in Y]
    by_name = OneVsRestSVC(C=3.0).fit(X, names)
    assert by_name.classes_.tolist() == [f"label {c}" for c in range(4)]
    assert by_name.score(X, names) == pytest.approx(right)
    weight = np.arange(60) == 1
    assert by_name.score(X[1:2], [["never seen", *names[1]]]) == 0.0
    assert by_name.score(X, names, sample_weight=weight) in (0.0, 1.0)


def test_probabilities_are_those_of_each_label():
    X, Y = labelled()
    fitted = OneVsRestLogistic().fit(X, Y)
    np.testing.assert_allclose(fitted.predict_proba(X), 1 / (1 + np.exp(-fitted.decision_function(X))), rtol=1e-5)


def test_a_saved_model_knows_that_it_gives_sets(tmp_path):
    X, Y = labelled()
    fitted = OneVsRestLogistic().fit(X, [[f"label {c}" for c in row.indices] for row in Y])
    save_model(fitted.model_, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X).toarray(), fitted.predict(X).toarray())
    np.testing.assert_array_equal(loaded.probabilities(X), fitted.predict_proba(X))


def test_select_C_compares_the_best_label():
    X, Y = labelled(120)
    found = select_C(OneVsRestSVC(n_jobs=1), X, Y, [0.01, 1.0], cv=3)
    assert (found.accuracies > 0.2).all() and (found.accuracies < 1).all()


def test_bibtex(shared_data):
    from sklearn.preprocessing import normalize

    from manyclass.data import load_xmc

    X, Y = load_xmc(shared_data / "bibtex" / "train.txt.xz")
    X_test, Y_test = load_xmc(shared_data / "bibtex" / "test.txt.xz")
    fitted = OneVsRestSVC().fit(normalize(X), Y)
    at_1, at_3, at_5 = precisions_at_k(Y_test, fitted.predict_topk(normalize(X_test), 5)[0], [1, 3, 5])
    assert 0.62 < at_1 < 0.65 and 0.37 < at_3 < 0.40 and 0.27 < at_5 < 0.30


# ---- Rejected sets of labels


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not make(loss)._takes_sets])
def test_other_losses_name_one_vs_rest(loss):
    X, Y = labelled()
    for y in (Y, Y.toarray(), [row.indices.tolist() for row in Y]):
        with pytest.raises(ValueError, match=r"sets of labels.*one-vs-rest"):
            make(loss).fit(X, y)


def test_features_that_need_one_label_per_row_reject_sets():
    X, Y = labelled()
    for class_weight in ("balanced", {0: 2.0}):
        with pytest.raises(ValueError, match="class_weight needs one label per row"):
            OneVsRestSVC(class_weight=class_weight).fit(X, Y)
    with pytest.raises(ValueError, match="one label per row"):
        CalibratedClassifier(OneVsRestSVC()).fit(X, Y)
    with pytest.raises(ValueError, match="60 rows, y has 59"):
        OneVsRestSVC().fit(X, Y[1:])
    plain = OneVsRestSVC().fit(X, np.arange(60) % 3)
    assert plain.model_.settings["multilabel"] is False
    for given in ({"k": 2}, {"threshold": 1.0}):
        with pytest.raises(ValueError, match="sets of labels; use predict_topk"):
            plain.predict(X, **given)
