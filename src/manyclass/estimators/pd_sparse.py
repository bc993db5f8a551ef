"""PD-Sparse: the max-margin loss with an elastic net, all labels together."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from ..data import BlockStore
from ..engines import StoredRows
from ..problems import MaxMargin
from .linear_classifier import LinearClassifier
from .parameters import PARAMETERS


@dataclass(eq=False, kw_only=True, repr=False)
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "lam": [Interval(Real, 0, None, closed="left")],
        "tau": [Interval(Real, 0, None, closed="neither")],
    }

    lam: float = 0.01
    tau: float = 1.0

    def _problem(self) -> MaxMargin:
        return MaxMargin(self.lam, self.tau, constant=self.fit_intercept)

    def _stored_rows(self, store: BlockStore, sample_weight: Any) -> StoredRows:
        raise ValueError("PDSparse does not train from disk; read the store with store.load(), or use one-vs-rest")
