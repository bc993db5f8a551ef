"""Requests, replies and repetitions, with a stand-in for a solver: no other library, no timing."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.environments import UnavailableError
from benchmarks.measure import Run, Runner, alternate, busy_cores, shortfalls, times_faster
from benchmarks.problems import Problem, encode, file_of
from benchmarks.protocol import Reply, label_sets, load_rows, load_weights, store_problem, store_weights
from benchmarks.solvers import Solver

from benchmarks import measure

STAND_IN = """
import sys
import numpy as np
from benchmarks.protocol import Outcome, Task, serve

def prepare(request):
    return request.load_problem(), request.options

def fit(state):
    (X, y), options = state
    if options.get("fails"):
        raise RuntimeError("out of luck")
    if options.get("sleeps"):
        import time
        time.sleep(60)
    K = y.shape[1] if y.ndim == 2 else y.max() + 1
    return np.full((X.shape[1], K), options["weight"])

def outcome(W):
    return Outcome(weights=W, iterations=3, certificate={"gap": 0.5}, memory={"data": 8})

def best(W, X, k):
    return np.tile(np.arange(min(k, W.shape[1])), (X.shape[0], 1))

def save(W, folder):
    (folder / "part").mkdir()
    (folder / "part" / "weights").write_bytes(bytes(8 * W.size))

serve({"train": Task(prepare, fit, outcome, best, save)}, packages=("numpy", "no-such-package"))
"""


@pytest.fixture
def solver(tmp_path, monkeypatch):
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{measure.ROOT}")
    return Solver("stand-in", "stand_in", None, "hinge", {"weight": 0.0})


@pytest.fixture
def problem():
    X = sp.csr_matrix(np.eye(4, dtype=np.float32))
    return encode("tiny", X, np.array([5, 7, 9, 5]), X, np.array([5, 5, 6, 99]))


def test_a_fit_is_answered_and_evaluated_here(solver, problem, tmp_path):
    run = Runner(tmp_path).train(solver, problem, evaluate=True)
    assert run.primal == 12.0
    assert run.error == 0.5
    assert run.seconds > 0
    assert run.reply.peak_bytes > run.reply.baseline_bytes / 2 > 0
    assert (run.reply.iterations, run.reply.certificate, run.reply.memory) == (3, {"gap": 0.5}, {"data": 8})
    assert run.reply.versions["numpy"] == np.__version__
    assert run.reply.versions["no-such-package"] == "not installed"


def test_options_of_the_call_win(solver, problem, tmp_path):
    # Every score is 1: the own class costs nothing, the two others 2 each.
    run = Runner(tmp_path).train(solver, problem, evaluate=True, weight=1.0)
    assert run.primal == 0.5 * 12 + 4 * 4


def test_the_best_labels_of_test_rows_are_asked_for(solver, problem, tmp_path):
    # The stand-in always finds 0, 1 and 2. Two test rows are of class 0, and two of classes not seen in training.
    run = Runner(tmp_path).rank(solver, problem)
    assert run.precision == pytest.approx({1: 0.5, 3: 0.5 / 3, 5: 0.1})
    assert run.reply.figures["model_bytes"] == 8 * 4 * 3


def test_rows_may_have_sets_of_labels(solver, tmp_path):
    X = sp.csr_matrix(np.eye(2, dtype=np.float32))
    Y, Y_test = (sp.csr_matrix(np.array(Y)) for Y in ([[1, 0, 0, 0], [0, 0, 0, 0]], [[1, 1, 0, 1], [0, 0, 1, 0]]))
    run = Runner(tmp_path).rank(solver, Problem("sets", X, Y, X, Y_test))
    assert run.precision == pytest.approx({1: 1 / 2, 3: 3 / 6, 5: 4 / 10})
    assert run.reply.figures["model_bytes"] == 8 * 2 * 4


def test_labels_of_either_kind_become_sets():
    Y = label_sets(np.array([2, -1, 0]), 4)
    assert Y.toarray().tolist() == [[0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    assert (label_sets(Y, 5) != sp.hstack([Y, np.zeros((3, 1))])).nnz == 0
    assert label_sets(np.array([1, 0])).shape == (2, 2)


@pytest.mark.parametrize("y", [np.array([3, 1]), sp.csr_matrix(np.array([[0, 1, 1], [0, 0, 0]]))])
def test_rows_and_labels_survive_the_file(y, tmp_path):
    X = sp.csr_matrix(np.array([[0, 1.5], [2.5, 0]], dtype=np.float32))
    store_problem(tmp_path / "rows.npz", X, y)
    X_read, y_read = load_rows(str(tmp_path / "rows.npz"))
    assert X_read.dtype == np.float32 and (X_read != X).nnz == 0
    assert type(y_read) is type(y) and y_read.shape == y.shape
    assert (y_read != y).sum() == 0


def test_failure_and_timeout_say_why(solver, problem, tmp_path):
    with pytest.raises(UnavailableError, match="stand-in failed: RuntimeError: out of luck"):
        Runner(tmp_path).train(solver, problem, fails=True)
    with pytest.raises(UnavailableError, match="stand-in was stopped after 2 s"):
        Runner(tmp_path, timeout=2).train(solver, problem, sleeps=True)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_weights_survive_the_file(kind, tmp_path):
    W = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    store_weights(str(tmp_path / "w"), kind(W))
    loaded = load_weights(str(tmp_path / "w"))
    assert loaded.dtype == np.float32
    assert np.array_equal(loaded.toarray() if sp.issparse(loaded) else loaded, W)


def test_labels_become_codes_and_parts_get_one_width():
    X, X_test = sp.csr_matrix(np.ones((3, 2))), sp.csr_matrix(np.ones((4, 5)))
    problem = encode("p", X, np.array([30, 10, 30]), X_test, np.array([10, 20, 30, 40]))
    assert problem.y.tolist() == [1, 0, 1]
    assert problem.y_test.tolist() == [0, -1, 1, -1]
    assert problem.X.shape == (3, 5)


def test_missing_data_names_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv("MANYCLASS_DATA", raising=False)
    with pytest.raises(UnavailableError, match="set MANYCLASS_DATA to the folder that holds news20_bydate"):
        file_of("news20", "train")
    monkeypatch.setenv("MANYCLASS_DATA", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"wordnet_hyper/test\.svm\.xz"):
        file_of("wordnet", "test")
    with pytest.raises(UnavailableError, match=r"bibtex/train\.txt\.xz"):
        file_of("bibtex", "train")


def run_of(seconds):
    return Run(Reply(seconds, 0, 0, {}))


def test_turns_alternate_and_the_median_counts():
    order = []
    ours = iter([1.0, 5.0, 2.0])

    def first():
        order.append("ours")
        return run_of(next(ours))

    def second():
        order.append("peer")
        return run_of(8.0)

    our_runs, peer_runs = alternate(first, second, (3, 1))
    assert order == ["ours", "peer", "ours", "ours"]
    assert times_faster(our_runs, peer_runs) == 4.0


def test_a_fit_that_ended_early_says_so():
    def run(options):
        return Run(Reply(1.0, 0, 0, {}, certificate={"gap": 0.02, "violation": 0.3}), options=options)

    asked = [{"stop": "gap", "tol": 0.01}, {"stop": "gap", "tol": 0.02}, {"stop": "kkt", "tol": 0.1}, {}]
    runs = [run(options) for options in (*asked, *asked)]
    assert shortfalls(*runs) == "ended at gap 0.02, not 0.01; ended at violation 0.3, not 0.1"


def test_busy_processes_end_with_the_block():
    with busy_cores(2) as processes:
        assert [process.poll() for process in processes] == [None, None]
    assert all(process.poll() is not None for process in processes)
