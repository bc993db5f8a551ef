"""Values, penalties and weights that overflow are rejected; the error says where they are and what to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from losses import LOSSES, make, text_like
from stored_fits import store_of

from manyclass import LinearModel, OneVsRestSVC
from manyclass.engines.training import finite
from manyclass.problems import PROBLEMS
from manyclass.solvers import Certificate


@pytest.fixture
def rows():
    return text_like(40, 30, 4, seed=1)


@pytest.mark.parametrize("value", [1.7e308, -1e39, 1e30])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_value_too_large_to_train_on(loss, value, rows):
    X, y = rows
    X = X.toarray()
    X[3, 7] = value
    for given in (X, sp.csr_matrix(X)):
        with pytest.raises(ValueError, match=r"at row 3, column 7, too large for float32.*use float64"):
            make(loss).fit(given, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_what_float32_cannot_hold_float64_can(loss, rows):
    X, y = rows
    sparse = {"lam": 0.0} if PROBLEMS[loss].kernel in ("sparse_binary", "max_margin") else {}
    fitted = make(loss, dtype="float64", C=1e-50, fit_intercept=False, **sparse)
    fitted.fit(X * 1e25, y)
    assert fitted.certificate_.exit_reason == "converged"


def test_a_value_too_large_to_predict_from(rows, tmp_path):
    X, y = rows
    fitted = OneVsRestSVC().fit(X, y)
    long = X.toarray()
    long[3, 7] = 1e20
    for given in (long, sp.csr_matrix(long)):
        for predict in (fitted.predict, fitted.decision_function, fitted.predict_topk, fitted.model_.predict):
            with pytest.raises(ValueError, match=r"1e\+20 at row 3, column 7, too large for float32"):
                predict(given)
    store = store_of(long, y, tmp_path / "store", blocks=2)
    with pytest.raises(ValueError, match=r"block \d of .*store: X has 1e\+20 at row \d+, column 7, too large"):
        fitted.predict(store)
    model = LinearModel(fitted.coef_.T.astype(float), fitted.intercept_.astype(float), fitted.classes_)
    assert np.isfinite(model.scores(long)).all()


@pytest.mark.parametrize(
    ("C", "reason"),
    [
        (1e300, "add up to 4e\\+301, too much for float32; lower C or the weights of the rows, or use float64"),
        (1e30, "and penalties C_i that add up to 4e\\+31 are together too large for float32"),
        (1e-40, "largest penalty C_i of a row is 1e-40, too small for float32.*; raise C"),
    ],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_penalties_that_overflow_or_vanish(loss, C, reason, rows):
    X, y = rows
    with pytest.raises(ValueError, match=reason):
        make(loss, C=C).fit(X, y)


def test_weights_that_overflow_or_vanish(rows, tmp_path):
    X, y = rows
    weight = np.ones(40)
    weight[5] = 1e308
    with pytest.raises(ValueError, match=r"row 5 has a penalty .* of inf"):
        OneVsRestSVC(C=100).fit(X, y, weight)
    with pytest.raises(ValueError, match="too much for float32"):
        OneVsRestSVC().fit(X, y, weight)
    with pytest.raises(ValueError, match="too much for float32"):
        OneVsRestSVC(class_weight={0: 1e300, 1: 1, 2: 1, 3: 1}).fit(X, y)
    with pytest.raises(ValueError, match=r"intercept_scaling\) of 1e\+20 .* lower it"):
        OneVsRestSVC(intercept_scaling=1e20).fit(X, y)
    store = store_of(X, y, tmp_path / "store", blocks=2)
    with pytest.raises(ValueError, match="too much for float32"):
        OneVsRestSVC().fit(store, sample_weight=weight)
    with pytest.raises(ValueError, match="finite numbers of at least 0"):
        OneVsRestSVC().fit(store, sample_weight=weight * np.inf)


@pytest.mark.parametrize("loss", ["cs", "squared_hinge", "maxent"])
def test_a_penalty_that_underflows_counts_as_zero(loss, rows, tmp_path):
    X, y = rows
    weight = np.ones(40)
    weight[::7] = 1e-42
    without = make(loss).fit(X, y, np.where(weight < 1, 0, 1))
    np.testing.assert_array_equal(make(loss).fit(X, y, weight).coef_, without.coef_)
    store = store_of(X, y, tmp_path / "store", blocks=2)
    from_disk = make(loss).fit(store, sample_weight=np.where(weight < 1, 0, 1)).coef_
    np.testing.assert_array_equal(make(loss).fit(store, sample_weight=weight).coef_, from_disk)


@pytest.mark.parametrize("loss", ["cs", "squared_hinge", "logistic"])
def test_a_row_of_a_store_that_is_too_long(loss, rows, tmp_path):
    X, y = rows
    X = X.toarray()
    X[3, 7] = 1e25
    store = store_of(X, y, tmp_path / "store", blocks=2)
    with pytest.raises(ValueError, match=r"store: the row with id 3 has 1e\+25 at column 7, too large .* in float32"):
        make(loss).fit(store)


@pytest.mark.parametrize(("name", "value"), [("tau", 1e-30), ("tau", 1e30), ("lam", 1e30)])
@pytest.mark.parametrize("loss", ["ppd_hinge", "ppd_squared_hinge", "max_margin"])
def test_an_elastic_net_that_overflows(loss, name, value, rows):
    with pytest.raises(ValueError, match=f"{name} must be from .* got {value:.3g}".replace("+", r"\+")):
        make(loss, **{name: value}).fit(*rows)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-3, 1e-5, 1e-8, 1e-18, 1e-25])
def test_short_rows_converge_fast(loss, scale, rows):
    """Their objective is nearly linear, so steps are as long as the penalties allow."""
    X, y = rows
    fitted = make(loss, max_iter=5, fit_intercept=False, n_jobs=1).fit(X * scale, y)
    assert abs(fitted.certificate_.gap) < 1e-4


@pytest.mark.parametrize("values", [(np.nan, 1, 0), (1, -np.inf, 0), (np.inf, np.inf, 0), (1, 0.5, np.nan)])
def test_a_certificate_that_is_not_finite_is_an_error(values):
    with pytest.raises(ValueError, match=r"overflowed float32: .* There is no model; scale the features"):
        finite(Certificate(*values), np.dtype(np.float32))
    assert finite(Certificate(2.0, 1.0, 0.5), np.dtype(np.float32)).gap == 0.5


def test_a_fit_that_overflows_has_no_model(rows, monkeypatch):
    monkeypatch.setattr("manyclass.engines.choice.check_scale", lambda *_: None)
    estimator = OneVsRestSVC(C=1e308, dtype="float64", max_iter=3)
    with pytest.raises(ValueError, match="training overflowed float64"):
        estimator.fit(*rows)
    assert not hasattr(estimator, "model_")


def test_the_relative_gap_of_small_values():
    assert Certificate(2e-200, 1e-200, 0).gap == 0.5 and Certificate(0.0, 0.0, 0).gap == 0.0
