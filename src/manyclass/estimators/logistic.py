"""Logistic regression: estimators that know probabilities."""

import os
from typing import Any, ClassVar

from .linear_classifier import LinearClassifier
from .parameters import PARAMETERS


class LogisticClassifier(LinearClassifier):
    """A base with another default of C: logistic losses never end at 0, and want a larger one (docs/choosing.md)."""

    def __init__(
        self,
        *,
        C: float = 8.0,
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
        solver: str = "auto",
        feature_reduction: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = 600.0,
        resume: bool = False,
        engine: str = "memory",
        verbose: int = 0,
    ):
        super().__init__(
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
            solver=solver,
            feature_reduction=feature_reduction,
            checkpoint=checkpoint,
            every=every,
            resume=resume,
            engine=engine,
            verbose=verbose,
        )


class OneVsRestLogistic(LogisticClassifier):
    __doc__ = f"""One binary logistic regression per class, all trained together and exactly.

    Minimises `1/2 |w_c|^2 + sum_i C_i log(1 + exp(-t_ic w_c.x_i))` for each class c, with `t_ic = 1` for its own rows
    and -1 for all others. A row may be of any number of classes. Trained by Newton's method on the primal with
    `solver="newton"`, and with "auto" where the dual is slow; the violation in the certificate is then the largest
    part of the gradient.

    Parameters
    ----------
    {PARAMETERS.strip()}
    """

    loss = "logistic"
    _losses: ClassVar[tuple[str, ...]] = ("logistic",)
    _takes_sets: ClassVar[bool] = True
    _one_vs_rest: ClassVar[bool] = True
    _solvers: ClassVar[dict[str, tuple[str, ...]]] = {"newton": ("logistic",)}
    _reducible: ClassVar[tuple[str, ...]] = ("logistic",)
    _probability: ClassVar[dict[str, Any]] = {"method": "sigmoid", "slope": 1.0, "offset": 0.0}


class OneVsOneLogistic(LogisticClassifier):
    __doc__ = f"""One binary logistic regression for each pair of classes, trained without copying the rows.

    Minimises `1/2 |w_ab|^2 + sum_i C_i log(1 + exp(-t_i w_ab.x_i))` over the rows of the classes a and b, with
    `t_i = 1` for a and -1 for b. The class with most votes is predicted; of equal votes the one with the larger sum
    of margins.

    Parameters
    ----------
    {PARAMETERS.strip()}
    """

    loss = "logistic"
    _losses: ClassVar[tuple[str, ...]] = ("logistic",)
    _pairs: ClassVar[bool] = True


class MaxEnt(LogisticClassifier):
    __doc__ = f"""Maximum entropy (multinomial logistic regression), trained exactly by dual ascent.

    Minimises `1/2 |W|^2 + sum_i C_i (log sum_c exp(w_c.x_i) - w_y.x_i)`.

    Parameters
    ----------
    {PARAMETERS.strip()}
    """

    loss = "maxent"
    _losses: ClassVar[tuple[str, ...]] = ("maxent",)
    _reducible: ClassVar[tuple[str, ...]] = ("maxent",)
    _probability: ClassVar[dict[str, Any]] = {"method": "softmax", "slope": 1.0}
