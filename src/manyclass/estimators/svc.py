"""The two estimators: all-in-one and one-vs-rest support vector machines."""

from typing import Any, ClassVar

from .linear_classifier import LinearClassifier

_PARAMETERS = """
    C : float
        Penalty of the loss of a row, on one scale for all losses: larger fits the training rows more closely.
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
        Factors of C by class; "balanced" makes them inversely proportional to the class sizes.
    warm_start : bool
        Keep the dual variables, and start the next fit on the same rows from them.
    n_jobs : int, optional
        Threads; None or -1 for all cores. The result is the same to the last bit for any number.
    random_state : int, RandomState or None
        Seed of the order in which rows are visited.
    dtype : "float32" or "float64"
        Type of weights and dual variables; certificates are always in float64.
    verbose : int
        Above 0: a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    certificate_ : Certificate
        Primal and dual value, relative gap and largest violation over all variables; exit reason and message.
    history_ : list of dict
        A row a pass: seconds, epochs, primal, dual, gap, violation, active, certified.
    times_ : dict
        Seconds of each phase.
    memory_ : dict
        Bytes of data, weights and dual variables while training.
    copies_ : list of str
        What of X had to be copied, with sizes.
    n_iter_ : int
        Passes over the rows.
    model_ : LinearModel
        Weights of shape (d, K), dense or sparse; can be saved with `manyclass.save_model`.
    coef_, intercept_ : arrays of shape (K, d) and (K,)
        As scikit-learn has them.
"""


class MulticlassSVC(LinearClassifier):
    __doc__ = f"""All-in-one multi-class support vector machines, trained exactly.

    Minimises `1/2 |W|^2 + sum_i C_i loss_i`, with one weight vector a class and a loss on the margins between a
    row's own class and all others.

    Parameters
    ----------
    loss : "ww" or "cs"
        Weston-Watkins: the sum over the other classes of `max(0, 1 - (s_y - s_c))`. Crammer-Singer: their maximum.
    {_PARAMETERS.strip()}
    """

    _losses: ClassVar[tuple[str, ...]] = ("ww", "cs")

    def __init__(
        self,
        loss: str = "ww",
        *,
        C: float = 1.0,
        stop: str = "gap",
        tol: float = 0.01,
        max_iter: int = 1000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        dtype: Any = "float32",
        verbose: int = 0,
    ):
        super().__init__(
            loss,
            C=C,
            stop=stop,
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            warm_start=warm_start,
            n_jobs=n_jobs,
            random_state=random_state,
            dtype=dtype,
            verbose=verbose,
        )


class OneVsRestSVC(LinearClassifier):
    __doc__ = f"""One binary support vector machine a class, all trained together and exactly.

    Minimises `1/2 |w_c|^2 + sum_i C_i loss(t_ic w_c.x_i)` for each class c, with `t_ic = 1` for its own rows and -1
    for all others.

    Parameters
    ----------
    loss : "hinge" or "squared_hinge"
        `max(0, 1 - m)` or its square.
    {_PARAMETERS.strip()}
    """

    _losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge")

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        C: float = 1.0,
        stop: str = "gap",
        tol: float = 0.01,
        max_iter: int = 1000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        dtype: Any = "float32",
        verbose: int = 0,
    ):
        super().__init__(
            loss,
            C=C,
            stop=stop,
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            warm_start=warm_start,
            n_jobs=n_jobs,
            random_state=random_state,
            dtype=dtype,
            verbose=verbose,
        )
