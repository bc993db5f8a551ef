"""Fits that need many passes: pairs of nearly equal rows of different classes, and a large C."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from losses import text_like

from manyclass import MulticlassSVC
from manyclass.data import check_matrix
from manyclass.problems import PROBLEMS
from manyclass.solvers import coupled_rows
from manyclass.solvers.alike import ALIKE, MOST_ROWS, groups_of_alike_rows
from manyclass.solvers.solver import TrainingSet

COUPLED = ["ww", "cs", "llw", "mmr", "rm", "adm", "atm", "ats"]


def with_twins(n=150, twins=40, d=400, K=5, seed=0):
    """Repeat the first `twins` rows, slightly changed and in the next class."""
    X, y = text_like(n, d, K, seed, nnz=12)
    rng = np.random.default_rng(seed)
    noise = sp.random(twins, d, density=0.02, random_state=rng) * 0.1
    return sp.csr_matrix(sp.vstack([X, X[:twins] + noise])), np.append(y, (y[:twins] + 1) % K)


def as_groups(ptr, rows):
    return {frozenset(rows[b:e].tolist()) for b, e in pairwise(ptr)}


def training_set(X, y, constant=0.0):
    return TrainingSet(check_matrix(X), y.astype(np.int32), np.ones(len(y)), int(y.max()) + 1, constant)


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_alike_rows_are_found(constant):
    X, y = with_twins()
    dense = np.hstack([X.toarray(), np.full((X.shape[0], 1), constant)])
    dense /= np.linalg.norm(dense, axis=1)[:, None]
    linked = dense @ dense.T >= ALIKE
    while not (linked == (further := linked.astype(int) @ linked > 0)).all():
        linked = further
    expected = {frozenset(np.flatnonzero(row).tolist()) for row in linked if row.sum() > 1}
    assert len(expected) > 20
    assert as_groups(*groups_of_alike_rows(training_set(X, y, constant))) == expected


def test_large_groups_are_split():
    X = sp.csr_matrix(np.vstack([np.eye(4)[[0] * 50 + [1] * 3], np.eye(4)[2:]]))
    sizes = np.diff(groups_of_alike_rows(training_set(X, np.arange(55) % 2))[0])
    assert sizes.tolist() == [MOST_ROWS, 50 - MOST_ROWS, 3]


def test_no_group_without_rare_features_or_with_empty_rows():
    dense = np.random.default_rng(0).standard_normal((200, 5))
    dense[:10] = 0
    assert groups_of_alike_rows(training_set(sp.csr_matrix(dense), np.arange(200) % 3))[1].size == 0


@pytest.mark.parametrize("loss", COUPLED)
def test_hard_fits_converge_sooner(loss, monkeypatch):
    X, y = with_twins()
    parameters = {"C": 300.0, "tol": 1e-4, "dtype": "float64", "max_iter": 3000, "fit_intercept": False}
    fitted = MulticlassSVC(loss, **parameters).fit(X, y)
    assert fitted.certificate_.exit_reason == "converged"
    monkeypatch.setattr(coupled_rows, "EASY_PASSES", 10**9)
    parameters["max_iter"] = int(fitted.n_iter_[0])
    with pytest.warns(UserWarning, match="max_iter"):
        plain = MulticlassSVC(loss, **parameters).fit(X, y)
    assert plain.certificate_.gap > 3 * fitted.certificate_.gap


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", COUPLED)
def test_the_certificate_is_that_of_the_model(loss, dtype):
    X, y = with_twins()
    C = 100.0
    fitted = MulticlassSVC(loss, C=C, tol=1e-3, dtype=dtype, max_iter=3000, fit_intercept=False, warm_start=True).fit(
        X.astype(dtype), y
    )
    W = fitted.coef_.toarray() if sp.issparse(fitted.coef_) else fitted.coef_
    primal = PROBLEMS[loss].primal(W.T.astype(float), X.astype(dtype).astype(float), y, np.full(len(y), C))
    assert fitted.certificate_.primal == pytest.approx(primal, rel=1e-12)


def test_a_factor_on_the_weights_is_used_and_training_continues_without_it(monkeypatch):
    X, y = with_twins()
    scales = []
    plain = coupled_rows.CoupledRows.certificate
    monkeypatch.setattr(
        coupled_rows.CoupledRows, "certificate", lambda s: (plain(s), scales.append(s._status.scale))[0]
    )
    parameters = {"C": 300.0, "tol": 1e-7, "dtype": "float64", "max_iter": 5000, "fit_intercept": False}
    fitted = MulticlassSVC("llw", **parameters).fit(X, y)
    assert fitted.certificate_.exit_reason == "converged"
    assert any(scale != 1 for scale in scales)


@pytest.mark.parametrize("loss", ["ww", "llw"])
def test_the_same_bits_for_any_number_of_threads(loss):
    X, y = with_twins()
    models = [
        MulticlassSVC(loss, C=300.0, tol=1e-3, n_jobs=jobs, max_iter=3000).fit(X, y).coef_ for jobs in (1, 2, 3)
    ]
    models = [m.toarray() if sp.issparse(m) else m for m in models]
    assert (models[0] == models[1]).all() and (models[0] == models[2]).all()


@pytest.mark.parametrize("loss", COUPLED)
def test_a_fit_that_converged_with_a_factor_is_done_after_a_warm_start(loss):
    X, y = with_twins()
    model = MulticlassSVC(loss, C=300.0, tol=1e-4, dtype="float64", max_iter=3000, warm_start=True).fit(X, y)
    assert model.n_iter_ > coupled_rows.EASY_PASSES
    assert [row["epochs"] for row in model.fit(X, y).history_] == [0]
