"""Parameters shared by all estimators: their valid values and their documentation."""

import os
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from ..engines import DiskEngine
from ..peers import MPIEngine

# Parameters that do not affect the model and are not stored with it.
NOT_OF_THE_MODEL = ("engine", "verbose", "n_jobs", "checkpoint", "every", "resume", "shards", "memory")

CONSTRAINTS: dict[str, list[Any]] = {
    "C": [Interval(Real, 0, None, closed="neither")],
    "stop": [StrOptions({"gap", "kkt"})],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "time_limit": [None, Interval(Real, 0, None, closed="neither")],
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    "class_weight": [None, dict, StrOptions({"balanced"})],
    "warm_start": ["boolean"],
    "n_jobs": [None, Integral],
    "random_state": ["random_state"],
    "dtype": [StrOptions({"float32", "float64"}), type],
    "solver": [str],
    "feature_reduction": ["boolean"],
    "checkpoint": [None, str, os.PathLike],
    "every": [Interval(Real, 0, None, closed="left")],
    "resume": ["boolean"],
    "engine": [str, DiskEngine, MPIEngine],
    "verbose": ["verbose"],
}

PARAMETERS = """
    C : float
        Penalty on the loss of each row. Larger values fit the training rows more closely and regularise less. The
        scale is the same for all losses. Defaults to 1, or to 8 for the logistic losses, which do better with a
        larger C.
    stop : "gap" or "kkt"
        Stop when the relative duality gap ("gap") or the largest violation of the optimality conditions ("kkt") is at
        most `tol`.
    tol : float
        Tolerance of the stopping criterion.
    max_iter : int
        Maximum number of passes over the rows, not counting cheap ones over only the variables in use.
    time_limit : float, optional
        Maximum training time in seconds. A fit that runs out of passes or time, or is interrupted with Ctrl-C, keeps
        the best model found so far and issues a warning.
    fit_intercept : bool
        Whether to add a constant feature. Its weights are regularised like all others.
    intercept_scaling : float
        Value of the constant feature.
    class_weight : dict, "balanced" or None
        Factors of C per class. "balanced" makes them inversely proportional to the class sizes (the sums of the
        sample weights, if given); in cross-validation, the sizes are counted over the training rows of each fold. A
        dict maps labels to weights, and missing classes have weight 1. As in scikit-learn, keys that do not occur in
        y are ignored if every class in y has a key, and are an error otherwise.
    warm_start : bool
        Keep the dual variables, and start the next fit on the same rows from them.
    n_jobs : int, optional
        Number of threads; -1 uses all cores, divided among the "mpi" ranks on the same host. None means -1, except
        inside `joblib.parallel_config(n_jobs=...)`, where it means that number, and in a joblib or Dask worker, where
        it means the worker's share of the cores. The result is bit-for-bit the same for any number of threads.
    random_state : int, RandomState or None
        Seed for the order in which the rows are visited.
    dtype : "float32" or "float64"
        Type of the weights and dual variables. Certificates are always computed in float64.
    solver : str
        "dual" is coordinate ascent on the dual. "auto" starts with "dual" and switches to Newton's method when it is
        slow, for the smooth losses of one-vs-rest and one-vs-one. Some losses offer another solver, described above.
    feature_reduction : bool
        Give each class weights only for the features that occur in its own training rows. This makes the model
        smaller at some cost in accuracy. Available for "ww", "cs", maximum entropy and one-vs-rest.
    checkpoint : str or path-like, optional
        Folder for checkpoints, from which a later process can resume the fit. A checkpoint is written every `every`
        seconds, and when the fit is interrupted or runs out of passes or time. The model is bit-for-bit the same with
        and without checkpoints, whether or not the fit was stopped in between. (From disk, only the optimum is the
        same.)
    every : float
        Seconds between checkpoints.
    resume : bool
        Resume from the checkpoint in the folder, if there is one. It must come from a fit of the same rows and labels
        with the same parameters, except for `stop`, `tol`, `max_iter`, `time_limit` and `n_jobs`, which may differ.
    engine : "memory", "disk", "joblib", "mpi", DiskEngine or MPIEngine
        Where training runs:

        - "memory": threads of this process;
        - "disk": the same, reading from a `BlockStore` that need not fit in memory. Use `DiskEngine` to set the
          memory budget and other options;
        - "joblib": workers of the backend selected with `joblib.parallel_config`, for one-vs-rest and one-vs-one.
          `n_jobs` is then the number of workers, with None for the configured number;
        - "mpi": all processes started by mpirun, each of which calls `fit` with the same rows. `MPIEngine(comm)` uses
          the processes of a communicator.

        The result is bit-for-bit the same, except from disk, where rows are visited in a different order.
    verbose : int
        Show a progress bar if greater than 0.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The class labels.
    certificate_ : Certificate
        Primal and dual objective, relative gap, largest violation over all variables, exit reason and message.
    history_ : list of dict
        One entry per pass and per certificate, with the keys seconds, epochs, primal, dual, gap, violation, active
        and certified. `certified` is True if the figures are a certificate, and False if they are the solver's own
        estimate.
    times_ : dict
        Seconds spent in each phase.
    memory_ : dict
        Bytes used for the rows, weights and dual variables during training.
    copies_ : list of str
        The parts of X that had to be copied, with their sizes.
    n_iter_ : int array of shape (1,)
        Number of passes over the rows, counted like `max_iter`.
    kept_weights_ : int
        Number of weights the model may have, not counting intercepts: all of them or, with `feature_reduction`, those
        of the features that occur in rows of the class.
    model_ : LinearModel
        The trained model, with dense or sparse weights of shape (d, K). Save it with `manyclass.save_model`.
    coef_, intercept_ : arrays of shape (K, d) and (K,), or (1, d) and (1,) for two classes
        Weights and intercepts, as in scikit-learn. Assign to them to change the model.
"""
