"""Logistic regression: estimators that know probabilities."""

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from .linear_classifier import PARAMETERS, LinearClassifier


class OneVsRestLogistic(LinearClassifier):
    __doc__ = f"""One binary logistic regression a class, all trained together and exactly.

    Minimises `1/2 |w_c|^2 + sum_i C_i log(1 + exp(-t_ic w_c.x_i))` for each class c, with `t_ic = 1` for its own rows
    and -1 for all others.

    Parameters
    ----------
    {PARAMETERS.strip()}
    """

    loss: ClassVar[str] = "logistic"
    _losses: ClassVar[tuple[str, ...]] = ("logistic",)

    def __init__(
        self,
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

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class for every row: what each class gives on its own, scaled to a sum of 1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)

        Returns
        -------
        ndarray of shape (n, K)
        """
        rows = self._rows_to_predict(X)
        alone = expit(self.model_.scores(rows, n_jobs=self.n_jobs))
        sums = alone.sum(axis=1, keepdims=True)
        # Every class may have ruled a row out to the last bit.
        return np.divide(alone, sums, out=np.full_like(alone, 1 / alone.shape[1]), where=sums > 0)


class MaxEnt(LinearClassifier):
    __doc__ = f"""Maximum entropy (multinomial logistic regression), trained exactly by dual ascent.

    Minimises `1/2 |W|^2 + sum_i C_i (log sum_c exp(w_c.x_i) - w_y.x_i)`.

    Parameters
    ----------
    {PARAMETERS.strip()}
    """

    loss: ClassVar[str] = "maxent"
    _losses: ClassVar[tuple[str, ...]] = ("maxent",)

    def __init__(
        self,
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

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class for every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)

        Returns
        -------
        ndarray of shape (n, K)
        """
        rows = self._rows_to_predict(X)
        return softmax(self.model_.scores(rows, n_jobs=self.n_jobs), axis=1)
