"""Cross-validation over C finds what separate fits would find."""

import os
import signal
import threading

import numpy as np
import pytest
from losses import LOSSES, make, slow_if, text_like
from sklearn.model_selection import KFold

from manyclass import EdgeOfGridWarning, MulticlassSVC, select_C
from manyclass.estimators import Selection

TIGHT = {"tol": 1e-6, "dtype": "float64", "max_iter": 100_000}


@pytest.mark.parametrize("loss", slow_if(LOSSES, "adm", "atm", "ats", "max_margin"))
def test_equals_separate_fits(loss):
    X, y = text_like(90, 40, 3, seed=1)
    found = select_C(make(loss, **TIGHT), X, y, [10.0, 0.1, 1.0], cv=3)
    assert found.Cs.tolist() == [0.1, 1.0, 10.0]
    for place, C in enumerate(found.Cs):
        for fold, (learn, held_out) in enumerate(KFold(3, shuffle=True, random_state=0).split(X)):
            alone = make(loss, C=C, **TIGHT).fit(X[learn], y[learn])
            # A row on the boundary between two classes may get either.
            right = np.mean(alone.predict(X[held_out]) == y[held_out])
            assert found.accuracies[place, fold] == pytest.approx(right, abs=0.04)
    assert found.gaps.max() <= 1e-6
    assert found.best_C == found.Cs[found.accuracies.mean(axis=1).argmax()]


def test_does_not_depend_on_threads_and_leaves_the_estimator_alone():
    X, y = text_like(200, 60, 6, seed=2)
    estimator = MulticlassSVC("cs", C=3.0, n_jobs=1)
    one = select_C(estimator, X, y, [0.1, 1.0])
    assert estimator.C == 3.0 and not hasattr(estimator, "model_")
    np.testing.assert_array_equal(
        select_C(estimator.set_params(n_jobs=3), X, y, [0.1, 1.0]).accuracies, one.accuracies
    )


def test_labels_weights_and_dense_rows():
    X, y = text_like(80, 40, 3, seed=3)
    names = np.array(["a", "b", "c"])[y]
    weight = np.ones(80)
    given = select_C(MulticlassSVC(), X.toarray(), names, [1.0], sample_weight=weight)
    np.testing.assert_array_equal(given.accuracies, select_C(MulticlassSVC(), X, y, [1.0]).accuracies)


def test_a_class_that_a_fold_does_not_know_is_wrong_there():
    X, y = text_like(40, 30, 3, seed=4)
    y[y == 2] = 0
    y[0] = 2
    assert select_C(MulticlassSVC(), X, y, [1.0], cv=4).accuracies.max() <= 1.0


def test_fits_that_stop_early_are_counted():
    X, y = text_like(80, 40, 3, seed=6)
    with pytest.warns(match="10 of 10 fits did not converge"):
        found = select_C(MulticlassSVC(max_iter=1, tol=1e-9), X, y, [1.0, 2.0])
    assert not found.converged.any()


@pytest.mark.parametrize(
    ("Cs", "cv", "message"),
    [
        ([], 5, "only positive ones"),
        ([1.0, -1.0], 5, "only positive ones"),
        ([1.0], 1, "between 2 and"),
        ([1.0], 99, "40"),
    ],
)
def test_bad_arguments(Cs, cv, message):
    X, y = text_like(40, 30, 3)
    with pytest.raises(ValueError, match=message):
        select_C(MulticlassSVC(), X, y, Cs, cv=cv)


def test_errors_of_a_fold_are_raised():
    X, y = text_like(40, 30, 3)
    with pytest.raises(ValueError, match="loss must be one of"):
        select_C(MulticlassSVC("nonsense"), X, y, [1.0])


def test_ctrl_c_ends_all_folds():
    X, y = text_like(2000, 300, 50, seed=5, nnz=40)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        select_C(MulticlassSVC(C=1e4, tol=1e-12, max_iter=10**9), X, y, [1e4, 1e5])


# ---- The edge of the grid


def selection(Cs, means):
    """Return a selection with these mean accuracies."""
    accuracies = np.array(means, float)[:, None]
    return Selection(np.array(Cs, float), accuracies, 0 * accuracies, accuracies >= 0, 0.0)


@pytest.mark.parametrize(
    ("means", "edge", "wider"),
    [
        ([0.1, 0.2, 0.3], "largest", [1, 2, 4, 8, 16, 32, 64]),
        ([0.3, 0.2, 0.1], "smallest", [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4]),
        ([0.1, 0.3, 0.2], None, [1, 2, 4]),
        # Its neighbour is just as good, so values beyond the edge are not promising.
        ([0.3, 0.3, 0.1], None, [1, 2, 4]),
        ([0.1, 0.3, 0.3], None, [1, 2, 4]),
    ],
)
def test_the_edge_and_what_lies_beyond_it(means, edge, wider):
    found = selection([1, 2, 4], means)
    assert found.at_edge == edge
    np.testing.assert_allclose(found.wider_Cs, wider)


def test_a_single_penalty_has_no_edge():
    found = selection([3], [0.5])
    assert found.at_edge is None and found.wider_Cs.tolist() == [3]


def test_the_best_penalty_at_the_edge_is_a_warning():
    X, y = text_like(200, 60, 6, seed=2)
    with pytest.warns(
        EdgeOfGridWarning, match=r"the best C, 0.01, is the largest of Cs, .* 0.001, 0.01, 0.1, 1, 10, 100"
    ):
        found = select_C(MulticlassSVC("cs"), X, y, [0.001, 0.01])
    assert found.at_edge == "largest"


def test_the_best_penalty_within_the_grid_is_not_a_warning(recwarn):
    X, y = text_like(200, 60, 6, seed=2)
    found = select_C(MulticlassSVC("cs"), X, y, [0.01, 0.3, 100.0])
    assert found.at_edge is None
    assert not [warning for warning in recwarn if issubclass(warning.category, EdgeOfGridWarning)]
