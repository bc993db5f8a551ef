"""Logistic regression: estimators that know probabilities."""

from typing import Any, ClassVar

from .linear_classifier import LinearClassifier
from .parameters import PARAMETERS


class OneVsRestLogistic(LinearClassifier):
    __doc__ = f"""One binary logistic regression a class, all trained together and exactly.

    Minimises `1/2 |w_c|^2 + sum_i C_i log(1 + exp(-t_ic w_c.x_i))` for each class c, with `t_ic = 1` for its own rows
    and -1 for all others. A row may be of any number of classes. With `solver="newton"` by Newton's method on the
    primal, with a trust region; the violation in its certificate is then the largest part of the gradient.

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


class OneVsOneLogistic(LinearClassifier):
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


class MaxEnt(LinearClassifier):
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
