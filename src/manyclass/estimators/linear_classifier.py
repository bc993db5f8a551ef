"""Base class of the estimators: parameters, calls into the engine, and regularisation paths."""

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..data import BlockStore, encode_known, encode_known_sets, encode_label_sets, encode_labels, has_label_sets
from ..data.label_sets import is_dense_indicator, keep_known
from ..data.wide_rows import narrow_rows, used_features
from ..engines import CheckpointPlan, DiskEngine, DualStore, FitOptions, Result, StoredRows, check_engine, run
from ..model import LinearModel
from ..model.threads import thread_count
from ..model.weights import WideWeights
from ..peers import peers_of
from ..problems import Problem
from ..solvers import StopRule, TrainingSet, refuse_absurd_pairs
from .class_weights import weights_by_class
from .parameters import CONSTRAINTS, NOT_OF_THE_MODEL
from .predictor import Predictor
from .provenance import Provenance
from .trained_model import as_model, count_kept
from .training_rows import TrainingRows, label_vector

logger = logging.getLogger("manyclass")


@dataclass(eq=False, kw_only=True, repr=False)
class LinearClassifier(TrainingRows, Predictor, ClassifierMixin, BaseEstimator):
    """Base class of the estimators: everything except the choice of losses."""

    _one_of_several = False  # whether this fit is one of several with different C
    _provenance = Provenance()  # of the rows of the next fit
    _folders: ClassVar[str] = "checkpoint=..."  # what a fit can resume from, for error messages

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    C: float = 1.0
    stop: str = "gap"
    tol: float = 0.01
    max_iter: int = 1000
    time_limit: float | None = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    class_weight: dict[Any, float] | str | None = None
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = 0
    dtype: Any = "float32"
    solver: str = "auto"
    feature_reduction: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    every: float = 600.0
    resume: bool = False
    engine: Any = "memory"
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LinearClassifier":
        """Train the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore
            Training rows. CSR matrices in float32 or float64, with 32- or 64-bit indices, are used without copying;
            anything that has to be converted is listed in `copies_`. A store is read block by block, and provides the
            labels.
        y : array-like of shape (n,), or sets of labels for one-vs-rest
            Labels of any hashable type. Sets of labels are a sparse matrix or an array of zeros and ones of shape
            (n, K), or a list of n lists, sets or arrays of labels. Sets may be empty. Leave out for a store.
        sample_weight : array-like of shape (n,), optional
            Factors of C per row. A weight of 2 is equivalent to repeating the row, and a weight of 0 to removing it.
            For a store, weights are indexed by row id.

        Returns
        -------
        self
        """
        try:
            with peers_of(self.engine).all_or_none():
                return self._fit(X, y, sample_weight)
        finally:
            self.__dict__.pop("_provenance", None)  # applies to these rows only

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> "LinearClassifier":
        self._check_parameters()
        if isinstance(X, BlockStore):
            return self._fit_store(X, y, sample_weight)
        if isinstance(self.engine, DiskEngine) or self.engine == "disk":
            raise ValueError("engine='disk' needs a BlockStore; convert the rows to one, or use another engine")
        rows = self._check_rows(X, reset=True)
        labels = self._check_labels(y, rows.n_rows)
        codes, Y = np.empty(0, np.int32), None
        if has_label_sets(labels):
            classes, Y = encode_label_sets(labels)
            classes = classes if self._provenance.classes is None else self._provenance.classes
        else:
            classes, codes = encode_labels(labels)
        # Shards are written during training, with all features.
        used = used_features(rows) if getattr(self, "shards", None) is None else None
        trained = rows if used is None else narrow_rows(rows, used)
        data = self._training_set(trained, classes, codes, Y, sample_weight)
        problem = self._problem()
        if self._pairs:
            refuse_absurd_pairs(data, problem, dtype=np.dtype(self.dtype), threads=thread_count(self.n_jobs))
        seed = self._seed()
        result = self._run(problem, data, self._options(seed), self._warm_state(data, classes), classes)
        self._dual_state = (classes, data.C.shape, result.state) if self.warm_start else None
        self.copies_ = list(rows.copies)
        self._take_over(result, classes, seed, multilabel=Y is not None)
        if used is not None:
            self.model_.weights = WideWeights(used, self.model_.weights, rows.n_features)
        dense = Y is not None and is_dense_indicator(labels)
        self._indicator_dtype = np.asarray(labels).dtype if dense else None
        self.model_.label_counts = np.bincount(data.labels_by_row()[1], minlength=len(classes))
        self.model_.settings["n_rows"] = len(data.C)
        self.kept_weights_ = count_kept(data, self.model_.weights.shape[1])
        return self

    def _fit_store(self, store: BlockStore, y: Any, sample_weight: Any) -> "LinearClassifier":
        if y is not None:
            raise ValueError("a BlockStore already contains the labels; call fit(store) without y")
        problem = self._problem()
        data = self._stored_rows(store, sample_weight)
        seed = self._seed()
        kept = self._dual_state if self.warm_start and isinstance(self._dual_state, DualStore) else None
        result = self._run(problem, data, self._options(seed), kept, store.classes)
        self._dual_state = result.state if self.warm_start else None
        self.n_features_in_ = store.n_features
        self.copies_ = []
        self._take_over(result, store.classes, seed, multilabel=store.manifest.multilabel)
        self._indicator_dtype = None
        self.model_.chain = store.chain
        self.model_.settings |= store.reading_settings
        self.model_.settings["n_rows"] = store.n_rows
        self.model_.label_counts = store.label_counts()
        self.kept_weights_ = store.n_features * self.model_.weights.shape[1]
        return self

    def _options(self, seed: int) -> FitOptions:
        folder = self._checkpoint_folder()
        given = {one.name: getattr(self, one.name) for one in fields(FitOptions) if hasattr(self, one.name)}
        return FitOptions(
            **given
            | {
                "dtype": np.dtype(self.dtype),
                "solver": self._solver,
                "seed": seed,
                "threads": thread_count(self.n_jobs),
                "keep_state": self.warm_start,
                "rule": StopRule(self.stop, self.tol),  # type: ignore[arg-type]
                "checkpoints": None if folder is None else CheckpointPlan(folder, self.every, self.resume),
                "stop_with": self._stop_with,
                "verbose": bool(self.verbose),
            }
        )

    def _run(
        self, problem: Problem, data: TrainingSet | StoredRows, options: FitOptions, state: Any, classes: np.ndarray
    ) -> Result:
        return run(problem, data, options, state=state)

    def _take_over(self, result: Result, classes: np.ndarray, seed: int, *, multilabel: bool) -> None:
        model = self._make_model(result, classes, seed)
        self.classes_ = classes
        self.certificate_ = result.certificate
        self.history_ = result.history
        self.times_ = result.times
        self.memory_ = result.memory
        self.n_iter_ = np.array([result.n_iter], np.int32)
        self.model_ = model
        self.model_.settings["multilabel"] = multilabel
        if multilabel and self._probability:
            self.model_.settings["probability"]["alone"] = True
        self._sparse_coef = False

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows whose class, or whole set of labels, is predicted correctly.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore
            Rows. A store provides the labels.
        y : array-like of shape (n,), or sets of labels
            True labels, as for `fit`. The columns of a matrix correspond to `classes_`. A row with a label that was
            not seen in training counts as wrong.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the average.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if self.model_.multilabel:
            if isinstance(X, BlockStore):
                Y = X.label_matrix(np.arange(X.classes.size), X.classes.size)
                Y, unknown = keep_known(Y, X.classes, self.classes_, unknown="count")
            else:
                Y, unknown = encode_known_sets(y, self.classes_, unknown="count")
            found = sp.csr_matrix(self.predict(X))
            right = (np.diff((found != Y).tocsr().indptr) == 0) & (unknown == 0)
            return float(np.average(right, weights=sample_weight))
        if isinstance(X, BlockStore) and X.manifest.multilabel:
            raise ValueError(f"{X.path} has sets of labels, but the estimator was trained with one label per row")
        labels = X.labels() if isinstance(X, BlockStore) else label_vector(y)
        codes = self._best_codes(X)
        if len(labels) != len(codes):
            raise ValueError(f"X has {len(codes)} rows, but y has {len(labels)} labels")
        right = encode_known(labels, self.classes_, unknown="-1") == codes
        return float(np.average(right, weights=sample_weight))

    def fit_path(self, X: Any, y: Any = None, Cs: Any = (), sample_weight: Any = None) -> list["LinearClassifier"]:
        """Train for several values of C, each starting from the solution for the previous one.

        Parameters
        ----------
        X, y, sample_weight : as for `fit`
        Cs : iterable of float
            Values of C, trained in ascending order.

        Returns
        -------
        list of fitted estimators, one per value of C, in ascending order
        """
        return list(self.path(X, y, Cs, sample_weight))

    def path(self, X: Any, y: Any = None, Cs: Any = (), sample_weight: Any = None) -> Iterator["LinearClassifier"]:
        """Like `fit_path`, but yield each fitted estimator as soon as it is trained."""
        last: LinearClassifier | None = None
        for C in sorted(Cs):
            model = clone(self).set_params(C=C, warm_start=True)
            model._one_of_several = True
            model._stop_with = self._stop_with
            if last is not None:
                model._dual_state = last._dual_state
                if not isinstance(last._dual_state, DualStore):
                    classes, shape, variables = last._dual_state
                    factor = C / last.C if self._problem().grows_with_penalty else 1.0
                    model._dual_state = (classes, shape, variables | {"values": variables["values"] * factor})
            if last is not None and not self.warm_start:
                last._dual_state = None
            last = model.fit(X, y, sample_weight)
            last._one_of_several = False
            yield last.set_params(warm_start=self.warm_start)
        if last is not None and not self.warm_start:
            last._dual_state = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self._takes_sets
        return tags

    def _for_codes(self, classes: np.ndarray) -> "LinearClassifier":
        """Copy the estimator for a fold, which is fitted to codes instead of labels and writes no files.

        Class weights are translated using the labels of all rows, because a fold may lack some of them.
        """
        weights = self.class_weight
        if isinstance(weights, dict):
            weights = dict(enumerate(weights_by_class(weights, classes).tolist()))
        return clone(self).set_params(class_weight=weights, checkpoint=None, resume=False)

    def _check_parameters(self) -> None:
        offered = self._offers()
        if self.loss not in offered:
            names = ", ".join(map(repr, offered))
            raise ValueError(f"loss must be one of {names} for {type(self).__name__}, got {self.loss!r}")
        self._validate_params()
        trained = [name for name, loss in offered.items() if self._solver in ("auto", "dual", *loss.solvers)]
        if self.loss not in trained:
            if trained:
                names = " or ".join(map(repr, trained))
                raise ValueError(f"solver={self.solver!r} only trains loss {names}, not {self.loss!r}")
            solvers = dict.fromkeys(solver for loss in offered.values() for solver in loss.solvers)
            names = ", ".join(map(repr, ("auto", "dual", *solvers)))
            raise ValueError(f"solver must be one of {names} for {type(self).__name__}, got {self.solver!r}")
        if self.feature_reduction and (not offered[self.loss].reducible or self.solver == "newton"):
            raise ValueError(
                f"feature_reduction is not available for {type(self).__name__} with loss={self.loss!r} and "
                f"solver={self.solver!r}; use loss 'ww' or 'cs', maximum entropy, or one-vs-rest with the dual solver"
            )
        if self.resume and not self._goes_on():
            raise ValueError(f"resume=True needs a folder to resume from; pass {self._folders}")
        check_engine(self.engine, self._problem())
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype!r}")

    def _goes_on(self) -> bool:
        """Whether the fit has a folder to resume from."""
        return self.checkpoint is not None

    def _checkpoint_folder(self) -> Path | None:
        """Return the folder for checkpoints. With several values of C, each has its own."""
        if self.checkpoint is None:
            return None
        return Path(self.checkpoint, f"C={float(self.C)}" if self._one_of_several else "")

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _warm_state(self, data: TrainingSet, classes: np.ndarray) -> dict[str, np.ndarray] | None:
        stored = self._dual_state
        if not self.warm_start or stored is None or isinstance(stored, DualStore):
            return None
        known, shape, state = stored
        if shape != data.C.shape or not np.array_equal(known, classes):
            logger.info("warm_start: rows or classes differ from the last fit; starting from scratch")
            return None
        return state

    def _make_model(self, result: Result, classes: np.ndarray, seed: int) -> LinearModel:
        return as_model(
            result,
            classes,
            self._settings(seed),
            dtype=np.dtype(self.dtype),
            constant=self.intercept_scaling if self.fit_intercept else None,
            pairs=self._pairs,
            chain=self._provenance.chain,
        )

    def _settings(self, seed: int) -> dict[str, Any]:
        """Return the training settings stored in the model, as plain values."""
        dtype = np.dtype(self.dtype)
        settings = {name: value for name, value in self.get_params().items() if name not in NOT_OF_THE_MODEL}
        settings |= {"estimator": type(self).__name__, "loss": self.loss, "random_state": seed, "dtype": dtype.name}
        settings["pairs"] = self._pairs
        settings["probability"] = self._probability and dict(self._probability)
        settings["class_weight"] = _plain(self.class_weight)
        return settings | self._provenance.settings


def _plain(class_weight: Any) -> Any:
    if not isinstance(class_weight, dict):
        return class_weight
    return json.loads(json.dumps({str(label): float(weight) for label, weight in class_weight.items()}))
