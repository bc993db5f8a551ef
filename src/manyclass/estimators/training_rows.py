"""Build the training set of a fit: rows, labels and the penalty of each row, in memory or in a store."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from ..data import BlockStore, RowMatrix, check_matrix, has_label_sets
from ..data.labels import as_labels, reject_missing
from ..engines import StopAll, StoredRows, disk_engine
from ..problems import LOSSES, Loss, Problem
from ..solvers import TrainingSet
from .class_weights import weights_by_class

# Fractional labels count as classes if at least this share of the rows share their label with another row.
SHARED_LABELS = 0.5


def label_vector(y: Any) -> np.ndarray:
    """Return one label per row as a vector, from a list, an array, or a column of a table."""
    if isinstance(y, list | tuple | np.ma.MaskedArray):
        return as_labels(y)
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = column_or_1d(array, warn=True)
    if array.ndim != 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {array.shape} instead: pass one label per row"
        )
    return as_labels(array)


def _reject_measurements(labels: np.ndarray) -> None:
    """Reject what scikit-learn calls continuous targets, unless most labels occur more than once."""
    if labels.dtype.kind != "f":
        return
    fractions = np.flatnonzero(labels != np.trunc(labels))
    if fractions.size == 0:
        return
    counts = np.unique(labels, return_counts=True)[1]
    if np.count_nonzero(counts == 1) > (1 - SHARED_LABELS) * labels.size:
        row = fractions[0]
        raise ValueError(
            f"Unknown label type: continuous. y has the number {labels[row]} in row {row}, and most of its values "
            "occur only once, as in a regression target; if these are classes, convert them to strings"
        )


class TrainingRows:
    """The part of an estimator that checks labels and weights, and computes the penalties of the rows."""

    loss: str
    C: float
    fit_intercept: bool
    intercept_scaling: float
    class_weight: dict[Any, float] | str | None
    solver: str
    feature_reduction: bool
    engine: Any
    dtype: Any
    _pairs: ClassVar[bool] = False  # one-vs-one
    _stop_with: StopAll | None = None  # shared by fits that stop together
    _dual_state: Any = None  # of the last fit with warm_start: classes, shape of C, arrays

    def _problem(self) -> Problem:
        problem = self._offers()[self.loss].problem
        given = {name: getattr(self, name) for name in problem.parameter_names}
        return type(problem)(**given) if given else problem

    @classmethod
    def _offers(cls) -> dict[str, Loss]:
        """Return the losses that this estimator trains, keyed by the value of its `loss` parameter."""
        names = [base.__name__ for base in cls.__mro__]
        return {loss.parameter: loss for loss in LOSSES.values() if loss.estimator in names}

    @property
    def _takes_sets(self) -> bool:
        return any(loss.takes_sets for loss in self._offers().values())

    @property
    def _solver(self) -> str:
        """The solver by its current name."""
        return self.solver

    @property
    def _constant(self) -> float:
        """Value of the constant feature; 0 for none."""
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _check_labels(self, y: Any, n_rows: int) -> Any:
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None; {type(self).__name__} needs labels")
        labels = y
        if has_label_sets(y):
            if not self._takes_sets:
                raise ValueError(
                    f"y has sets of labels, but {type(self).__name__} needs one label per row; use a one-vs-rest "
                    "estimator such as OneVsRestSVC or OneVsRestLogistic"
                )
        else:
            labels = label_vector(y)
            reject_missing(labels)
            _reject_measurements(labels)
        given = labels.shape[0] if sp.issparse(labels) else len(labels)
        if given != n_rows:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {n_rows} rows, y has {given} labels"
            )
        return labels

    def _training_set(
        self, rows: RowMatrix, classes: np.ndarray, codes: np.ndarray, Y: sp.csr_matrix | None, sample_weight: Any
    ) -> TrainingSet:
        weight = np.full(rows.n_rows, float(self.C))
        if sample_weight is not None:
            matrix = rows.as_csr() if rows.is_sparse else rows.dense
            sample_weight = _check_sample_weight(sample_weight, matrix, dtype=np.float64, ensure_non_negative=True)
            with np.errstate(over="ignore"):
                weight *= sample_weight
        if self.class_weight is not None:
            if Y is not None:
                raise ValueError(
                    "class_weight needs one label per row, but y has sets of labels; use sample_weight to weight the "
                    "rows"
                )
            with np.errstate(over="ignore"):
                weight *= weights_by_class(self.class_weight, classes, codes, sample_weight)[codes]
        unfit = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if unfit.size:
            raise ValueError(
                f"row {unfit[0]} has a penalty (C times its sample and class weights) of {weight[unfit[0]]:g}; "
                "it must be a finite number of at least 0"
            )
        # Penalties that underflow in the type of the weights count as zero.
        takes_part = weight >= np.finfo(self.dtype).tiny
        if not takes_part.all():
            kept = np.flatnonzero(takes_part)
            if not weight.any():
                raise ValueError("all sample weights are zero; give at least one row a positive weight")
            if kept.size == 0:
                kept = np.flatnonzero(weight)  # the solver rejects these as too small
            given: Any = rows.as_csr() if rows.is_sparse else rows.dense
            rows, weight = check_matrix(given[kept]), weight[kept]
            codes, Y = (codes[kept], None) if Y is None else (codes, Y[kept])
        return TrainingSet(rows, codes, weight, len(classes), self._constant, self.feature_reduction, Y)

    def _stored_rows(self, store: BlockStore, sample_weight: Any) -> StoredRows:
        disk_engine(self.engine)
        loss = self._offers()[self.loss]
        if not loss.from_store:
            raise ValueError(
                f"{type(self).__name__} cannot train from a store; use OneVsRestSVC, or load the rows with "
                "store.load()"
            )
        if self.solver not in ("auto", "dual") or self.feature_reduction:
            raise ValueError("training from disk only supports solver='dual' without feature_reduction")
        if store.classes.size < 2 and not (loss.takes_sets and store.manifest.multilabel):
            raise ValueError(f"{store.path} has rows of only one class; a classifier needs at least two")
        if store.manifest.multilabel and not loss.takes_sets:
            raise ValueError(
                f"{store.path} has sets of labels; train it with a one-vs-rest loss, because "
                f"{self.loss!r} needs one label per row"
            )
        by_class = None
        if self.class_weight is not None:
            if store.manifest.multilabel or not isinstance(self.class_weight, dict):
                raise ValueError(
                    "class_weight for a store must be a dict, and every row of the store must have exactly one label"
                )
            by_class = weights_by_class(self.class_weight, store.classes)
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight, float)
            usable = np.isfinite(sample_weight) & (sample_weight >= 0)
            if sample_weight.shape != (store.manifest.next_id,) or not usable.all():
                raise ValueError(
                    f"sample_weight must have {store.manifest.next_id} finite numbers of at least 0, one for each "
                    f"row id ever assigned in the store; got shape {sample_weight.shape}"
                )
        return StoredRows(store, float(self.C), by_class, sample_weight, self._constant)
