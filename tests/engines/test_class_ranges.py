"""One-vs-rest from a store with too many classes for the memory: one range of classes after another."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from losses import make, slow_if, text_like
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from stored_fits import (
    assert_certificate_follows_from_formulas,
    assert_same_bits,
    memory_needed,
    store_of,
    weights_of,
    with_constant,
)

from manyclass import DiskEngine, OneVsRestSVC
from manyclass.engines import class_ranges
from manyclass.engines.disk import DiskFits
from manyclass.problems import PROBLEMS

LOSSES = ["hinge", "squared_hinge", "logistic"]
K = 200


@pytest.fixture
def ranges(monkeypatch):
    """The ranges of classes started so far."""
    begun = []
    begin = class_ranges.ClassRanges._begin_range

    def note(self):
        begin(self)
        begun.append(self._classes)

    monkeypatch.setattr(class_ranges.ClassRanges, "_begin_range", note)
    return begun


def many_classes(seed=0, n=300):
    X, y = text_like(n, 150, K, seed=seed)
    alone = sp.csr_matrix((np.ones(10), (np.arange(0, n, n // 10)[:10], np.arange(10))), (n, 10))
    return sp.hstack([X, alone]).tocsr(), y


def ovr(loss, memory, **options):
    given = {"tol": 1e-3, "dtype": "float64", "max_iter": 2000, "n_jobs": 1} | options
    return make(loss, engine=DiskEngine(memory, blocks_per_batch=2), **given)


def little(loss, store, more=1.1, **options):
    """Return somewhat more than the memory that a fit asks for, in bytes."""
    with pytest.raises(ValueError, match="kB to train 16 classes at a time") as refused:
        ovr(loss, "1kB", **options).fit(store)
    assert ("no weight is 0" in str(refused.value)) == (loss == "logistic")
    return int(memory_needed(str(refused.value)) * more)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_memory(loss, tmp_path, ranges):
    X, y = many_classes()
    store = store_of(X, y, tmp_path / "s", 6)
    fitted = ovr(loss, little(loss, store), warm_start=True).fit(store)
    assert len(ranges) > 1 and ranges[0][0] == 0 and ranges[-1][1] == K
    assert [high for _, high in ranges[:-1]] == [low for low, _ in ranges[1:]]
    best = make(loss, tol=1e-6, dtype="float64", max_iter=5000).fit(X, y).certificate_
    found = fitted.certificate_
    assert found.exit_reason == "converged" and found.gap <= 1e-3
    assert found.primal >= best.dual * (1 - 1e-12) and found.dual <= best.primal * (1 + 1e-12)
    assert_certificate_follows_from_formulas(fitted, store, loss, X, y)


@pytest.mark.parametrize("loss", slow_if(LOSSES, "squared_hinge", "logistic"))
def test_bits_depend_neither_on_threads_nor_on_the_number_of_ranges(loss, tmp_path, ranges):
    X, y = many_classes(1)
    store = store_of(X, y, tmp_path / "s", 6, np.float32)
    options = {"dtype": "float32", "tol": 1e-9, "max_iter": 4}
    models, least = [], little(loss, store, **options)
    with pytest.warns(ConvergenceWarning):
        for jobs, memory in ((1, least), (2, least), (4, least), (1, "100MB")):
            models.append(ovr(loss, memory, n_jobs=jobs, **options).fit(store))
    assert len(ranges) > 3
    assert_same_bits(models[:3])
    np.testing.assert_array_equal(weights_of(models[0]), weights_of(models[3]))
    assert models[0].certificate_.primal == pytest.approx(models[3].certificate_.primal, rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_weights_of_rows_and_sets_of_labels(loss, tmp_path, ranges):
    X, _ = many_classes(2)
    Y = sp.random(300, K, 0.02, format="csr", random_state=1).astype(bool).astype(int)
    store = store_of(X, Y, tmp_path / "s", 6)
    weight = np.random.default_rng(0).uniform(0, 2, 300)
    weight[::7] = 0
    found = ovr(loss, little(loss, store)).fit(store, sample_weight=weight).certificate_
    best = make(loss, tol=1e-6, dtype="float64", max_iter=5000).fit(X, Y, sample_weight=weight).certificate_
    assert len(ranges) > 1
    assert found.gap <= 1e-3 and found.primal >= best.dual and found.dual <= best.primal


def test_features_that_no_row_has_take_nothing(tmp_path):
    """Hashed words: a million columns, a few hundred of them in use."""
    X, y = many_classes(3)
    spread = np.sort(np.random.default_rng(0).choice(1 << 20, X.shape[1], replace=False))
    wide = sp.csr_matrix((X.data, spread[X.indices], X.indptr), (X.shape[0], 1 << 20))
    store = store_of(wide, y, tmp_path / "s", 6, np.float32)
    tracemalloc.start()
    fitted = OneVsRestSVC("squared_hinge", engine=DiskEngine("30MB"), tol=0.1).fit(store)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6 < wide.shape[1] * K * 4  # NumPy's arrays: a dense model would be 420 MB
    assert sp.issparse(fitted.model_.weights)
    narrow = OneVsRestSVC("squared_hinge", tol=0.1).fit(X, y)
    used = fitted.model_.weights[spread].toarray()
    assert np.count_nonzero(used) == fitted.model_.weights.nnz
    assert np.abs(used - narrow.coef_.T).max() < 0.3
    assert fitted.score(store) == pytest.approx(narrow.score(X, y), abs=0.02)


# ---- Fits that end early, and fits that resume


class KilledError(Exception):
    pass


def stop_after(monkeypatch, advances):
    """Kill a fit in the middle."""
    left = [advances]
    advance = DiskFits.advance

    def dying(self, rule):
        left[0] -= 1
        if left[0] < 0:
            raise KilledError
        return advance(self, rule)

    monkeypatch.setattr(DiskFits, "advance", dying)


@pytest.mark.parametrize(("loss", "again"), [("hinge", 1.0), ("squared_hinge", 1.1), ("squared_hinge", 100.0)])
def test_a_killed_fit_resumes_with_any_memory(loss, again, tmp_path, ranges, monkeypatch):
    X, y = many_classes(4)
    store = store_of(X, y, tmp_path / "s", 3)
    folder = tmp_path / "folder"
    memory = little(loss, store)
    whole = ovr(loss, memory, tol=0.02)
    passes = []
    advance = DiskFits.advance
    monkeypatch.setattr(DiskFits, "advance", lambda self, rule: (passes.append(self), advance(self, rule))[1])
    whole.fit(store)
    full = len(passes)
    with monkeypatch.context() as patch:
        stop_after(patch, full * 2 // 3)
        with pytest.raises(KilledError):
            ovr(loss, memory, tol=0.02, checkpoint=folder, every=0.0).fit(store)
    passes.clear()
    fitted = ovr(loss, int(memory * again), tol=0.02, checkpoint=folder, resume=True, warm_start=True).fit(store)
    assert len(passes) < full  # the resumed fit does not start over
    assert fitted.certificate_.gap <= 0.02
    assert fitted.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=0.03)
    if again == 100.0:
        assert_certificate_follows_from_formulas(fitted, store, loss, X, y)
        assert all(re.fullmatch(r"block-\d+-\d+", path.stem) for path in folder.glob("*.variables"))


def test_variables_survive_other_ranges_and_removed_rows(tmp_path, ranges):
    """A second fit finds every range optimal, even with another memory limit."""
    X, y = many_classes(5)
    store = store_of(X, y, tmp_path / "s", 6)
    memory = little("squared_hinge", store, 1.0)
    first = ovr("squared_hinge", memory, warm_start=True).fit(store)
    for more in (1.2, 100.0, 1.05):
        again = clone(first).set_params(engine=DiskEngine(int(memory * more), blocks_per_batch=2))
        again._dual_state = first._dual_state
        again.fit(store)
        assert again.n_iter_ == 1
        np.testing.assert_allclose(again.coef_, first.coef_, atol=1e-12)
    store.remove([250, 251, 290])  # none of them the only row of its class
    for more in (1.0, 100.0):
        again = ovr("squared_hinge", int(memory * more), warm_start=True)
        again._dual_state = first._dual_state
        again.fit(store)
        assert_certificate_follows_from_formulas(again, store, "squared_hinge", X, y)


def test_classes_that_were_not_reached_have_no_weights(tmp_path, ranges):
    X, y = many_classes(6)
    store = store_of(X, y, tmp_path / "s", 6)
    memory = little("squared_hinge", store)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        fitted = ovr("squared_hinge", memory, tol=1e-9, max_iter=10**6, time_limit=0.05).fit(store)
    behind = ranges[-1][1]
    assert behind < K
    assert np.isneginf(fitted.intercept_[behind:]).all() and np.isfinite(fitted.intercept_[:behind]).all()
    assert not fitted.coef_[behind:].any()
    W = np.vstack([fitted.coef_.T, np.where(np.isfinite(fitted.intercept_), fitted.intercept_, 0)])
    primal = PROBLEMS["squared_hinge"].primal(W, with_constant(X), y, np.ones(len(y)))
    assert fitted.certificate_.primal == pytest.approx(primal, rel=1e-9)
    assert fitted.certificate_.exit_reason == "time_limit"


def test_every_range_has_max_iter_passes(tmp_path, ranges):
    X, y = many_classes(7)
    store = store_of(X, y, tmp_path / "s", 6)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        fitted = ovr("squared_hinge", little("squared_hinge", store), tol=1e-9, max_iter=2).fit(store)
    assert ranges[-1][1] == K and fitted.n_iter_ == 2
    assert np.isfinite(fitted.intercept_).all()
    assert fitted.history_[-1]["certified"] and fitted.history_[-1]["gap"] == fitted.certificate_.gap


# ---- Too little memory


@pytest.mark.parametrize("loss", LOSSES)
def test_the_memory_asked_for_is_enough(loss, tmp_path):
    X, y = many_classes(8)
    store = store_of(X, y, tmp_path / "s", 6)
    needed = little(loss, store, 1.0)
    assert ovr(loss, needed, tol=0.1).fit(store).certificate_.gap <= 0.1
    with pytest.raises(ValueError, match="is not enough"):
        ovr(loss, int(needed * 0.95)).fit(store)


def test_a_model_that_outgrows_the_memory_is_an_error(tmp_path, monkeypatch):
    X, y = many_classes(9)
    store = store_of(X, y, tmp_path / "s", 6)
    memory = int(little("squared_hinge", store) * 0.8)
    monkeypatch.setattr(class_ranges.Sizes, "certain_model", lambda *_: 0)  # as if its size were unknown
    with pytest.raises(ValueError, match=r"the weights of \d+ of 200 classes already take"):
        ovr("squared_hinge", memory).fit(store)
