"""Properties of every loss: threads, layout of X, saving and loading, and so on must not change the result."""

import importlib.util
import json
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from losses import LOSSES, make, slow_if, text_like
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from manyclass import load_model, save_model
from manyclass._native import BUILDS, supported_builds

TIGHT = {"tol": 1e-9, "dtype": "float64", "max_iter": 500_000}


def many_classes(loss):
    """Return a problem with waves of rows, tail features and several blocks of classes; fewer classes for pairs."""
    return text_like(500, 900, 50 if loss.startswith("ovo_") else 310, seed=3, nnz=90)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_model_bytes_do_not_depend_on_threads(loss, dtype, tmp_path):
    X, y = many_classes(loss)
    files = []
    for n_jobs in (1, 2, 3, 8):
        save_model(make(loss, n_jobs=n_jobs, dtype=dtype).fit(X, y).model_, tmp_path / "model")
        files.append((tmp_path / "model").read_bytes())
    assert files[1:] == files[:1] * 3


@pytest.mark.parametrize("loss", LOSSES)
def test_history_does_not_depend_on_threads(loss):
    X, y = many_classes(loss)
    names = ("primal", "dual", "violation", "certified")
    one, three = (
        [
            tuple(row[name] for name in names)
            for row in make(loss, n_jobs=n).fit(X, y).history_
            if row["active"] in (0, 1)
        ]
        for n in (1, 3)
    )
    assert one == three


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_equal_repetition(loss):
    X, y = text_like(40, 40, 4, seed=1)
    times = np.random.default_rng(0).integers(0, 4, 40)
    times[:4] = 1
    repeated = np.repeat(np.arange(40), times)
    weighted = make(loss, **TIGHT).fit(X, y, sample_weight=times)
    twice = make(loss, **TIGHT).fit(X[repeated], y[repeated])
    assert weighted.certificate_.primal == pytest.approx(twice.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(weighted.coef_, twice.coef_, atol=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_order_of_rows_does_not_move_the_optimum(loss):
    X, y = text_like(60, 40, 5, seed=1)
    order = np.random.default_rng(0).permutation(60)
    a, b = make(loss, **TIGHT).fit(X, y), make(loss, **TIGHT).fit(X[order], y[order])
    assert a.certificate_.primal == pytest.approx(b.certificate_.primal, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_layouts_of_X_give_the_same_bits(loss):
    X, y = text_like(80, 40, 5, seed=2)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    read_only = X.copy()
    for array in (read_only.data, read_only.indices, read_only.indptr):
        array.flags.writeable = False
    first = make(loss).fit(X, y)
    for other in (
        wide,
        read_only,
        X.tocsc(),
        X.tocoo(),
        X.toarray(),
        np.asfortranarray(X.toarray()),
        sp.csr_array(X),
    ):
        np.testing.assert_array_equal(make(loss).fit(other, y).coef_, first.coef_)
        np.testing.assert_array_equal(first.predict(other), first.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_memory_mapped_rows(loss, tmp_path):
    X, y = text_like(80, 40, 5, seed=2)
    joblib.dump(X, tmp_path / "X")
    mapped = joblib.load(tmp_path / "X", mmap_mode="r")
    np.testing.assert_array_equal(make(loss).fit(mapped, y).coef_, make(loss).fit(X, y).coef_)


@pytest.mark.parametrize("loss", LOSSES)
def test_float32_and_float64_agree(loss):
    X, y = text_like(80, 40, 5, seed=2)
    single = make(loss, tol=1e-4).fit(X.astype(np.float32), y)
    double = make(loss, tol=1e-4, dtype="float64").fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32 and double.coef_.dtype == np.float64
    assert single.certificate_.primal == pytest.approx(double.certificate_.primal, rel=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_file_and_pickle_keep_the_model(loss, tmp_path):
    X, y = many_classes(loss)
    names = np.array([f"class {label}" for label in y])
    fitted = make(loss).fit(X, names)
    save_model(fitted.model_, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(loaded.scores(X), fitted.decision_function(X))
    assert loaded.certificate["gap"] == fitted.certificate_.gap
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_grid_search_in_a_pipeline(loss):
    X, y = text_like(90, 40, 3, seed=4)
    search = GridSearchCV(
        make_pipeline(MaxAbsScaler(), make(loss, n_jobs=1)),
        {f"{type(make(loss)).__name__.lower()}__C": [0.1, 10]},
        cv=3,
    )
    assert search.fit(X, y).best_score_ > 0.5
    assert clone(search.best_estimator_).get_params().keys() == search.best_estimator_.get_params().keys()


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_needs_less_and_ends_at_the_same_optimum(loss):
    X, y = text_like(200, 60, 6, seed=5)
    model = make(loss, warm_start=True, tol=1e-3).fit(X, y)
    cold = model.n_iter_
    model.set_params(tol=1e-7, dtype="float64", max_iter=100_000).fit(X, y)
    again = model.fit(X, y)
    assert again.n_iter_ <= max(2, cold)
    fresh = make(loss, tol=1e-7, dtype="float64", max_iter=100_000).fit(X, y)
    assert again.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_from_another_C_stays_feasible(loss):
    X, y = text_like(80, 40, 5, seed=6)
    model = make(loss, warm_start=True, C=10.0, tol=1e-5, dtype="float64", max_iter=100_000).fit(X, y)
    model.set_params(C=0.1).fit(X, y)
    fresh = make(loss, C=0.1, tol=1e-5, dtype="float64", max_iter=100_000).fit(X, y)
    assert model.certificate_.dual <= fresh.certificate_.primal * (1 + 1e-12)
    assert model.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=2e-5)


@pytest.mark.parametrize("build", BUILDS)
def test_every_build_reaches_the_same_optimum(build, tmp_path):
    """Train with each build of the core, in separate processes."""
    if build not in supported_builds():
        pytest.skip(f"this processor does not run {build}")
    if importlib.util.find_spec(f"manyclass._native.{build}") is None:
        pytest.skip(f"{build} was not built; `make test-all` builds it")
    for loss in LOSSES:
        X, y = many_classes(loss)
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "y": y}
        np.savez(tmp_path / f"{loss}.npz", **arrays)
    code = (
        "import sys, json, numpy as np, scipy.sparse as sp\n"
        "from manyclass import _native\n"
        "from manyclass.estimators import estimator_for\n"
        "found = {}\n"
        "for loss in sys.argv[2:]:\n"
        "    z = np.load(f'{sys.argv[1]}/{loss}.npz')\n"
        "    X = sp.csr_matrix((z['data'], z['indices'], z['indptr']), shape=tuple(z['shape']))\n"
        "    c = estimator_for(loss, C=1.0, tol=1e-4).fit(X, z['y']).certificate_\n"
        "    found[loss] = [c.primal, c.gap]\n"
        "print(json.dumps([_native.isa, found]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path, *LOSSES],
        env=os.environ | {"MANYCLASS_ISA": build},
        capture_output=True,
        text=True,
        check=True,
    )
    name, found = json.loads(done.stdout)
    assert name == build
    for loss in LOSSES:
        primal, gap = found[loss]
        here = make(loss, tol=1e-4).fit(*many_classes(loss)).certificate_
        assert gap <= 1e-4, loss
        assert primal == pytest.approx(here.primal, rel=2e-4), loss


@pytest.mark.parametrize("loss", slow_if(LOSSES, "adm", "atm"))
def test_a_path_ends_at_the_same_optima_as_single_fits(loss):
    X, y = text_like(80, 40, 5, seed=7)
    tight = {"tol": 1e-5, "dtype": "float64", "max_iter": 100_000}
    path = make(loss, **tight).fit_path(X, y, [3.0, 0.1, 1.0])
    assert [model.C for model in path] == [0.1, 1.0, 3.0]
    for model in path:
        alone = make(loss, C=model.C, **tight).fit(X, y)
        assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-5)
