"""A restored solver equals the one that wrote the checkpoint."""

from dataclasses import asdict

import numpy as np
import pytest
from losses import text_like

from manyclass.data import check_matrix
from manyclass.problems import PROBLEMS
from manyclass.solvers import CoupledRows, SolverOptions, StopRule, TrainingSet

RULE = StopRule("gap", 1e-6)


def make(loss):
    X, y = text_like(150, 60, 7)
    data = TrainingSet(check_matrix(X), y.astype(np.int32), np.full(len(y), 30.0), 7, 1.0)
    return CoupledRows(PROBLEMS[loss], data, SolverOptions())


def numbers(solver):
    return asdict(solver._status)


@pytest.mark.parametrize("loss", ["ww", "cs", "llw", "maxent"])
def test_everything_that_changed_is_restored(loss):
    solver, fresh = make(loss), make(loss)
    solver._status.wave = 8  # it may change during a fit
    for _ in range(40):
        said = solver.advance(RULE)
    solver.certificate()
    assert fresh.restore([solver.checkpoint()]) == said
    assert numbers(solver) == numbers(fresh)
    assert numbers(solver) != numbers(make(loss))
    for other in (solver, fresh):
        other.advance(RULE)
    one, two = solver.checkpoint(), fresh.checkpoint()
    assert one.keys() == two.keys()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)
