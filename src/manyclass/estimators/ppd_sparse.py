"""PPDSparse: sparse one-vs-rest for very large numbers of labels."""

import os
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engines import Result
from ..problems import Problem
from ..solvers.elastic_net_blocks import RESULT
from .label_batches import SHARDS, LabelBatches
from .parameters import PARAMETERS


@dataclass(eq=False, kw_only=True, repr=False)
class PPDSparse(LabelBatches):
    __doc__ = f"""PPDSparse: one sparse binary classifier per label, for 10^4 to 10^6 labels.

    Minimises `lam |w_c|_1 + tau/2 |w_c|^2 + sum_i C_i loss(t_ic w_c.x_i)` for each label c, with `t_ic = 1` for its
    own rows and -1 for all others, using the greedy active sets of Yen et al. (PPDSparse, KDD 2017). The intercept is
    part of the l2 term but not of the l1 term. The cost of a label depends on its own rows and the rows that resemble
    them, not on the total number of rows. Every label gets its own certificate over all rows and must reach `tol`.

    Parameters
    ----------
    loss : "squared_hinge" or "hinge"
        `1/2 max(0, 1 - m)^2` or `max(0, 1 - m)`.
    lam : float
        Factor of the l1 norm. Larger values make the model smaller.
    tau : float
        Factor of half the squared l2 norm.
    draws : int, optional
        Search for active rows with this many features, sampled by the magnitude of their weights (algorithm 3 of the
        paper), instead of with all features. The optimum is the same.
    {SHARDS}
    {PARAMETERS.strip()}
    label_certificates_ : structured ndarray of shape (K,)
        Per label: primal, dual, violation, rounds (searches, or passes over all rows) and support (number of rows
        with a positive dual variable). NaN for labels that this fit did not train.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelBatches._parameter_constraints,
        "lam": [Interval(Real, 0, None, closed="left")],
        "tau": [Interval(Real, 0, None, closed="neither")],
        "draws": [None, Interval(Integral, 1, None, closed="left")],
    }

    loss: str = field(default="squared_hinge", kw_only=False)
    lam: float = 0.01
    tau: float = 1.0
    draws: int | None = None
    shards: str | os.PathLike[str] | None = None

    def _problem(self) -> Problem:
        formulas: Any = type(super()._problem())
        return formulas(self.lam, self.tau, constant=bool(self.fit_intercept), draws=int(self.draws or 0))

    def _take_over(self, result: Result, *given: Any, **more: Any) -> None:
        super()._take_over(result, *given, **more)
        assert result.by_label is not None
        names = ("primal", "dual", "violation", "rounds", "support")
        found = np.empty(len(result.by_label), [(name, np.float64) for name in names])
        for name in names:
            found[name] = result.by_label[:, RESULT.index(name)]
        self.label_certificates_ = found
