"""What Python views of native memory, and native views of Python's, need stays alive: no array reads freed memory."""

import gc
import weakref

import numpy as np
import pytest
from losses import text_like

from manyclass._native import core

N, D, K = 40, 30, 10_000  # so many classes that freed memory is unmapped at once
X, Y = text_like(N, D, 5)
INDPTR, INDICES, VALUES = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float32)
Y, C = Y.astype(np.int32), np.ones(N, np.float32)


def rows():
    places = core.FeaturePlaces(np.bincount(INDICES, minlength=D), False)
    found = core.Layout32()
    found.begin_rows(places, N, X.nnz)
    found.add_rows(INDPTR, INDICES, VALUES, D, 0.0, places)
    return found


def trained(kind, loss):
    solver = kind(rows(), Y, C, K, loss, 0.5, False)
    solver.begin_pass()
    solver.sweep(np.arange(N), 4, True, 0.0, 100, 1)
    return solver


RESETS = {
    "release": lambda solver: solver.weights(D, 1),
    "join": lambda solver: solver.join(lambda mine: [mine], [0, K], 0),
    "swap_rows": lambda solver: solver.swap_rows(rows(), Y, C),
}


@pytest.mark.parametrize(
    "kind, loss, name, reset",
    [
        (core.Coupled32, "ww", "training_weights", "release"),
        (core.Coupled32, "ww", "training_weights", "join"),
        (core.MaximumEntropy32, "maxent", "training_weights", "join"),
        (core.MaximumEntropy32, "maxent", "variables", "swap_rows"),
    ],
)
def test_a_view_outlives_what_its_solver_resets(kind, loss, name, reset):
    solver = trained(kind, loss)
    view = getattr(solver, name)
    before = view.copy()
    assert before.any()
    view[0] = before[0] = 7  # it is a view
    np.testing.assert_array_equal(getattr(solver, name), before)
    RESETS[reset](solver)
    np.testing.assert_array_equal(view, before)
    del solver
    gc.collect()
    np.testing.assert_array_equal(view, before)


def test_a_sibling_keeps_the_rows_that_the_first_one_reads_in_place():
    arrays = [array.copy() for array in (INDPTR, INDICES, VALUES)]
    alive = [weakref.ref(array) for array in arrays]
    own_rows = np.arange(N + 1), np.arange(N, dtype=np.int32)
    first = core.LabelBlocks32((*arrays, D), np.ones(N), own_rows, (0.01, 1.0, 0.0), True, (0, 0), True, 1)
    sibling = first.sibling()
    del first, arrays
    gc.collect()
    assert all(ref() is not None for ref in alive)
    del sibling
    gc.collect()
    assert not any(ref() is not None for ref in alive)
