"""What solvers take and promise: labels by row and by class, gaps, stopping rules."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass._native import core, native
from manyclass.data import check_matrix
from manyclass.solvers import Certificate, Progress, Solver, StopRule, TrainingSet


def training_set(codes, Y=None, K=4):
    n = 5
    return TrainingSet(check_matrix(np.ones((n, 1))), np.array(codes, np.int32), np.ones(n), K, Y=Y)


def test_labels_by_row_and_rows_by_class_are_the_same_for_codes_and_sets():
    codes = np.array([2, 0, 2, 3, 0])
    Y = sp.csr_matrix(np.eye(4, dtype=np.int8)[codes])
    for data in (training_set(codes), training_set([], Y)):
        ptr, labels = data.labels_by_row()
        assert ptr.tolist() == [0, 1, 2, 3, 4, 5] and labels.tolist() == codes.tolist()
        assert ptr.dtype == np.int64 and labels.dtype == np.int32
        ptr, rows = data.rows_by_class()
        assert ptr.tolist() == [0, 2, 2, 4, 5] and rows.tolist() == [1, 4, 0, 2, 3]
        assert ptr.dtype == np.int64 and rows.dtype == np.int32


def test_sets_of_labels_by_row_and_by_class():
    Y = sp.csr_matrix(np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 1, 1], [0, 0, 0, 1]]))
    ptr, labels = training_set([], Y).labels_by_row()
    assert ptr.tolist() == [0, 2, 2, 3, 6, 7] and labels.tolist() == [0, 2, 0, 0, 2, 3, 3]
    ptr, rows = training_set([], Y).rows_by_class()
    assert ptr.tolist() == [0, 3, 3, 5, 7] and rows.tolist() == [0, 2, 3, 0, 3, 3, 4]


def test_the_gap_is_relative_to_the_larger_value():
    assert Certificate(4.0, 3.0, 0.0).gap == 0.25
    assert Certificate(1.0, -4.0, 0.0).gap == 1.25
    assert Certificate(-1.0, -4.0, 0.0).gap == 0.75
    assert Certificate(0.0, 0.0, 0.0).gap == 0


def test_certificates_of_independent_problems_add_up():
    parts = [Certificate(1e16, 3.0, 0.25), Certificate(1.0, -1.0, 0.5), Certificate(-1e16, 0.5, 0.0)]
    for ordered in (parts, parts[::-1], parts[1:] + parts[:1]):
        assert Certificate.total(ordered) == Certificate(1.0, 2.5, 0.5)
    assert Certificate.total([]) == Certificate(0.0, 0.0, 0.0)


def test_what_may_be_left_out():
    data = training_set([0, 1])
    assert data.constant == 0 and data.reduced is False and data.Y is None
    certificate = Certificate(4.0, 3.0, 0.5)
    assert certificate.exit_reason == certificate.message == ""
    progress = Progress(0, 4.0, 3.0, 0.5, active=1.0, ready=False, pass_ended=False)
    assert progress.exhausted is None and Solver.by_classes is False


def test_a_rule_is_met_at_its_tolerance():
    certificate = Certificate(4.0, 3.0, 0.5)
    for stop, value in (("gap", 0.25), ("kkt", 0.5)):
        assert StopRule(stop, value).met(certificate)
        assert not StopRule(stop, value * 0.999).met(certificate)


def test_what_a_solver_need_not_offer():
    class Minimal(Solver):
        advance = certificate = weights = memory = state = None

    solver, certificate = Minimal(), Certificate(4.0, 3.0, 0.5)
    assert solver.meets(StopRule("gap", 0.25), certificate) and not solver.meets(StopRule("gap", 0.2), certificate)
    assert solver.untrained().size == 0 and solver.untrained().dtype == np.int64 and solver.by_label() is None
    with pytest.raises(NotImplementedError, match="Minimal takes its dual variables when it is created"):
        solver.load_state({})
    for call in (solver.checkpoint, lambda: solver.restore([])):
        with pytest.raises(NotImplementedError, match="Minimal keeps its dual variables in files of its own"):
            call()


def test_kernels_by_the_type_of_values():
    assert native(core, "Coupled", np.float32) is core.Coupled32
    assert native(core, "Coupled", np.dtype("float64")) is core.Coupled64
