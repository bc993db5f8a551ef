"""DiSMEC: one-vs-rest, small weights dropped, labels in batches that fit into memory."""

import os
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval

from ..data.sizes import parse_size
from ..engines import FitOptions, Result
from ..problems import LOSSES, Loss, Problem
from ..solvers import TrainingSet
from .label_batches import SHARDS, LabelBatches
from .parameters import PARAMETERS


@dataclass(eq=False, kw_only=True, repr=False)
class DiSMEC(LabelBatches):
    __doc__ = f"""One binary machine a label with the squared hinge, of which only weights of some size are kept.

    Trains `OneVsRestSVC("squared_hinge")` for some labels at a time, drops their small weights and goes on with the
    next: the distributed sparse machines of Babbar and Schölkopf (WSDM 2017). The certificate is that of the weights
    before they are dropped; `dropped_` says how many were.

    Parameters
    ----------
    threshold : float
        Weights that are smaller in size are dropped; intercepts stay.
    memory : int or str
        Bytes for the weights of the labels that are trained at a time, before they are dropped, such as "1GB".
    {SHARDS}
    {PARAMETERS.strip()}
    dropped_ : float
        Share of the weights other than 0 that were dropped, of the labels that this fit has trained.
    """

    loss = "squared_hinge"
    _folders: ClassVar[str] = "shards=..."

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelBatches._parameter_constraints,
        "threshold": [Interval(Real, 0, None, closed="left")],
        "memory": [Integral, str],
    }

    threshold: float = 0.01
    memory: int | str = "1GB"
    shards: str | os.PathLike[str] | None = None

    @classmethod
    def _offers(cls) -> dict[str, Loss]:
        return {cls.loss: replace(LOSSES[cls.loss], solvers=())}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        parse_size(self.memory)
        if self.checkpoint is not None or self.warm_start or self.engine == "joblib":
            raise ValueError(
                "DiSMEC lets go of labels that are done: it has no checkpoint, warm_start or engine='joblib'; use "
                "shards to go on after a stop, or OneVsRestSVC"
            )

    def _labels_at_once(self, data: TrainingSet) -> int:
        column = data.X.n_features * np.dtype(self.dtype).itemsize
        return min(super()._labels_at_once(data) or data.n_classes, max(1, parse_size(self.memory) // max(1, column)))

    def _run(self, problem: Problem, data: Any, options: FitOptions, state: Any, classes: np.ndarray) -> Result:
        self._counted = [0, 0]
        result = super()._run(problem, data, options, state, classes)
        found, kept = self._counted
        self.dropped_ = 1 - kept / max(1, found)
        return result

    def _kept(self, weights: Any) -> sp.csr_matrix:
        W = sp.csr_matrix(weights)
        end = W.indptr[-2] if self.fit_intercept else W.nnz
        small = np.abs(W.data[:end]) < self.threshold
        found = int(np.count_nonzero(W.data[:end]))
        W.data[:end][small] = 0
        W.eliminate_zeros()
        self._counted[0] += found
        self._counted[1] += int(W.indptr[-2]) if self.fit_intercept else W.nnz
        return W
