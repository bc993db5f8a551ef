"""The parameters that all estimators have: what they may be, and what they mean."""

import os
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from ..engines import DiskEngine, MPIEngine

# Parameters that a model does not depend on.
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
        Penalty of the loss of a row, on one scale for all losses: larger fits the training rows more closely. By
        default 1, and 8 for logistic losses, which do better with more.
    stop : "gap" or "kkt"
        Stop when the relative duality gap, or the largest violation of the optimality conditions, is at most `tol`.
    tol : float
        The tolerance of `stop`.
    max_iter : int
        Passes over the rows at the most.
    time_limit : float, optional
        Seconds at the most. A fit that runs out of passes or time, or is interrupted by Ctrl-C, keeps the best
        model so far and warns.
    fit_intercept : bool
        Add a constant feature; its weights are regularised like all others.
    intercept_scaling : float
        Value of the constant feature.
    class_weight : dict, "balanced" or None
        Factors of C by class; "balanced" makes them inversely proportional to the class sizes (sums of sample
        weights, if given), which in cross-validation are those of the rows that a fold learns from. A dictionary has
        labels for keys. A class without a key has the weight 1; keys that are not in y are ignored if all classes of
        y have one, and otherwise refused, as in scikit-learn.
    warm_start : bool
        Keep the dual variables, and start the next fit on the same rows from them.
    n_jobs : int, optional
        Threads; -1 for all cores, which the ranks of "mpi" on one host share. None is the same as -1, but within
        `joblib.parallel_config(n_jobs=...)` it is that number, and in a worker of joblib or Dask that worker's share
        of the cores. The result is the same to the last bit for any number.
    random_state : int, RandomState or None
        Seed of the order in which rows are visited.
    dtype : "float32" or "float64"
        Type of weights and dual variables; certificates are always in float64.
    solver : str
        "dual": coordinate ascent on the dual. "auto" starts with it, and switches to Newton's method where a smooth
        loss of one-vs-rest or one-vs-one is slow. Some losses have another; see above.
    feature_reduction : bool
        Give a class weights only for features that some of its own training rows have: a smaller model, at some
        cost in accuracy. For "ww", "cs", maximum entropy and one-vs-rest.
    checkpoint : str or path-like, optional
        Folder in which the fit leaves what it needs to go on after its process has ended: every `every` seconds,
        and when it is interrupted or out of passes or time. The model is the same to the last bit with and without,
        and whether or not the fit was stopped in between.
    every : float
        Seconds from one checkpoint to the next.
    resume : bool
        Go on from the checkpoint in the folder, if there is one; it must be of the same rows, labels and parameters,
        but `stop`, `tol`, `max_iter`, `time_limit` and `n_jobs` may differ.
    engine : "memory", "disk", "joblib", "mpi", DiskEngine or MPIEngine
        Who trains. "memory": the threads of this process. "disk": the same, from a store (`BlockStore`) that need not
        fit into memory; `DiskEngine` says how much there is, and more. "joblib", for one-vs-rest and one-vs-one: the
        workers of a joblib backend that `joblib.parallel_config` chooses; `n_jobs` is then their number, None for
        what is configured. "mpi": all processes that mpirun has started, each of which calls `fit` with the same
        rows; or those of a communicator, `MPIEngine(comm)`. The result is the same to the last bit, but from disk,
        where rows are visited in another order.
    verbose : int
        Above 0: a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    certificate_ : Certificate
        Primal and dual value, relative gap and largest violation over all variables; exit reason and message.
    history_ : list of dict
        One entry per pass: seconds, epochs, primal, dual, gap, violation, active, and certified, which is True where
        these figures are a certificate and False where they are the solver's own estimate.
    times_ : dict
        Seconds of each phase.
    memory_ : dict
        Bytes of data, weights and dual variables while training.
    copies_ : list of str
        What of X had to be copied, with sizes.
    n_iter_ : int array of shape (1,)
        Passes over the rows.
    kept_weights_ : int
        Weights that the model can have, the constants not counted: all, or with `feature_reduction` those of features
        that rows of the class have.
    model_ : LinearModel
        Weights of shape (d, K), dense or sparse; can be saved with `manyclass.save_model`.
    coef_, intercept_ : arrays of shape (K, d) and (K,), of two classes (1, d) and (1,)
        As scikit-learn has them; other values may be assigned.
"""
