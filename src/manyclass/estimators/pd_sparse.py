"""PD-Sparse: the max-margin loss with an elastic net, all labels together."""

import os
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from ..data import BlockStore
from ..engines import StoredRows
from ..problems import MaxMargin
from .linear_classifier import LinearClassifier
from .parameters import PARAMETERS


class PDSparse(LinearClassifier):
    __doc__ = f"""PD-Sparse: the largest margin violation of a row's labels, with sparse weights, trained exactly.

    Minimises `lam |W|_1 + tau/2 |W|^2 + sum_i C_i max(0, max_n max_p 1 + s_in - s_ip)` over all labels together: p
    are the labels of row i, n all others. The weights of the constant feature are not in `|W|_1`. Dual variables and
    weights are kept sparse, so that work and memory follow the labels that are hard to tell apart. With `lam=0` and
    `tau=1`, for rows with one label, it is `MulticlassSVC("cs")`, which is faster where weights are not sparse.

    Parameters
    ----------
    lam : float
        Factor of `|W|_1`: larger makes more weights exactly 0.
    tau : float
        Factor of `1/2 |W|^2`.
    {PARAMETERS.strip()}
    """

    loss = "max_margin"
    _losses: ClassVar[tuple[str, ...]] = ("max_margin",)
    _takes_sets: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "lam": [Interval(Real, 0, None, closed="left")],
        "tau": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        lam: float = 0.01,
        tau: float = 1.0,
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
        self.lam = lam
        self.tau = tau

    def _problem(self) -> MaxMargin:
        return MaxMargin(self.lam, self.tau, constant=self.fit_intercept)

    def _stored_rows(self, store: BlockStore, sample_weight: Any) -> StoredRows:
        raise ValueError("PDSparse does not train from disk; read the store with store.load(), or use one-vs-rest")
