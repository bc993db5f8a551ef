"""PD-Sparse: the max-margin loss with an elastic net, over all labels together."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from ..problems import MaxMargin
from .linear_classifier import LinearClassifier
from .parameters import PARAMETERS


@dataclass(eq=False, kw_only=True, repr=False)
class PDSparse(LinearClassifier):
    __doc__ = f"""PD-Sparse: a sparse max-margin classifier over all labels together.

    Minimises `lam |W|_1 + tau/2 |W|^2 + sum_i C_i max(0, max_n max_p 1 + s_in - s_ip)`, where p ranges over the
    labels of row i and n over all other labels. Intercepts are not part of `|W|_1`. Dual variables and weights are
    kept sparse, so time and memory depend on how many labels are hard to tell apart. With `lam=0`, `tau=1` and one
    label per row this is the same problem as `MulticlassSVC("cs")`, which is faster when the weights are not sparse.

    Parameters
    ----------
    lam : float
        Factor of `|W|_1`. Larger values make more weights exactly 0.
    tau : float
        Factor of `1/2 |W|^2`.
    {PARAMETERS.strip()}
    """

    loss = "max_margin"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "lam": [Interval(Real, 0, None, closed="left")],
        "tau": [Interval(Real, 0, None, closed="neither")],
    }

    lam: float = 0.01
    tau: float = 1.0

    def _problem(self) -> MaxMargin:
        return MaxMargin(self.lam, self.tau, constant=self.fit_intercept)
