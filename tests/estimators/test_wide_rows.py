"""Very many features, few of which occur: memory depends on those that do, and nothing else changes."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from losses import LOSSES, make, text_like
from typer.testing import CliRunner

from manyclass import load_model, save_model
from manyclass.cli.app import app
from manyclass.data import wide_rows
from manyclass.model import ModelFileError
from manyclass.model.weights import WideWeights

# The features of the small problem, spread among very many.
FEATURES = np.sort(np.random.default_rng(3).choice(10**8, 60, replace=False))


def spread(X):
    """Return the same rows with their features far apart."""
    return sp.csr_matrix((X.data, FEATURES[X.indices], X.indptr), (X.shape[0], 10**8))


@pytest.mark.parametrize("loss", LOSSES)
def test_features_that_do_not_occur_change_nothing(loss):
    X, y = text_like(80, 60, 4)
    near, far = make(loss, tol=0.1).fit(X, y), make(loss, tol=0.1).fit(spread(X), y)
    assert far.n_features_in_ == 10**8 and far.model_.weights.shape == (10**8, near.model_.weights.shape[1])
    assert isinstance(far.model_.weights, WideWeights) and far.model_.nbytes < 10**5
    used = np.unique(X.indices)
    assert far.model_.weights.features.tolist() == FEATURES[used].tolist()
    np.testing.assert_array_equal(far.decision_function(spread(X)), near.decision_function(X))
    # Features without weights have no effect.
    more = sp.csr_matrix(spread(X) + sp.csr_matrix((np.ones(80), (np.arange(80), np.arange(80) + 5)), (80, 10**8)))
    np.testing.assert_array_equal(far.decision_function(more), near.decision_function(X))


@pytest.fixture
def model():
    X, y = text_like(80, 60, 4)
    return make("hinge").fit(spread(X), y).model_


@pytest.mark.parametrize("how", [{}, {"prune": 0.01}, {"dtype": "float16"}, {"dtype": "int8"}])
def test_files_hold_the_features_that_have_weights(how, model, tmp_path):
    X = spread(text_like(80, 60, 4)[0])
    model = model.compress(**how) if how else model
    for mmap in (True, False):
        save_model(model, tmp_path / "m")
        loaded = load_model(tmp_path / "m", mmap=mmap)
        assert (tmp_path / "m").stat().st_size < 10**4 and loaded.n_features == 10**8
        np.testing.assert_array_equal(loaded.scores(X), model.scores(X))
        save_model(loaded, tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize(
    "features", [np.arange(3), np.arange(59)[::-1], np.zeros(59, np.int64), np.arange(59) - 1, np.arange(59.0)]
)
def test_forged_features_are_refused(features, model, tmp_path):
    forged = WideWeights(features, model.weights.part, 10**8)
    model.weights = forged
    save_model(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"weights\.features"):
        load_model(tmp_path / "m")


def test_the_matrix_of_all_features_can_still_be_had(monkeypatch):
    monkeypatch.setattr(wide_rows, "MANY", 100)
    X, y = text_like(80, 60, 4)
    wide = sp.csr_matrix((X.data, X.indices * 1000, X.indptr), (80, 60_000))
    near, far = make("hinge", dtype="float64").fit(X, y), make("hinge", dtype="float64").fit(wide, y)
    assert isinstance(far.model_.weights, WideWeights)
    np.testing.assert_array_equal(far.coef_[:, ::1000], near.coef_)
    assert np.count_nonzero(far.coef_) == np.count_nonzero(near.coef_)
    assert (far.sparsify().coef_ != sp.csr_matrix(far.coef_.toarray())).nnz == 0


TRAINED = """
import sys
from manyclass.cli import main
sys.argv[:1] = ["manyclass"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
# Not ru_maxrss, which starts at the peak of the parent process.
print(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
"""


def test_one_large_index_costs_no_memory(tmp_path):
    (tmp_path / "x.svm").write_text("0 1:1 5:2\n1 2:1 99999999:3\n")
    call = ["train", str(tmp_path / "x.svm"), "-m", str(tmp_path / "m.manyclass"), "--quiet"]
    done = subprocess.run([sys.executable, "-c", TRAINED, *call], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 600_000  # kB, most of it the program
    assert (tmp_path / "m.manyclass").stat().st_size < 10**4
    done = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.manyclass"), "--class", "1"])
    assert done.exit_code == 0 and "99999999" in done.stdout
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "m.manyclass"), str(tmp_path / "x.svm")])
    assert done.exit_code == 0
