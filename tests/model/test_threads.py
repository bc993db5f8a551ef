"""How many threads `n_jobs` stands for, alone and among the workers of joblib and Dask."""

import os

import joblib
import pytest
from losses import make, text_like
from sklearn.model_selection import GridSearchCV

from manyclass.estimators import linear_classifier
from manyclass.model.threads import thread_count

CORES = 8


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(CORES)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def in_workers(n_jobs, **options):
    tasks = (joblib.delayed(thread_count)(n_jobs) for _ in range(2))
    (found,) = set(joblib.Parallel(2, **options)(tasks))
    return found


def of_process(n_jobs, cores=CORES):
    """In a process of its own, which does not know of the patch above."""
    os.sched_getaffinity = lambda _: set(range(cores))
    return thread_count(n_jobs)


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 8), (-1, 8), (-2, 7), (-20, 1), (1, 1), (3, 3), (20, 20)])
def test_alone(n_jobs, threads):
    assert thread_count(n_jobs) == threads
    (found,) = joblib.Parallel(1)([joblib.delayed(thread_count)(n_jobs)])
    assert found == threads  # one job is no worker


def test_zero():
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        thread_count(0)


@pytest.mark.parametrize(("configured", "threads"), [(1, 1), (3, 3), (-1, 8), (-3, 6), (100, 8)])
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_as_configured(backend, configured, threads):
    with joblib.parallel_config(backend, n_jobs=configured):
        assert thread_count(None) == threads
        assert thread_count(5) == 5


def test_a_backend_alone_configures_nothing():
    with joblib.parallel_config("threading"):
        assert thread_count(None) == CORES


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_workers_have_one_thread_unless_asked_for_more(backend, monkeypatch):
    assert in_workers(None, backend=backend) == 1
    assert in_workers(3, backend=backend) == 3
    assert in_workers(-1, backend=backend) == CORES


def test_threads_of_this_process_do_not_share_what_libraries_have(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    assert thread_count(None) == CORES
    assert in_workers(None, backend="threading") == 1


def test_processes_have_what_joblib_gives_them():
    tasks = [joblib.delayed(of_process)(n_jobs) for n_jobs in (None, 3)]
    with joblib.parallel_config("loky", n_jobs=2, inner_max_num_threads=5):
        assert joblib.Parallel()(tasks) == [5, 3]


@pytest.mark.parametrize(("given", "threads"), [("4", 4), ("100", 8), ("0", 1), ("", 1), ("2,4", 1)])
def test_what_is_given_to_libraries_in_a_process(given, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "joblib")
    assert in_workers(None, backend="threading") == threads


def test_tasks_of_dask_have_one_thread():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert client.submit(thread_count, None, pure=False).result() == 1
        assert client.submit(thread_count, 3, pure=False).result() == 3
        with joblib.parallel_config("dask"):
            assert joblib.Parallel()([joblib.delayed(thread_count)(None) for _ in range(2)]) == [1, 1]
        assert thread_count(None) == CORES


def test_a_grid_search_does_not_take_all_cores_in_each_worker(monkeypatch):
    taken = []
    run = linear_classifier.run
    monkeypatch.setattr(
        linear_classifier,
        "run",
        lambda problem, data, options, **more: taken.append(options.threads) or run(problem, data, options, **more),
    )
    X, y = text_like(60, 20, 3)
    search = GridSearchCV(make("cs"), {"C": [0.1, 1.0]}, cv=2, n_jobs=2, refit=False)
    with joblib.parallel_config("threading"):
        search.fit(X, y)
    assert taken == [1] * 4
    make("cs").fit(X, y)
    assert taken[-1] == CORES
