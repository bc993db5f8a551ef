"""The objective values of LIBLINEAR, where it has the loss."""

import numpy as np
import pytest
import scipy.sparse as sp
from liblinear.liblinearutil import parameter, problem, train
from losses import make, text_like

from manyclass.data import load_svmlight
from manyclass.problems import PROBLEMS

SOLVERS = {"cs": 4, "hinge": 3, "squared_hinge": 1}


def liblinear_primal(loss, X, y, C, eps):
    """Train LIBLINEAR and evaluate its weights with our formula."""
    found = train(problem(y.tolist(), sp.csr_matrix(X)), parameter(f"-s {SOLVERS[loss]} -c {C} -e {eps} -q"))
    K = found.nr_class
    W = np.ctypeslib.as_array(found.w, (found.nr_feature * K,)).reshape(found.nr_feature, K)
    W = W[:, np.argsort(found.get_labels())]
    return PROBLEMS[loss].primal(W, X[:, : W.shape[0]], y, np.full(len(y), C))


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("loss", SOLVERS)
def test_equals_liblinear(loss, C):
    X, y = text_like(150, 60, 6, seed=11)
    ours = make(loss, C=C, fit_intercept=False, tol=1e-7, dtype="float64", max_iter=200_000).fit(X, y)
    theirs = liblinear_primal(loss, X, y, C, 1e-7)
    assert ours.certificate_.primal <= theirs * (1 + 1e-6)
    # LIBLINEAR gives up after 1,000 passes, which at C = 10 leaves it a little above the optimum.
    assert theirs == pytest.approx(ours.certificate_.primal, rel=1e-3 if C == 10 else 1e-5)


@pytest.mark.parametrize("loss", SOLVERS)
@pytest.mark.parametrize("name", ["vowel", "dna", "glass"])
def test_no_worse_than_liblinear_on_real_data(loss, name, shared_data):
    """At default tolerances LIBLINEAR's weights lie between our dual value and a hair above our primal value."""
    X, y = load_svmlight(shared_data / name / "train.svm.xz", dtype=np.float64)
    y = np.unique(y, return_inverse=True)[1]
    ours = make(loss, fit_intercept=False, tol=1e-3, dtype="float64", max_iter=100_000).fit(X, y)
    theirs = liblinear_primal(loss, X, y, 1.0, 0.1)
    assert ours.certificate_.dual <= theirs
    assert ours.certificate_.primal <= theirs * (1 + 1e-3)
