"""Rows that move together in float32 stay at the optimum, where rounding is as large as the steps."""

import numpy as np
import pytest
from losses import text_like

from manyclass._native import core
from manyclass.solvers.solver import native


@pytest.mark.parametrize("loss", ["ww", "cs"])
def test_sweeping_on_at_the_optimum_does_not_drift_away(loss):
    n, d, K = 200, 60, 30
    single = np.dtype(np.float32)
    X, y = text_like(n, d, K)
    rows = native(core, "Layout", single)(X.indptr.astype(np.int64), X.indices, X.data.astype(single), d, 0.0, 1)
    kernel = native(core, "Coupled", single)(rows, y.astype(np.int32), np.ones(n, single), K, loss)
    rng = np.random.default_rng(0)
    for _ in range(300):
        kernel.sweep(rng.permutation(n), 32, True, 0.0, 64, 1)
    primal, dual, _ = kernel.certificate(1)
    assert primal - dual < 1e-4 * primal
