"""Logistic regression: estimators that predict probabilities."""

from dataclasses import dataclass
from typing import Any, ClassVar

from .linear_classifier import LinearClassifier
from .parameters import PARAMETERS


@dataclass(eq=False, kw_only=True, repr=False)
class LogisticClassifier(LinearClassifier):
    """Base class with a larger default C, because logistic losses never reach 0 (see docs/choosing.md)."""

    C: float = 8.0


class OneVsRestLogistic(LogisticClassifier):
    __doc__ = f"""One-vs-rest logistic regression: one binary classifier per class.

    Minimises `1/2 |w_c|^2 + sum_i C_i log(1 + exp(-t_ic w_c.x_i))` for each class c, with `t_ic = 1` for its own rows
    and -1 for all others. A row may belong to any number of classes. `solver="newton"` uses Newton's method on the
    primal, as does "auto" when the dual is slow; the violation in the certificate is then the largest component of
    the gradient.

    Parameters
    ----------
    {PARAMETERS.strip()}
    """

    loss = "logistic"
    _one_vs_rest: ClassVar[bool] = True
    _probability: ClassVar[dict[str, Any]] = {"method": "sigmoid", "slope": 1.0, "offset": 0.0}


class OneVsOneLogistic(LogisticClassifier):
    __doc__ = f"""One-vs-one logistic regression: one binary classifier per pair of classes, without copying rows.

    Minimises `1/2 |w_ab|^2 + sum_i C_i log(1 + exp(-t_i w_ab.x_i))` over the rows of the classes a and b, with
    `t_i = 1` for a and -1 for b. Predicts the class with the most votes; ties go to the class with the larger sum of
    margins.

    Parameters
    ----------
    {PARAMETERS.strip()}
    """

    loss = "logistic"
    _pairs: ClassVar[bool] = True


class MaxEnt(LogisticClassifier):
    __doc__ = f"""Maximum entropy classifier (multinomial logistic regression), trained by dual ascent.

    Minimises `1/2 |W|^2 + sum_i C_i (log sum_c exp(w_c.x_i) - w_y.x_i)`.

    Parameters
    ----------
    {PARAMETERS.strip()}
    """

    loss = "maxent"
    _probability: ClassVar[dict[str, Any]] = {"method": "softmax", "slope": 1.0}
