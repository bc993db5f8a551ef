"""Support vector machines: all classes together, one-vs-rest and one-vs-one."""

import warnings
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, Options

from ..data import BlockStore
from .linear_classifier import LinearClassifier
from .parameters import PARAMETERS

# Values tried for C=inf, until no variable is at its bound.
UNCONSTRAINED = [10.0**e for e in range(1, 9)]


@dataclass(eq=False, kw_only=True, repr=False)
class MulticlassSVC(LinearClassifier):
    __doc__ = f"""Multi-class support vector machine that trains all classes together.

    Minimises `1/2 |W|^2 + sum_i C_i loss_i`, with one weight vector per class.

    Parameters
    ----------
    loss : "ww", "cs", "llw", "mmr", "rm", "adm", "atm" or "ats"
        Losses on the margins between the row's own class y and the other classes c:

        - "ww" (Weston-Watkins): the sum of `max(0, 1 - (s_y - s_c))` over the other classes;
        - "cs" (Crammer-Singer): their maximum.

        Losses on the scores, with weights that sum to zero over the classes:

        - "llw" (Lee-Lin-Wahba): the sum of `max(0, 1 + s_c)` over the other classes;
        - "adm": their maximum;
        - "mmr" (maximum-margin regression): `max(0, 1 - s_y)`;
        - "ats" and "atm": the sum and the maximum over all classes;
        - "rm" (reinforced): see `gamma`.

        With `solver="leagues"`, "ww" is trained by matches between leagues of classes (see docs/leagues.md). With
        `solver="alternating"`, "llw" is trained by the published algorithm, which updates one class at a time for a
        fixed mean of the weights; it is much slower and is provided for comparison.
    gamma : float
        For "rm": the loss is `gamma max(0, K - 1 - s_y)` plus `1 - gamma` times the loss of "llw".
    leagues : int, optional
        Number of leagues for "ww" with `solver="leagues"`, at most one per class. N leagues keep N / 2 threads busy.
        None chooses by the number of classes, for at most 16 threads over all ranks. The optimum does not
        depend on the number of leagues, but the exact bits of the model do.
    {PARAMETERS.strip()}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "gamma": [Interval(Real, 0, 1, closed="both")],
        "leagues": [None, Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither"), Options(Real, {np.inf})],
    }

    loss: str = field(default="ww", kw_only=False)
    gamma: float = 0.5
    leagues: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MulticlassSVC":
        """Train.

        Parameters
        ----------
        X, y, sample_weight
            As for all estimators. `C=inf`, with `loss="llw"` only, requires a loss of 0 for every row: C is raised
            until no dual variable is at its bound, so that any larger C has the same optimum. This value is stored
            as `C_`, and `certificate_` refers to it.

        Returns
        -------
        self
        """
        if not (isinstance(self.C, Real) and np.isposinf(self.C)):
            super().fit(X, y, sample_weight)
            self.C_ = self.C
            return self
        if isinstance(X, BlockStore):
            raise ValueError("C=inf cannot be trained from a BlockStore; pass rows in memory, or give a finite C")
        if self.loss != "llw":
            raise ValueError(f'C=inf is only available for loss="llw", not for {self.loss!r}; give a finite C')
        if sample_weight is not None or self.class_weight is not None:
            raise ValueError("sample_weight and class_weight have no effect with C=inf; leave them out")
        C_given, warm_start = self.C, self.warm_start
        self._one_of_several = True
        try:
            for C in UNCONSTRAINED:
                self.set_params(C=C, warm_start=True)
                super().fit(X, y, sample_weight)
                values = self._dual_state[2]["values"]
                if self.certificate_.exit_reason != "converged" or values.max(initial=0) < 0.999 * C:
                    self.C_ = C
                    return self
        finally:
            self.set_params(C=C_given, warm_start=warm_start)
            del self._one_of_several
            if not warm_start:
                self._dual_state = None
        raise ValueError(f"C=inf has no solution: some rows still have a loss at C={C:g}; give a finite C")

    @property
    def _solver(self) -> str:
        return "alternating" if (self.loss, self.solver) == ("llw", "leagues") else self.solver

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._solver != self.solver:
            warnings.warn(
                "solver='leagues' is deprecated for loss 'llw' and will be removed in the next version; use "
                "solver='alternating'",
                DeprecationWarning,
                stacklevel=5,
            )
        if self.leagues is not None and (self.loss, self.solver) != ("ww", "leagues"):
            raise ValueError(
                f"leagues={self.leagues} requires loss='ww' and solver='leagues', got loss={self.loss!r} and "
                f"solver={self.solver!r}; leave leagues out"
            )


@dataclass(eq=False, kw_only=True, repr=False)
class BinarySVC(LinearClassifier):
    """Base class of one-vs-rest and one-vs-one machines."""

    loss: str = field(default="squared_hinge", kw_only=False)


class OneVsRestSVC(BinarySVC):
    __doc__ = f"""One-vs-rest support vector machine: one binary classifier per class.

    Minimises `1/2 |w_c|^2 + sum_i C_i loss(t_ic w_c.x_i)` for each class c, with `t_ic = 1` for its own rows and -1
    for all others. A row may belong to any number of classes.

    Parameters
    ----------
    loss : "hinge" or "squared_hinge"
        `max(0, 1 - m)` or its square. For the square, `solver="newton"` uses Newton's method on the primal, as does
        "auto" when the dual is slow; the violation in the certificate is then the largest component of the gradient.
    {PARAMETERS.strip()}
    """

    _one_vs_rest: ClassVar[bool] = True


class OneVsOneSVC(BinarySVC):
    __doc__ = f"""One-vs-one support vector machine: one binary classifier per pair of classes, without copying rows.

    Minimises `1/2 |w_ab|^2 + sum_i C_i loss(t_i w_ab.x_i)` over the rows of the classes a and b, with `t_i = 1` for a
    and -1 for b. Predicts the class with the most votes; ties go to the class with the larger sum of margins.

    Parameters
    ----------
    loss : "hinge" or "squared_hinge"
        `max(0, 1 - m)` or its square.
    {PARAMETERS.strip()}
    """

    _pairs: ClassVar[bool] = True
