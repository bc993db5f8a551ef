"""Training through joblib: the same bits as in memory, data sent once, and a clean end."""

import os
import shutil
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace

import joblib
import numpy as np
import pytest
from losses import make, text_like
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from manyclass import MaxEnt, MulticlassSVC, OneVsRestSVC, save_model
from manyclass._native import core
from manyclass.data import check_matrix
from manyclass.data.label_sets import encode_label_sets
from manyclass.engines import CheckpointFolder, label_parallel
from manyclass.estimators import select_C
from manyclass.problems import PROBLEMS
from manyclass.solvers import L2Blocks, SolverOptions, StopRule, TrainingSet, l2_blocks

BINARY = ["hinge", "squared_hinge", "logistic", "ovo_hinge", "ovo_squared_hinge", "ovo_logistic"]
SPARSE = ["ppd_hinge", "ppd_squared_hinge"]


@pytest.fixture(scope="module")
def cluster():
    """Two processes with two threads each, on loopback."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, host="127.0.0.1", dashboard_address=None
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture(params=["threading", "loky", "dask"])
def backend(request):
    if request.param == "dask":
        request.getfixturevalue("cluster")
        with joblib.parallel_config(backend="dask"):
            yield request.param
    else:
        with joblib.parallel_config(backend=request.param, n_jobs=2):
            yield request.param


def bytes_of(model, folder):
    save_model(model.model_, folder / "model")
    return (folder / "model").read_bytes()


def some_more(y):
    """Return sets of labels: each row's own and another one, or none."""
    return [{label, label % 7} if row % 20 else set() for row, label in enumerate(y)]


@pytest.mark.parametrize(
    ("loss", "sets"),
    [*((loss, False) for loss in (*BINARY, *SPARSE)), *((loss, True) for loss in ("squared_hinge", *SPARSE))],
)
def test_the_same_bits_as_in_memory(loss, sets, backend, tmp_path):
    X, y = text_like(150, 60, 9 if loss.startswith("ovo_") else 70, seed=1)
    y = some_more(y) if sets else y
    plain = make(loss, warm_start=True).fit(X, y)
    sent = make(loss, warm_start=True, engine="joblib").fit(X, y)
    assert sent.certificate_ == plain.certificate_
    assert sent.n_iter_ == plain.n_iter_
    assert bytes_of(sent, tmp_path) == bytes_of(plain, tmp_path)
    for name, array in plain._dual_state[2].items():
        np.testing.assert_array_equal(sent._dual_state[2][name], array)
    active = [line["active"] for line in sent.history_]
    assert len(active) > 2 and active == sorted(active, reverse=True) and active[-1] == 0


@pytest.mark.parametrize(
    "parameters", [{"solver": "newton"}, {"feature_reduction": True}, {"dtype": "float64"}, {"stop": "kkt"}], ids=str
)
def test_the_same_bits_with_other_parameters(parameters, tmp_path):
    X, y = text_like(150, 60, 40, seed=1)
    plain = OneVsRestSVC(**parameters).fit(X.toarray(), y)
    with joblib.parallel_config(backend="threading", n_jobs=3):
        sent = OneVsRestSVC(engine="joblib", **parameters).fit(X.toarray(), y)
    assert bytes_of(sent, tmp_path) == bytes_of(plain, tmp_path)


def test_a_path_continues_from_its_dual_variables(backend, tmp_path):
    X, y = text_like(150, 60, 40, seed=1)
    plain = make("logistic").fit_path(X, y, [0.1, 1.0])
    sent = make("logistic", engine="joblib").fit_path(X, y, [0.1, 1.0])
    for one, other in zip(plain, sent, strict=True):
        assert bytes_of(one, tmp_path) == bytes_of(other, tmp_path)


def test_cross_validation(backend):
    X, y = text_like(150, 60, 20, seed=1)
    plain = select_C(OneVsRestSVC(), X, y, [0.1, 1.0], cv=2)
    sent = select_C(OneVsRestSVC(engine="joblib"), X, y, [0.1, 1.0], cv=2)
    np.testing.assert_array_equal(sent.accuracies, plain.accuracies)
    np.testing.assert_array_equal(sent.gaps, plain.gaps)


@pytest.mark.parametrize("loss", ["squared_hinge", "ppd_squared_hinge"])
def test_dask_sends_the_rows_once_per_worker(loss, cluster, monkeypatch, tmp_path):
    """Even if Dask's memory manager, which drops copies that no task needs, runs while workers train."""
    X, y = text_like(700, 60, 600, seed=1)
    y = some_more(y) if loss in SPARSE else y

    def count(folder):
        """In a worker, count what it receives and does, and hold all tasks until the file "go" exists."""
        import os
        import time

        from manyclass.engines import label_parallel

        label_parallel.seen = seen = []
        label_parallel.plain = plain, blocks_of = label_parallel._solver_of, label_parallel.blocks_of

        def laid_out(problem):
            seen.append("laid out")
            return blocks_of(problem)

        def receive(job, state):
            seen.append("received")
            job.__dict__.update(state)

        def solver_of(job, interrupt):
            seen.append("task")
            (folder / str(os.getpid())).touch()
            while not (folder / "go").exists():
                time.sleep(0.01)
            return plain(job, interrupt)

        label_parallel.Job.__setstate__ = receive
        label_parallel._solver_of, label_parallel.blocks_of = solver_of, laid_out

    def counted():
        from manyclass.engines import label_parallel

        label_parallel._solver_of, label_parallel.blocks_of = label_parallel.plain
        del label_parallel.Job.__setstate__
        return {what: label_parallel.seen.count(what) for what in ("received", "laid out", "task")}

    def look_around():
        """Run the memory manager once both workers have a task."""
        end = time.monotonic() + 30
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        cluster.amm.run_once()
        (tmp_path / "go").touch()

    pickled = []
    monkeypatch.setattr(
        label_parallel.Job, "__getstate__", lambda job: (pickled.append(1), job.__dict__)[1], raising=False
    )
    cluster.amm.stop()  # it could also run between two tasks of a worker, when none needs the rows
    cluster.run(count, tmp_path)
    looking = threading.Thread(target=look_around)
    looking.start()
    with joblib.parallel_config(backend="dask"):
        model = make(loss, engine="joblib").fit(X, y)
    looking.join()
    found = list(cluster.run(counted).values())
    cluster.amm.start()
    tasks = [counts.pop("task") for counts in found]
    assert len(model.history_) == sum(tasks) == 4 * label_parallel.TASKS_A_WORKER and min(tasks) > 0
    assert found == [{"received": 1, "laid out": 1}] * 2
    assert len(pickled) == 1


@pytest.mark.parametrize(("loss", "sets"), [("squared_hinge", False), ("ppd_squared_hinge", True)])
def test_processes_map_the_rows(loss, sets, monkeypatch):
    from joblib import _memmapping_reducer
    from joblib.externals.loky.backend import queues

    X, y = text_like(3000, 400, 200, seed=1)
    y = some_more(y) if sets else y
    written, sent = [], []
    dump, dumps = _memmapping_reducer.dump, queues.dumps
    monkeypatch.setattr(_memmapping_reducer, "dump", lambda *args: (written.append(args[0]), dump(*args))[1])

    def recorded(*args, **options):
        sent.append(dumps(*args, **options))
        return sent[-1]

    monkeypatch.setattr(queues, "dumps", recorded)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        model = make(loss, engine="joblib").fit(X, y)
    assert len(model.history_) == 13  # one task per block
    Y = encode_label_sets(y)[1] if sets else None
    labels = [Y.data, Y.indices, Y.indptr] if sets else [np.empty(3000, np.int32)]
    arrays = [X.data, X.indices, X.indptr, np.empty(3000), *labels]
    assert sorted(array.nbytes for array in written) == sorted(array.nbytes for array in arrays)
    assert sum(map(len, sent)) < X.data.nbytes / 2


def test_workers_keep_no_mapped_rows(tmp_path):
    """Nor do they copy other rows, or Dask's workers would hold them twice."""
    X, y = text_like(60, 30, 5)
    codes, C = y.astype(np.int32), np.ones(60)
    rows = check_matrix(X.astype(np.float32))
    names = ("indptr", "indices", "values")
    joblib.dump([getattr(rows, name) for name in names], tmp_path / "rows")
    mapped = replace(rows, **dict(zip(names, joblib.load(tmp_path / "rows", mmap_mode="r"), strict=True)))
    options = SolverOptions(solver="dual", max_iter=100)
    for X, same in ((rows, True), (mapped, False)):
        data = TrainingSet(X, codes, C, 5)
        job = label_parallel.Job(str(same), PROBLEMS["ppd_hinge"], data, options, StopRule("gap", 0.1))
        made = label_parallel._solver_of(job, core.Interrupt())
        for name, held in zip(names[1:], made._rows[1:3], strict=True):
            assert np.shares_memory(held, getattr(X, name)) == same
    label_parallel._last_made.clear()


@pytest.mark.parametrize("loss", ["squared_hinge", "ppd_squared_hinge"])
def test_a_task_out_of_time_returns_no_earlier_blocks(loss):
    X, y = text_like(150, 60, 70, seed=1)
    data = TrainingSet(check_matrix(X), y.astype(np.int32), np.ones(150), 70)
    options = SolverOptions(solver="dual", keep_state=True)
    rough = label_parallel.Job("a fit", PROBLEMS[loss], data, options, StopRule("gap", 0.1))
    solver = label_parallel._solver_of(rough, core.Interrupt())
    solver.choose_blocks(range(solver.blocks))
    while not solver.advance(rough.rule).ready:
        pass
    closer = replace(rough, rule=StopRule("gap", 1e-6))
    # One block may have been started before the first look at the clock.
    assert label_parallel.train_task(closer, solver.export_blocks(), 1e-9)["blocks"].size <= 1 < solver.blocks
    assert label_parallel.train_task(closer, solver.export_blocks(), None)["blocks"].size == solver.blocks
    label_parallel._last_made.clear()


@pytest.mark.parametrize("loss", ["squared_hinge", "ppd_squared_hinge"])
def test_threads_share_the_layout(loss, monkeypatch):
    X, y = text_like(150, 60, 70, seed=1)
    monkeypatch.setattr(label_parallel, "blocks_of", None)  # used by workers in other processes
    with joblib.parallel_config(backend="threading", n_jobs=2):
        make(loss, engine="joblib").fit(X, y)
    assert not label_parallel._fits_here


def test_errors_of_a_worker_are_raised_unchanged(backend, monkeypatch):
    X, y = text_like(60, 30, 40)
    export = label_parallel.SentBlocks.export_blocks
    monkeypatch.setattr(
        label_parallel.SentBlocks, "export_blocks", lambda s, part: export(s, part) | {"blocks": np.array([10**6])}
    )
    with pytest.raises(IndexError, match="no such block") as caught:
        OneVsRestSVC(engine="joblib").fit(X, y)
    if backend == "loky":
        assert "train_task" in str(caught.value.__cause__)
    monkeypatch.undo()
    assert OneVsRestSVC(engine="joblib").fit(X, y).certificate_.exit_reason == "converged"


def test_running_out_of_passes(backend, tmp_path):
    X, y = text_like(150, 60, 40, seed=1)
    models = []
    for engine in ("memory", "joblib"):
        with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .*raise max_iter"):
            models.append(OneVsRestSVC(tol=1e-8, max_iter=1, engine=engine).fit(X, y))
    assert models[0].certificate_ == models[1].certificate_
    assert models[1].certificate_.exit_reason == "max_iter"
    assert bytes_of(models[0], tmp_path) == bytes_of(models[1], tmp_path)


def hard_fit(n_classes, **parameters):
    """Fit random labels with a large C, which takes forever."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 30)), np.arange(2000) % n_classes
    return OneVsRestSVC("hinge", C=1e4, tol=1e-9, max_iter=10**6, engine="joblib", **parameters).fit(X, y)


def test_running_out_of_time(backend):
    with pytest.warns(ConvergenceWarning, match="time_limit=0.5"):
        model = hard_fit(200, time_limit=0.5)
    assert model.certificate_.exit_reason == "time_limit"
    assert np.isfinite(model.intercept_).any()  # unfinished blocks are kept as they are
    assert np.isfinite(model.certificate_.primal)


# ---- Checkpoints


class Crash(BaseException):
    """Ends a fit without a certificate or a last checkpoint."""


def crash_after(pieces, solver, estimator, X, y):
    """Fit with a checkpoint after each piece of work, and crash after this many pieces."""
    advance, left = solver.advance, [pieces]

    def counted(self, rule):
        left[0] -= 1
        if left[0] < 0:
            list(getattr(self, "_arriving", ()))  # otherwise joblib would end its workers
            raise Crash
        return advance(self, rule)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Crash):
        patch.setattr(solver, "advance", counted)
        patch.setattr(l2_blocks, "SECONDS_AT_ONCE", 0.0)
        estimator.set_params(every=0, resume=True).fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "ovo_logistic", "ppd_hinge"])
def test_stopped_by_crashes(loss, backend, tmp_path):
    """Workers and memory resume from each other's checkpoints with the same bits, and train only what is left."""
    X, y = text_like(150, 60, {"hinge": 150, "ovo_logistic": 15, "ppd_hinge": 60}[loss], seed=1)
    folder = tmp_path / "checkpoints"
    expected = bytes_of(make(loss).fit(X, y), tmp_path)
    here = make(loss, checkpoint=folder, n_jobs=1)
    elsewhere = make(loss, checkpoint=folder, engine="joblib")
    crash_after(1, L2Blocks, here, X, y)
    begun = len(CheckpointFolder(folder).read().parts[0]["blocks"])
    assert begun > 0
    crash_after(2, label_parallel.SentBlocks, elsewhere, X, y)
    assert len(CheckpointFolder(folder).read().parts[0]["blocks"]) == begun + 2
    shutil.copytree(folder, tmp_path / "copy")
    for estimator in (elsewhere, here.set_params(checkpoint=tmp_path / "copy")):
        assert bytes_of(estimator.fit(X, y), tmp_path) == expected


@pytest.mark.parametrize("before", [{"tol": 0.1}, {"max_iter": 1}], ids=str)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "ppd_hinge"])
@pytest.mark.filterwarnings("ignore:stopped")
def test_blocks_that_ended_too_early_are_trained_further(loss, before, backend, tmp_path):
    X, y = text_like(150, 60, 70, seed=1)
    folder, copy = tmp_path / "checkpoints", tmp_path / "copy"
    make(loss, checkpoint=folder, every=0, **({"tol": 1e-3} | before)).fit(X, y)
    shutil.copytree(folder, copy)
    here = make(loss, checkpoint=folder, resume=True, tol=1e-3).fit(X, y)
    elsewhere = make(loss, checkpoint=copy, resume=True, tol=1e-3, engine="joblib").fit(X, y)
    assert elsewhere.certificate_.exit_reason == "converged"
    assert bytes_of(elsewhere, tmp_path) == bytes_of(here, tmp_path)


@pytest.mark.parametrize("warm", [False, True])
def test_stopped_by_the_clock(warm, tmp_path):
    """Unfinished blocks of a worker start again, from the same dual variables."""
    X, y = text_like(400, 60, 150, seed=1)
    parameters = {"warm_start": warm, "tol": 1e-5, "dtype": "float64", "max_iter": 10_000}
    state = make("hinge", C=0.1, **parameters).fit(X, y)._dual_state if warm else None

    def fit(**more):
        one = make("hinge", **parameters, **more)
        one._dual_state = state
        return one.fit(X, y)

    expected = bytes_of(fit(), tmp_path)
    stopped = {"engine": "joblib", "checkpoint": tmp_path / "checkpoints", "resume": True}
    with joblib.parallel_config(backend="threading", n_jobs=2):
        with pytest.warns(ConvergenceWarning, match="time_limit"):
            fit(time_limit=0.005, **stopped)
        state = None  # the checkpoint has it
        with suppress(ConvergenceWarning):
            fit(time_limit=0.02, **stopped)
        assert bytes_of(fit(**stopped), tmp_path) == expected


def test_losses_that_train_classes_together_are_rejected():
    X, y = text_like(30, 20, 3)
    for estimator in (MulticlassSVC(engine="joblib"), MaxEnt(engine="joblib")):
        with pytest.raises(ValueError, match=r"one-vs-rest or one-vs-one loss\. '(ww|maxent)' trains all classes"):
            estimator.fit(X, y)
    with pytest.raises(ValueError, match=r"engine must be one of 'memory', 'disk', .* or an MPIEngine, got 'spark'"):
        OneVsRestSVC(engine="spark").fit(X, y)
    assert clone(OneVsRestSVC(engine="joblib")).get_params()["engine"] == "joblib"


# ---- Last, because it ends joblib's processes, and other tests would have to wait for new ones


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_ctrl_c_ends_the_fit(backend):
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    with joblib.parallel_config(backend=backend, n_jobs=2):
        timer.start()
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = hard_fit(40)
    timer.join()
    assert model.certificate_.exit_reason == "interrupted"
    assert np.isfinite(model.certificate_.primal)
    assert signal.getsignal(signal.SIGINT) is before
