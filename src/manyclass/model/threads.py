"""Convert `n_jobs` to a number of threads."""

import multiprocessing
import os
import sys

from joblib.parallel import get_active_backend


def thread_count(n_jobs: int | None) -> int:
    """Convert `n_jobs` to a number of threads: -1 for all cores available to this process, -2 for all but one.

    None means all cores, with two exceptions. Inside `joblib.parallel_config(n_jobs=...)` it means that number, up to
    the number of cores. In a joblib or Dask worker it means one thread, or the number that joblib sets for libraries
    in a worker process (`OMP_NUM_THREADS`: the cores divided by the workers, or `inner_max_num_threads`).
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return min(cores, _by_context(cores))
    return _as_number(n_jobs, cores)


def _as_number(n_jobs: int, cores: int) -> int:
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one thread or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def _by_context(cores: int) -> int:
    backend, configured = get_active_backend()
    if configured is not None:
        return _as_number(configured, cores)
    if backend.nesting_level == 0 and not _is_dask_task():
        return cores
    given = os.environ.get("OMP_NUM_THREADS", "") if multiprocessing.parent_process() is not None else ""
    return max(1, int(given)) if given.isdecimal() else 1


def _is_dask_task() -> bool:
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True
