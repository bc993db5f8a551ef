"""Behaviour that users see: certificates, history, limits, Ctrl-C, labels and invalid input."""

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from losses import LOSSES, make, text_like
from sklearn.exceptions import ConvergenceWarning

from manyclass.problems import PROBLEMS


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("stop", ["gap", "kkt"])
def test_both_rules_stop_where_they_say(loss, stop):
    X, y = text_like(150, 60, 6, seed=1)
    fitted = make(loss, stop=stop, tol=0.05).fit(X, y)
    found = fitted.certificate_
    assert found.exit_reason == "converged"
    assert (found.gap if stop == "gap" else found.violation) <= 0.05
    last = fitted.history_[-1]
    assert last["certified"] and last["primal"] == found.primal
    assert found.primal >= found.dual
    assert {"layout", "sweeps", "weights", "total"} <= fitted.times_.keys()


@pytest.mark.parametrize("loss", LOSSES)
def test_running_out_of_passes_warns_with_figures(loss):
    X, y = text_like(150, 60, 6, seed=1)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .*gap .*target 1e-08.*raise max_iter"):
        fitted = make(loss, tol=1e-8, max_iter=1).fit(X, y)
    assert fitted.certificate_.exit_reason == "max_iter"
    assert fitted.n_iter_ == 1
    assert fitted.score(X, y) > 0.5


def hard_problem(n=3000):
    """Return random labels, which take very long to fit with a large C."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 40)), rng.integers(0, 40, n)


@pytest.mark.parametrize("loss", LOSSES)
def test_time_limit(loss):
    X, y = hard_problem()
    with pytest.warns(ConvergenceWarning, match="time_limit=0.3"):
        fitted = make(loss, C=1e4, tol=1e-9, max_iter=10**6, time_limit=0.3).fit(X, y)
    assert fitted.certificate_.exit_reason == "time_limit"
    assert fitted.times_["sweeps"] < 10
    assert set(fitted.predict(X)) <= set(y)


@pytest.mark.parametrize("loss", LOSSES)
def test_ctrl_c_keeps_the_model_and_the_handler(loss):
    X, y = hard_problem()
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        fitted = make(loss, C=1e4, tol=1e-9, max_iter=10**6).fit(X, y)
    timer.join()
    assert fitted.certificate_.exit_reason == "interrupted"
    assert np.isfinite(fitted.certificate_.primal)
    assert set(fitted.predict(X)) <= set(y)
    assert signal.getsignal(signal.SIGINT) is before


def test_classes_that_were_never_trained_are_never_predicted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8000, 30)), np.arange(8000) % 400
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        fitted = make("hinge", C=1e4, tol=1e-9, max_iter=10**6, time_limit=0.005, n_jobs=1).fit(X, y)
    missing = np.isneginf(fitted.intercept_)
    assert 0 < missing.sum() < 400
    assert not missing[np.searchsorted(fitted.classes_, fitted.predict(X))].any()
    assert fitted.certificate_.primal >= missing.sum() * 1e4 * 8000


@pytest.mark.parametrize(
    "labels",
    [
        ["red", "green", "blue"],
        [(1, 2), (1, 3), (0,)],
        [1.5, 2.5, -1.0],
        [True, False, ()],
        [np.int64(5), np.int64(7), np.int64(-3)],
    ],
)
def test_labels_of_any_hashable_kind(labels):
    X, codes = text_like(60, 30, 3, seed=2)
    y = [labels[code] for code in codes]
    fitted = make("cs").fit(X, y)
    assert set(fitted.predict(X)) <= set(labels)
    right = np.mean([a == b for a, b in zip(fitted.predict(X), y, strict=True)])
    assert right > 0.5


def test_a_model_knows_how_many_rows_had_each_label():
    X = sp.random(6, 4, 0.7, format="csr", random_state=0)
    model = make("hinge").fit(X, list("bababb"), sample_weight=[1, 1, 1, 1, 1, 0]).model_
    assert model.label_counts.tolist() == [2, 3] and model.settings["n_rows"] == 5


@pytest.mark.parametrize("loss", LOSSES)
def test_topk_agrees_with_all_scores(loss):
    X, y = text_like(150, 60, 9, seed=3)
    fitted = make(loss).fit(X, y)
    labels, scores = fitted.predict_topk(X, 4)
    everything = fitted.decision_function(X)
    order = np.argsort(-everything, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(labels, fitted.classes_[order])
    np.testing.assert_array_equal(scores, np.take_along_axis(everything, order, axis=1))
    np.testing.assert_array_equal(labels[:, 0], fitted.predict(X))


def test_too_many_weights_for_an_array_say_how_to_get_at_them():
    X, y = text_like(60, 40, 5, seed=0)
    fitted = make("ppd_squared_hinge").fit(X, y)
    fitted.model_.weights = sp.csr_matrix((100_000, 2**31 - 1), dtype=np.float32)
    with pytest.raises(MemoryError, match=r"needs \d+ GB as an array; call sparsify"):
        _ = fitted.coef_


@pytest.mark.parametrize("loss", LOSSES)
def test_sparsify_changes_the_layout_only(loss):
    X, y = text_like(150, 60, 9, seed=3)
    fitted = make(loss).fit(X, y)
    dense, before = fitted.densify().coef_, fitted.decision_function(X)
    assert isinstance(dense, np.ndarray)
    sparse = fitted.sparsify().coef_
    assert sp.issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), dense)
    np.testing.assert_allclose(fitted.decision_function(X), before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if PROBLEMS[loss].sparse_weights])
def test_sparse_weights_work_with_scipy(loss):
    """scipy rejects many operations on index arrays of two types; the model is too large to be dense."""
    X, y = text_like(900, 20_000, 300, seed=3, nnz=40)
    fitted = make(loss, tol=0.1).fit(X, y)
    weights = fitted.model_.weights
    assert sp.issparse(weights) and weights.indices.dtype == weights.indptr.dtype
    assert sp.vstack([weights, fitted.intercept_[None]]).shape == (20_001, PROBLEMS[loss].columns(300))
    if not fitted.model_.pairs:
        np.testing.assert_allclose(X @ weights + fitted.intercept_, fitted.decision_function(X), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_copies_are_reported(loss):
    X, y = text_like(60, 30, 3, seed=2)
    assert make(loss).fit(X, y).copies_ == []
    assert "converted csc to csr" in make(loss).fit(X.tocsc(), y).copies_[0]


def with_value(value):
    X, y = text_like(30, 20, 3)
    X = X.copy()
    X.data[7] = value
    return X, y


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (*with_value(np.nan), r"NaN at row \d+, column \d+"),
        (*with_value(np.inf), r"infinity at row \d+, column \d+"),
        (text_like(30, 20, 3)[0], np.zeros(30), "only one class, 0.0"),
        (text_like(30, 20, 3)[0], np.arange(29), "inconsistent numbers of samples"),
        (text_like(30, 20, 3)[0], [0.5, float("nan")] * 15, "row 1 is NaN"),
        (sp.csr_matrix((0, 5)), [], "0 sample"),
    ],
)
def test_wrong_training_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        make("ww").fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of 'ww', 'cs'"),
        ({"C": 0.0}, "'C' parameter"),
        ({"C": float("nan")}, "'C' parameter"),
        ({"tol": -1}, "'tol' parameter"),
        ({"stop": "never"}, "'stop' parameter"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"dtype": "float16"}, "'dtype' parameter"),
        ({"class_weight": {99: 2.0}}, "not in class_weight"),
    ],
)
def test_wrong_parameters(parameters, message):
    X, y = text_like(30, 20, 3)
    with pytest.raises(ValueError, match=message):
        make("ww").set_params(**parameters).fit(X, y)


def test_wrong_number_of_features_at_predict():
    X, y = text_like(30, 20, 3)
    with pytest.raises(ValueError, match="X has 19 features, but MulticlassSVC is expecting 20"):
        make("ww").fit(X, y).predict(X[:, :19])
    with pytest.raises(ValueError, match="k must be between 1 and the number of classes, 3"):
        make("ww").fit(X, y).predict_topk(X, 4)


def test_nothing_is_printed_unless_asked(capfd):
    X, y = text_like(60, 30, 3)
    make("ww").fit(X, y)
    assert capfd.readouterr() == ("", "")
