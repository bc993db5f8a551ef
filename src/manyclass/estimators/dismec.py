"""DiSMEC: one-vs-rest in batches of labels that fit in memory, with small weights dropped."""

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
    __doc__ = f"""DiSMEC: one squared-hinge classifier per label, with small weights dropped.

    Trains `OneVsRestSVC("squared_hinge")` on one batch of labels at a time and drops the small weights of each batch,
    as in the distributed sparse machines of Babbar and Schölkopf (WSDM 2017). The certificate applies to the weights
    before dropping; `dropped_` is the share that was dropped.

    Parameters
    ----------
    threshold : float
        Drop weights smaller than this in absolute value. Intercepts are kept.
    memory : int or str
        Memory for the weights of one batch of labels before dropping, in bytes or as a string such as "1GB".
    {SHARDS}
    {PARAMETERS.strip()}
    dropped_ : float
        Share of the nonzero weights that were dropped, over the labels that this fit trained.
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
        return {cls.loss: replace(LOSSES[cls.loss], solvers=(), from_store=())}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        parse_size(self.memory)
        if self.checkpoint is not None or self.warm_start or self.engine == "joblib":
            raise ValueError(
                "DiSMEC does not support checkpoint, warm_start or engine='joblib', because it keeps no state of "
                "finished labels; use shards to resume a stopped fit, or use OneVsRestSVC"
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

    def _pruned(self, weights: Any) -> sp.csr_matrix:
        W = sp.csr_matrix(weights)
        end = W.indptr[-2] if self.fit_intercept else W.nnz
        small = np.abs(W.data[:end]) < self.threshold
        found = int(np.count_nonzero(W.data[:end]))
        W.data[:end][small] = 0
        W.eliminate_zeros()
        self._counted[0] += found
        self._counted[1] += int(W.indptr[-2]) if self.fit_intercept else W.nnz
        return W
