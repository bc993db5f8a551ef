"""Rows that move together in float32 stay at the optimum, even if rounding is as large as the steps."""

import numpy as np
import pytest
from losses import text_like

from manyclass._native import core, native


def sweep(loss, X, y, K, times, wave=32, relaxation=1.0):
    """Return the kernel after some passes in float32."""
    n, d = X.shape
    single = np.dtype(np.float32)
    rows = native(core, "Layout", single)(X.indptr.astype(np.int64), X.indices, X.data.astype(single), d, 0.0, 1)
    kernel = native(core, "Coupled", single)(rows, y.astype(np.int32), np.ones(n, single), K, loss, 0.5, False)
    kernel.set_relaxation(relaxation)
    rng = np.random.default_rng(0)
    for _ in range(times):
        kernel.sweep(rng.permutation(n), wave, True, 0.0, 64, 1)
    return kernel


@pytest.mark.parametrize("relaxation", [1.0, 1.5])
@pytest.mark.parametrize("loss", ["ww", "cs"])
def test_further_passes_at_the_optimum_do_not_drift_away(loss, relaxation):
    X, y = text_like(200, 60, 30)
    primal, dual, *_ = sweep(loss, X, y, 30, 300, relaxation=relaxation).certificate(1)
    assert primal - dual < 1e-4 * primal


def test_rounding_does_not_look_like_room_in_the_sum():
    """Short rows have large sub-problems, and their variables add up to C only in exact arithmetic."""
    X, y = text_like(200, 60, 100)
    _, _, violation, _ = sweep("cs", 0.02 * X, y, 100, 20, wave=1).certificate(1)
    assert violation < 1e-2
