"""Support vector machines: all-in-one, one-vs-rest and one-vs-one."""

from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, Options

from ..data import BlockStore
from ..engines import FitOptions
from ..problems import Problem, Reinforced
from .linear_classifier import LinearClassifier
from .parameters import PARAMETERS

# For C=inf: what is tried until no variable is at its bound.
UNCONSTRAINED = [10.0**e for e in range(1, 9)]


@dataclass(eq=False, kw_only=True, repr=False)
class MulticlassSVC(LinearClassifier):
    __doc__ = f"""All-in-one multi-class support vector machines, trained exactly.

    Minimises `1/2 |W|^2 + sum_i C_i loss_i`, with one weight vector per class and a loss on the margins between a
    row's own class and all others, or on the scores.

    Parameters
    ----------
    loss : "ww", "cs", "llw", "mmr", "rm", "adm", "atm" or "ats"
        On the margins between the own class and the others: "ww" (Weston-Watkins), the sum over the other classes
        of `max(0, 1 - (s_y - s_c))`, or "cs" (Crammer-Singer), their maximum. On the scores themselves, with
        weights that sum to zero over the classes: "llw" (Lee-Lin-Wahba), the sum over the other classes of
        `max(0, 1 + s_c)`; "adm", their maximum; "mmr" (maximum-margin regression), `max(0, 1 - s_y)`; "ats" and
        "atm", sum and maximum over all classes; "rm" (reinforced), see `gamma`.
        With `solver="leagues"`, "ww" is trained by matches of leagues of classes (see docs/leagues.md), and "llw" by
        the published algorithm, a class at a time for a fixed mean of the weights, which is slower by far and here
        to be compared with.
    gamma : float
        For "rm": `gamma max(0, K - 1 - s_y)` plus `1 - gamma` times the loss of "llw".
    leagues : int, optional
        For "ww" with `solver="leagues"`: how many leagues the classes are dealt to, at most one a class. None for a
        number that follows from that of the classes, with work for 16 threads at the most over all ranks; N leagues
        have work for N / 2. The optimum does not depend on it, the bits of the model do.
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
            As for all estimators. With `loss="llw"` and `C=inf`, no row may have a loss: C is raised until no dual
            variable is at its bound, where any larger C has the same optimum. `certificate_` is for this C, `C_`.

        Returns
        -------
        self
        """
        if not (isinstance(self.C, Real) and np.isposinf(self.C)):
            super().fit(X, y, sample_weight)
            self.C_ = self.C
            return self
        if isinstance(X, BlockStore):
            raise ValueError("C=inf is for rows in memory")
        if self.loss != "llw":
            raise ValueError(f'C=inf is for loss="llw" only, not {self.loss!r}')
        if sample_weight is not None or self.class_weight is not None:
            raise ValueError("weights of rows or classes mean nothing with C=inf, where no row may have a loss")
        given, kept = self.C, self.warm_start
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
            self.set_params(C=given, warm_start=kept)
            del self._one_of_several
            if not kept:
                self._dual_state = None
        raise ValueError(f"some row has a loss whatever the weights, as far as C={C:g} can tell; give a finite C")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.leagues is not None and (self.loss, self.solver) != ("ww", "leagues"):
            raise ValueError(
                f"leagues={self.leagues} is for loss='ww' with solver='leagues', not for loss={self.loss!r} with "
                f"solver={self.solver!r}; leave it out"
            )

    def _options(self, seed: int) -> FitOptions:
        return replace(super()._options(seed), leagues=self.leagues)

    def _problem(self) -> Problem:
        return Reinforced(self.gamma) if self.loss == "rm" else super()._problem()


@dataclass(eq=False, kw_only=True, repr=False)
class BinarySVC(LinearClassifier):
    """What one-vs-rest and one-vs-one have in common."""

    loss: str = field(default="squared_hinge", kw_only=False)


class OneVsRestSVC(BinarySVC):
    __doc__ = f"""One binary support vector machine a class, all trained together and exactly.

    Minimises `1/2 |w_c|^2 + sum_i C_i loss(t_ic w_c.x_i)` for each class c, with `t_ic = 1` for its own rows and -1
    for all others. A row may be of any number of classes.

    Parameters
    ----------
    loss : "hinge" or "squared_hinge"
        `max(0, 1 - m)` or its square. The square is trained by Newton's method on the primal with
        `solver="newton"`, and with "auto" where the dual is slow; the violation in the certificate is then the
        largest part of the gradient.
    {PARAMETERS.strip()}
    """

    _one_vs_rest: ClassVar[bool] = True


class OneVsOneSVC(BinarySVC):
    __doc__ = f"""One binary support vector machine for each pair of classes, trained without copying the rows.

    Minimises `1/2 |w_ab|^2 + sum_i C_i loss(t_i w_ab.x_i)` over the rows of the classes a and b, with `t_i = 1` for a
    and -1 for b. The class with most votes is predicted; of equal votes the one with the larger sum of margins.

    Parameters
    ----------
    loss : "hinge" or "squared_hinge"
        `max(0, 1 - m)` or its square.
    {PARAMETERS.strip()}
    """

    _pairs: ClassVar[bool] = True
