"""Coupled losses from a store with thousands of classes, where rare features have lists of weights."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from losses import slow_if, text_like
from oracle import optimum
from sklearn.exceptions import ConvergenceWarning
from stored_fits import assert_certificate_follows_from_formulas, assert_same_bits, store_of

from manyclass import DiskEngine, MulticlassSVC, select_C
from manyclass.engines import StoredRows, disk, disk_memory, least_memory
from manyclass.problems import PROBLEMS

LOSSES = ["cs", "ww"]


@pytest.fixture
def listed(monkeypatch):
    """Use lists even for few classes."""
    monkeypatch.setattr(disk, "rare_rows", lambda *_, **__: 12)


def svm(loss, memory="40MB", **options):
    given = {"tol": 1e-4, "dtype": "float64", "max_iter": 2000, "n_jobs": 1} | options
    return MulticlassSVC(loss, engine=DiskEngine(memory, blocks_per_batch=2), **given)


def least(store, loss, dtype):
    return least_memory(PROBLEMS[loss], StoredRows(store, 1.0, constant=1.0), np.dtype(dtype))


def of_any_length(X, seed=0):
    lengths = np.random.default_rng(seed).uniform(0.3, 3, X.shape[0])
    return sp.csr_matrix(sp.diags(lengths) @ X)


def thousands(n=2500, K=1500, seed=0):
    X, y = text_like(n, 1200, K, seed=seed, nnz=12)
    return of_any_length(X), y


@pytest.mark.parametrize("blocks", slow_if([1, 7], 7))
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_an_independent_solver(loss, intercept, blocks, listed, tmp_path):
    X, y = text_like(120, 90, 6, seed=blocks)
    X = of_any_length(X)
    store = store_of(X, y, tmp_path / "s", blocks)
    by_class = {1: 3.0, 2: 0.5}
    fitted = svm(loss, fit_intercept=intercept, class_weight=by_class, warm_start=True).fit(store)
    C = np.array([by_class.get(label, 1.0) for label in y])
    best = optimum(loss, X, y, C, 6, float(intercept))
    found = fitted.certificate_
    assert found.gap <= 1e-4
    assert found.primal >= best * (1 - 1e-6) and found.dual <= best * (1 + 1e-6)
    assert_certificate_follows_from_formulas(fitted, store, loss, X, y, C)


@pytest.mark.parametrize("loss", LOSSES)
def test_bits_do_not_depend_on_threads(loss, tmp_path):
    X, y = thousands(1000, 900)
    store = store_of(X, y, tmp_path / "s", 4, np.float32)
    with pytest.warns(ConvergenceWarning):
        models = [svm(loss, dtype="float32", tol=1e-6, max_iter=3, n_jobs=n).fit(store) for n in (1, 2, 3)]
    assert_same_bits(models)


def test_a_fit_resumes_with_the_same_bits_on_any_number_of_threads(tmp_path):
    X, y = thousands(1600, 1200, seed=1)
    store = store_of(X, y, tmp_path / "s", 4, np.float32)
    options = {"dtype": "float32", "checkpoint": tmp_path / "c"}
    svm("cs", tol=0.5, **options).fit(store)
    copies = []
    for jobs in (1, 3):
        folder = tmp_path / f"c{jobs}"
        shutil.copytree(tmp_path / "c", folder)
        again = svm("cs", dtype="float32", tol=0.05, n_jobs=jobs, checkpoint=folder, resume=True)
        copies.append(again.fit(store))
    np.testing.assert_array_equal(copies[0].coef_, copies[1].coef_)
    best = MulticlassSVC("cs", tol=1e-3, n_jobs=1).fit(X, y).certificate_
    found = copies[0].certificate_
    assert found.gap <= 0.05 and found.primal >= best.dual and found.dual <= best.primal


@pytest.mark.filterwarnings("ignore::manyclass.estimators.selection.EdgeOfGridWarning")
def test_folds_are_left_out(listed, tmp_path, monkeypatch):
    X, y = text_like(240, 90, 5, seed=11)
    store = store_of(X, y, tmp_path / "s", 8)
    found = select_C(svm("cs", tol=1e-5), store, Cs=[1.0, 0.1], cv=3)
    monkeypatch.setattr(disk, "rare_rows", lambda *_, **__: 1)
    dense = select_C(svm("cs", tol=1e-5), store, Cs=[1.0, 0.1], cv=3)
    assert found.gaps.max() <= 1e-5
    np.testing.assert_allclose(found.accuracies, dense.accuracies, atol=0.03)


def test_lists_that_outgrow_their_memory_drop_unused_weights(tmp_path, monkeypatch):
    X, y = thousands(seed=2)
    store = store_of(X, y, tmp_path / "s", 4)
    monkeypatch.setattr(disk_memory, "PASSING", 0.02)
    lengths = []
    set_weights = disk.DiskFits._set_weights

    def note(self, fits, **options):
        before = self._fits[0].listed
        set_weights(self, fits, **options)
        lengths.append((before, self._fits[0].listed))

    monkeypatch.setattr(disk.DiskFits, "_set_weights", note)
    found = svm("cs", 2 * least(store, "cs", np.float64), tol=0.05).fit(store).certificate_
    assert sum(after < before for before, after in lengths) > 1
    best = MulticlassSVC("cs", tol=1e-3, n_jobs=1).fit(X, y).certificate_
    assert found.gap <= 0.05 and found.primal >= best.dual and found.dual <= best.primal


def test_a_fit_that_runs_out_of_memory_says_what_it_needs(tmp_path, monkeypatch):
    X, y = thousands(seed=3)
    store = store_of(X, y, tmp_path / "s", 4, np.float32)
    monkeypatch.setattr(disk_memory, "PASSING", 0.0)
    monkeypatch.setattr(disk_memory.Sizes, "expected_model", lambda *_: 0)
    needed = least(store, "ww", np.float32)
    with pytest.raises(ValueError, match="the fit needs"):
        svm("ww", needed - 1, dtype="float32").fit(store)
    with pytest.raises(ValueError, match=r"more than estimated; give the fit [\d.]+ MB or more"):
        svm("ww", needed, dtype="float32", tol=1e-3).fit(store)


TRAIN = """
import sys
from manyclass import BlockStore, DiskEngine, MulticlassSVC
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
tiny, store, memory = sys.argv[1:]
MulticlassSVC("cs", tol=0.5, engine=DiskEngine("20MB")).fit(BlockStore(tiny))  # imports, and what libraries keep
before = peak()
fitted = MulticlassSVC("cs", tol=0.2, n_jobs=2, engine=DiskEngine(int(memory))).fit(BlockStore(store))
print(peak() - before, fitted.certificate_.gap)
"""


def test_the_limit_holds_where_dense_weights_would_exceed_it(tmp_path):
    X, y = thousands(4000, 3000, seed=4)
    X = sp.hstack([X, text_like(4000, 9000, 3000, seed=5, nnz=12)[0]]).tocsr()
    store = store_of(X, y, tmp_path / "s", 4, np.float32)
    store_of(*text_like(60, 40, 4), tmp_path / "tiny", 2)
    memory = int(1.4 * least(store, "cs", np.float32))
    assert np.count_nonzero(store.frequencies > 1) * store.classes.size * 4 > memory
    command = [sys.executable, "-c", TRAIN, tmp_path / "tiny", tmp_path / "s", str(memory)]
    taken, gap = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert float(gap) <= 0.2 and int(taken) <= memory
