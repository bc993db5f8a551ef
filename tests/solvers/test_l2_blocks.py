"""Blocks of binary problems trained separately and joined have the same bits as trained in one place."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from losses import text_like

from manyclass._native import core
from manyclass.data import check_matrix, encode_label_sets
from manyclass.problems import PROBLEMS
from manyclass.solvers import L2Blocks, SolverOptions, StopRule, TrainingSet, l2_blocks

RULE = StopRule("gap", 0.01)
# Loss, method, rows, features, classes. The models of the last three are too large to be dense.
FITS = {
    "hinge": ("hinge", "dual", 200, 60, 70),
    "squared_hinge": ("squared_hinge", "dual", 200, 60, 70),
    "logistic": ("logistic", "dual", 200, 60, 70),
    "newton": ("logistic", "newton", 200, 60, 70),
    "ovo_hinge": ("ovo_hinge", "dual", 200, 60, 13),
    "ovo_squared_hinge": ("ovo_squared_hinge", "dual", 200, 60, 13),
    "ovo_logistic": ("ovo_logistic", "dual", 200, 60, 13),
    "sets": ("squared_hinge", "dual", 200, 60, 70),
    "sparse_sets": ("hinge", "dual", 900, 20_000, 300),
    "sparse": ("hinge", "dual", 900, 20_000, 300),
    "sparse_squared": ("squared_hinge", "dual", 900, 20_000, 300),
}


def solver(fit, keep_state=False, dtype="float32"):
    loss, method, n, d, K = FITS[fit]
    X, y = text_like(n, d, K, seed=1, nnz=12)
    data = TrainingSet(check_matrix(X), y.astype(np.int32), np.linspace(0.5, 2, n), K, 1.0)
    if fit.endswith("sets"):
        _, Y = encode_label_sets(
            [{label, label % 5} if label % 3 else set() for label in y.tolist()] + [list(range(K))]
        )
        data = replace(data, codes=np.empty(0, np.int32), Y=Y[:n])
    return L2Blocks(
        PROBLEMS[loss],
        data,
        SolverOptions(np.dtype(dtype), solver=method, keep_state=keep_state),
        interrupt=core.Interrupt(),
    )


def train(blocks, chosen=None):
    if chosen is not None:
        blocks.choose_blocks(chosen)
    while not blocks.advance(RULE).ready:
        pass
    return blocks


def outcome(blocks):
    """Everything that a fit reads from a solver, as bytes."""
    certificate, state, untrained = blocks.certificate(), blocks.state(), blocks.untrained()
    weights = blocks.weights()
    if sp.issparse(weights):
        weights = (weights.indptr.tobytes(), weights.indices.tobytes(), weights.data.tobytes())
    else:
        weights = weights.tobytes()
    return certificate, {name: array.tobytes() for name, array in state.items()}, untrained.tolist(), weights


@pytest.mark.parametrize("keep_state", [False, True])
@pytest.mark.parametrize("fit", FITS)
def test_halves_make_the_whole(fit, keep_state):
    count = solver(fit).blocks
    assert count > 3
    halves = [range(count // 2), range(count // 2, count)]
    parts = [train(solver(fit, keep_state), half).export_blocks() for half in halves]
    whole = solver(fit, keep_state)
    for part in reversed(parts):
        whole.import_blocks(part)
    assert whole.advance(RULE).ready
    again = solver(fit, keep_state)
    again.import_blocks(whole.export_blocks())
    expected = outcome(train(solver(fit, keep_state)))
    assert outcome(whole) == expected
    assert outcome(again) == expected


@pytest.mark.parametrize("fit", ["hinge", "logistic", "ovo_hinge", "sparse"])
def test_one_worker_takes_one_task_after_the_other(fit):
    whole, worker = solver(fit, dtype="float64"), solver(fit, dtype="float64")
    for first in range(3):
        whole.import_blocks(train(worker, range(first, whole.blocks, 3)).export_blocks())
    assert outcome(whole) == outcome(train(solver(fit, dtype="float64")))


@pytest.mark.parametrize("fit", ["squared_hinge", "newton", "ovo_logistic"])
def test_training_continues_with_the_missing_blocks(fit, monkeypatch):
    monkeypatch.setattr(l2_blocks, "SECONDS_AT_ONCE", 0.0)
    early = solver(fit, keep_state=True)
    early.advance(RULE)
    assert len(early.untrained()) > 0
    late = solver(fit, keep_state=True)
    late.import_blocks(early.export_blocks())
    assert outcome(train(late)) == outcome(train(solver(fit, keep_state=True)))


@pytest.mark.parametrize("fit", ["hinge", "logistic", "ovo_squared_hinge"])
def test_blocks_never_started_count_in_the_certificate(fit):
    part = train(solver(fit), range(2))
    whole = solver(fit)
    whole.import_blocks(part.export_blocks())
    plain = solver(fit)
    plain._left = [0, 1]
    assert outcome(whole) == outcome(train(plain))
    # A part only certifies the blocks it was asked to train.
    assert part.certificate().gap < 0.1 < whole.certificate().gap


@pytest.mark.parametrize("fit", ["hinge", "logistic", "newton", "ovo_hinge"])
def test_dual_variables_to_start_from_are_exported_too(fit):
    state = train(solver(fit, keep_state=True)).state()
    expected, whole, worker = (solver(fit, keep_state=True) for _ in range(3))
    expected.load_state(state)
    whole.load_state(state)
    for chosen in ([0, 2], [1, *range(3, whole.blocks)]):
        start = whole.export_blocks(chosen)
        assert start["columns"].size == 0
        worker.choose_blocks([])
        worker.import_blocks(start)
        whole.import_blocks(train(worker, chosen).export_blocks())
    assert outcome(whole) == outcome(train(expected))


def test_zeros_are_not_exported():
    found = train(solver("sparse"), [3]).export_blocks()
    assert found["columns"].size == 0
    assert found["values"].all()
    assert len(found["rows"]) == len(found["lanes"]) == found["counts"].sum() < 900


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("blocks", lambda blocks: blocks + 77, "no such block"),
        ("counts", lambda counts: counts + 1, "different lengths"),
        ("rows", lambda rows: rows + 10**6, "row or a problem that does not exist"),
        ("lanes", lambda lanes: lanes[1:], "lanes: .* entries instead of"),
        ("values", lambda values: values[1:], "different lengths"),
        ("values", lambda values: values.astype(float), "blocks of float64"),
        ("columns", lambda columns: columns[:3], "other features"),
    ],
)
def test_arrays_of_another_problem_are_rejected(name, change, error):
    found = train(solver("hinge", keep_state=True), [0]).export_blocks()
    with pytest.raises((ValueError, IndexError), match=error):
        solver("hinge").import_blocks(found | {name: change(found[name])})


def dealt(blocks):
    """Return a function that gives one block after the other, and then none."""
    turn = iter(blocks)
    return lambda: next(turn, -1)


def test_threads_that_join_later_change_nothing():
    def run(*calls):
        kernel = solver("newton")._kernel
        found = []
        for blocks in calls:
            trained, results = kernel.train(dealt(blocks), True, 0.01, 100, 0, len(blocks), core.Interrupt())
            assert trained == blocks
            found += results
        return found

    assert run([0], [1, 2]) == run([0, 1, 2])


def test_errors_of_a_deal_are_raised():
    def fails():
        raise ZeroDivisionError("made up for the test")

    kernel = solver("hinge")._kernel
    for deal, error in ((fails, ZeroDivisionError), (dealt([0, 99]), IndexError), (lambda: "one", RuntimeError)):
        with pytest.raises(error):
            kernel.train(deal, True, 0.01, 100, 0, 2, core.Interrupt())
    assert kernel.train(dealt([0]), True, 0.01, 100, 0, 2, core.Interrupt())[0] == [0]


@pytest.mark.parametrize("fit", ["hinge", "logistic", "newton", "ovo_squared_hinge"])
def test_blocks_end_early_if_others_are_waiting(fit):
    """If there is not enough time for all blocks, none takes more than a few passes."""
    endless = StopRule("kkt", 1e-300)
    one = solver(fit)
    one._interrupt.stop_after(1000.0)
    one.behind = 1e9
    while not (seen := one.advance(endless)).ready:
        pass
    assert seen.exhausted == "time_limit"
    assert one.untrained().size == 0
    assert all(result.cut and 3 <= result.passes < 100 for result in one._results.values())
    assert not one.complete()
