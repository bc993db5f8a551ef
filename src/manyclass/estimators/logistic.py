"""Logistic regression: estimators that know probabilities."""

from dataclasses import dataclass
from typing import Any, ClassVar

from .linear_classifier import LinearClassifier
from .parameters import PARAMETERS


@dataclass(eq=False, kw_only=True, repr=False)
class LogisticClassifier(LinearClassifier):
    """A base with another default of C: logistic losses never end at 0, and want a larger one (docs/choosing.md)."""

    C: float = 8.0


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
    _one_vs_rest: ClassVar[bool] = True
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
    _pairs: ClassVar[bool] = True


class MaxEnt(LogisticClassifier):
    __doc__ = f"""Maximum entropy (multinomial logistic regression), trained exactly by dual ascent.

    Minimises `1/2 |W|^2 + sum_i C_i (log sum_c exp(w_c.x_i) - w_y.x_i)`.

    Parameters
    ----------
    {PARAMETERS.strip()}
    """

    loss = "maxent"
    _probability: ClassVar[dict[str, Any]] = {"method": "softmax", "slope": 1.0}
