"""What the estimators have in common: checks, the call into the engine."""

import json
import logging
import os
import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from ..data import (
    BlockStore,
    RowMatrix,
    check_matrix,
    encode_known_sets,
    encode_label_sets,
    encode_labels,
    has_label_sets,
)
from ..data.label_sets import is_dense_indicator, keep_known
from ..engines import (
    Budget,
    CheckpointPlan,
    DiskEngine,
    DualStore,
    MPIEngine,
    Result,
    StoredRows,
    check_engine,
    disk_engine,
    peers_of,
    run,
    together,
)
from ..model import LinearModel
from ..model.linear import thread_count
from ..problems import PROBLEMS, Binary, Problem
from ..solvers import StopRule, TrainingSet, refuse_absurd_pairs
from .predictor import Predictor
from .provenance import Provenance

logger = logging.getLogger("manyclass")

# Parameters that a model does not depend on.
NOT_OF_THE_MODEL = ("engine", "verbose", "n_jobs", "checkpoint", "every", "resume", "shards", "memory")


PARAMETERS = """
    C : float
        Penalty of the loss of a row, on one scale for all losses: larger fits the training rows more closely.
    stop : "gap" or "kkt"
        Stop when the relative duality gap, or the largest violation of the optimality conditions, is at most `tol`.
    tol : float
        The tolerance of `stop`.
    max_iter : int
        Passes over the rows at the most.
    time_limit : float, optional
        Seconds at the most. A fit that runs out of passes or time, or is interrupted by Ctrl-C, keeps the best
        model so far and warns.
    fit_intercept : bool
        Add a constant feature; its weights are regularised like all others.
    intercept_scaling : float
        Value of the constant feature.
    class_weight : dict, "balanced" or None
        Factors of C by class; "balanced" makes them inversely proportional to the class sizes.
    warm_start : bool
        Keep the dual variables, and start the next fit on the same rows from them.
    n_jobs : int, optional
        Threads; None or -1 for all cores, which the ranks of "mpi" on one host share. The result is the same to the
        last bit for any number.
    random_state : int, RandomState or None
        Seed of the order in which rows are visited.
    dtype : "float32" or "float64"
        Type of weights and dual variables; certificates are always in float64.
    solver : str
        "dual": coordinate ascent on the dual, which is also what "auto" takes. Some losses have another; see above.
    feature_reduction : bool
        Give a class weights only for features that some of its own training rows have: a smaller model, at some
        cost in accuracy. For "ww", "cs", maximum entropy and one-vs-rest.
    checkpoint : str or path-like, optional
        Folder in which the fit leaves what it needs to go on after its process has ended: every `every` seconds,
        and when it is interrupted or out of passes or time. The model is the same to the last bit with and without,
        and whether or not the fit was stopped in between.
    every : float
        Seconds from one checkpoint to the next.
    resume : bool
        Go on from the checkpoint in the folder, if there is one; it must be of the same rows, labels and parameters,
        but `stop`, `tol`, `max_iter`, `time_limit` and `n_jobs` may differ.
    engine : "memory", "disk", "joblib", "mpi", DiskEngine or MPIEngine
        Who trains. "memory": the threads of this process. "disk": the same, from a store (`BlockStore`) that need not
        fit into memory; `DiskEngine` says how much there is, and more. "joblib", for one-vs-rest and one-vs-one: the
        workers of a joblib backend that `joblib.parallel_config` chooses; `n_jobs` is then their number, None for
        what is configured. "mpi": all processes that mpirun has started, each of which calls `fit` with the same
        rows; or those of a communicator, `MPIEngine(comm)`. The result is the same to the last bit, but from disk,
        where rows are visited in another order.
    verbose : int
        Above 0: a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    certificate_ : Certificate
        Primal and dual value, relative gap and largest violation over all variables; exit reason and message.
    history_ : list of dict
        A row a pass: seconds, epochs, primal, dual, gap, violation, active, certified.
    times_ : dict
        Seconds of each phase.
    memory_ : dict
        Bytes of data, weights and dual variables while training.
    copies_ : list of str
        What of X had to be copied, with sizes.
    n_iter_ : int
        Passes over the rows.
    kept_weights_ : int
        Weights that the model can have, the constants not counted: all, or with `feature_reduction` those of features
        that rows of the class have.
    model_ : LinearModel
        Weights of shape (d, K), dense or sparse; can be saved with `manyclass.save_model`.
    coef_, intercept_ : arrays of shape (K, d) and (K,)
        As scikit-learn has them.
"""


class LinearClassifier(Predictor, ClassifierMixin, BaseEstimator):
    """Base of the estimators: everything but the choice of losses."""

    loss: str
    leagues: int | None = None  # of MulticlassSVC
    _one_of_several: bool = False  # fits for different C
    _provenance: Provenance = Provenance()  # of the rows of the next fit
    _dual_state: Any = None  # of the last fit with warm_start: classes, shape of C, arrays
    _losses: ClassVar[tuple[str, ...]]
    _solvers: ClassVar[dict[str, tuple[str, ...]]] = {}  # besides "auto" and "dual": those for some losses only
    _reducible: ClassVar[tuple[str, ...]] = ()  # losses that feature reduction is for
    _pairs: ClassVar[bool] = False  # one-vs-one
    _takes_sets: ClassVar[bool] = False  # of labels a row: one-vs-rest

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "stop": [StrOptions({"gap", "kkt"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "time_limit": [None, Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "warm_start": ["boolean"],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "dtype": [StrOptions({"float32", "float64"}), type],
        "solver": [str],
        "feature_reduction": ["boolean"],
        "checkpoint": [None, str, os.PathLike],
        "every": [Interval(Real, 0, None, closed="left")],
        "resume": ["boolean"],
        "engine": [str, DiskEngine, MPIEngine],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        stop: str = "gap",
        tol: float = 0.01,
        max_iter: int = 1000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        dtype: Any = "float32",
        solver: str = "auto",
        feature_reduction: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = 600.0,
        resume: bool = False,
        engine: str = "memory",
        verbose: int = 0,
    ):
        self.C = C
        self.stop = stop
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.dtype = dtype
        self.solver = solver
        self.feature_reduction = feature_reduction
        self.checkpoint = checkpoint
        self.every = every
        self.resume = resume
        self.engine = engine
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LinearClassifier":
        """Train.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore
            Rows. CSR in float32 or float64, with 32- or 64-bit indices, is read as it is; what has to be
            converted is listed in `copies_`. A store is trained from block by block, and has the labels.
        y : array-like of shape (n,), or for one-vs-rest sets of labels
            Labels of any hashable kind. Sets: a sparse matrix or an array of zeros and ones of shape (n, K), or a
            list of n lists, sets or arrays of labels; a set may be empty.
        sample_weight : array-like of shape (n,), optional
            Factors of C; a weight of 2 is the same as the row twice, a weight of 0 as no row. Of the rows of a
            store, by their ids.

        Returns
        -------
        self
        """
        with together(peers_of(self.engine)):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> "LinearClassifier":
        self._check_parameters()
        if isinstance(X, BlockStore):
            return self._fit_store(X, y, sample_weight)
        if isinstance(self.engine, DiskEngine) or self.engine == "disk":
            raise ValueError("engine='disk' trains from a BlockStore; convert the rows to one, or use another engine")
        rows = self._check_rows(X, reset=True)
        labels = self._check_labels(y, rows.n_rows)
        codes, Y = np.empty(0, np.int32), None
        if has_label_sets(labels):
            classes, Y = encode_label_sets(labels)
            classes = classes if self._provenance.classes is None else self._provenance.classes
        else:
            classes, codes = encode_labels(labels)
        data = self._training_set(rows, classes, codes, Y, sample_weight)
        problem = self._problem()
        if self._pairs:
            refuse_absurd_pairs(data, problem, dtype=np.dtype(self.dtype), threads=thread_count(self.n_jobs))
        seed = self._seed()
        result = self._run(problem, data, seed, self._warm_state(data, classes), classes)
        self._dual_state = (classes, data.C.shape, result.state) if self.warm_start else None
        self.copies_ = list(rows.copies)
        self._take_over(result, classes, seed, multilabel=Y is not None)
        dense = Y is not None and is_dense_indicator(labels)
        self._indicator_dtype = np.asarray(labels).dtype if dense else None
        self.model_.label_counts = np.bincount(data.labels_by_row()[1], minlength=len(classes))
        self.model_.settings["n_rows"] = len(data.C)
        self.kept_weights_ = _count_kept(data, self.model_.weights.shape[1])
        return self

    def _fit_store(self, store: BlockStore, y: Any, sample_weight: Any) -> "LinearClassifier":
        if y is not None:
            raise ValueError("a BlockStore has the labels of its rows; call fit(store) without y")
        problem = self._problem()
        data = self._stored_rows(store, sample_weight)
        seed = self._seed()
        kept = self._dual_state if self.warm_start and isinstance(self._dual_state, DualStore) else None
        result = self._run(problem, data, seed, kept, store.classes)
        self._dual_state = result.state if self.warm_start else None
        self.n_features_in_ = store.n_features
        self.copies_ = []
        self._take_over(result, store.classes, seed, multilabel=store.manifest.multilabel)
        self._indicator_dtype = None
        self.model_.text = store.text
        self.model_.settings |= {name: value for name, value in store.manifest.reading.items() if name != "text"}
        self.model_.settings["n_rows"] = store.n_rows
        self.model_.label_counts = store.label_counts()
        self.kept_weights_ = store.n_features * self.model_.weights.shape[1]
        return self

    def _rule(self) -> StopRule:
        return StopRule(self.stop, self.tol)  # type: ignore[arg-type]

    def _budget(self) -> Budget:
        return Budget(self.max_iter, self.time_limit)

    def _run(
        self, problem: Problem, data: TrainingSet | StoredRows, seed: int, state: Any, classes: np.ndarray
    ) -> Result:
        folder = self._checkpoint_folder()
        return run(
            problem,
            data,
            self._rule(),
            self._budget(),
            dtype=np.dtype(self.dtype),
            seed=seed,
            threads=thread_count(self.n_jobs),
            state=state,
            keep_state=self.warm_start,
            verbose=bool(self.verbose),
            solver=self.solver,
            leagues=self.leagues,
            stop_with=getattr(self, "_stop_with", None),
            checkpoints=None if folder is None else CheckpointPlan(folder, self.every, self.resume),
            engine=self.engine,
            n_jobs=self.n_jobs,
        )

    def _take_over(self, result: Result, classes: np.ndarray, seed: int, *, multilabel: bool) -> None:
        model = self._make_model(result, classes, seed)
        self.classes_ = classes
        self.certificate_ = result.certificate
        self.history_ = result.history
        self.times_ = result.times
        self.memory_ = result.memory
        self.n_iter_ = result.n_iter
        self.model_ = model
        self.model_.settings["multilabel"] = multilabel
        if multilabel and self._probability:
            self.model_.settings["probability"]["alone"] = True
        self._sparse_coef = False

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the rows whose class is predicted; of rows with sets of labels, whose whole set is.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore
            A store has the labels.
        y : array-like of shape (n,), or sets of labels
            As for `fit`; the columns of a matrix are the `classes_` in their order. A row with a label that was not
            trained on counts as wrong.
        sample_weight : array-like of shape (n,), optional

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
        if not isinstance(X, BlockStore):
            return super().score(X, y, sample_weight)
        if X.manifest.multilabel:
            raise ValueError(f"{X.path} has rows with other than one label; the estimator knows one label a row")
        return float(np.average(self.predict(X) == X.labels(), weights=sample_weight))

    def fit_path(self, X: Any, y: Any = None, Cs: Any = (), sample_weight: Any = None) -> list["LinearClassifier"]:
        """Train for several penalties, each from where the one before has ended.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        Cs : iterable of float
            The penalties; they are taken in ascending order.

        Returns
        -------
        list of fitted estimators, one for each penalty, in ascending order
        """
        return list(self.path(X, y, Cs, sample_weight))

    def path(self, X: Any, y: Any = None, Cs: Any = (), sample_weight: Any = None) -> Iterator["LinearClassifier"]:
        """Do what `fit_path` does, giving each fitted estimator as soon as it is there."""
        last: LinearClassifier | None = None
        for C in sorted(Cs):
            model = clone(self).set_params(C=C, warm_start=True)
            model._one_of_several = True
            model._stop_with = getattr(self, "_stop_with", None)
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

    def _problem(self) -> Problem:
        return PROBLEMS[f"ovo_{self.loss}" if self._pairs else self.loss]

    def _check_parameters(self) -> None:
        if self.loss not in self._losses:
            names = ", ".join(repr(name) for name in self._losses)
            raise ValueError(f"loss must be one of {names} for {type(self).__name__}, got {self.loss!r}")
        self._validate_params()
        trained = self._solvers.get(self.solver, ())
        if self.solver not in ("auto", "dual") and self.loss not in trained:
            if trained:
                names = " or ".join(repr(name) for name in trained)
                raise ValueError(f"solver={self.solver!r} trains loss {names} only, not {self.loss!r}")
            names = ", ".join(repr(name) for name in ("auto", "dual", *self._solvers))
            raise ValueError(f"solver must be one of {names} for {type(self).__name__}, got {self.solver!r}")
        if self.feature_reduction and (self.loss not in self._reducible or self.solver == "newton"):
            raise ValueError(
                f"feature_reduction is not for {type(self).__name__} with loss={self.loss!r} and "
                f"solver={self.solver!r}; it is for the losses 'ww' and 'cs', maximum entropy, and one-vs-rest by "
                "the dual"
            )
        if self.resume and not self._goes_on():
            raise ValueError("resume=True needs the folder to go on from; name it with checkpoint=...")
        check_engine(self.engine, self._problem())
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype!r}")

    def _goes_on(self) -> bool:
        """Whether there is anything that a fit could go on from."""
        return self.checkpoint is not None

    def _check_labels(self, y: Any, n_rows: int) -> Any:
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None; {type(self).__name__} needs labels")
        labels = y
        if has_label_sets(y):
            if not self._takes_sets:
                raise ValueError(
                    f"y has sets of labels, but {type(self).__name__} wants one label a row; train them one-vs-rest, "
                    "with OneVsRestSVC or OneVsRestLogistic"
                )
        elif not isinstance(y, list | tuple) or (len(y) and isinstance(y[0], list | np.ndarray)):
            labels = column_or_1d(y, warn=True)
            with warnings.catch_warnings():
                # More classes than half the rows is what this library is for.
                warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
                check_classification_targets(labels)
        given = labels.shape[0] if sp.issparse(labels) else len(labels)
        if given != n_rows:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {n_rows} rows, y has {given} labels"
            )
        return labels

    def _training_set(
        self,
        rows: RowMatrix,
        classes: np.ndarray,
        codes: np.ndarray,
        Y: sp.csr_matrix | None,
        sample_weight: Any,
    ) -> TrainingSet:
        weight = np.full(rows.n_rows, float(self.C))
        if sample_weight is not None:
            matrix = rows.as_csr() if rows.is_sparse else rows.dense
            weight *= _check_sample_weight(sample_weight, matrix, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is not None:
            if Y is not None:
                raise ValueError(
                    "class_weight is for one label a row: a row with several has no weight by its class; give rows "
                    "their weights with sample_weight"
                )
            counted = sample_weight if self.class_weight == "balanced" else None
            by_class = compute_class_weight(
                _by_code(self.class_weight, classes),
                classes=np.arange(len(classes)),
                y=codes,
                sample_weight=counted,
            )
            weight *= by_class[codes]
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        if not (weight > 0).all():
            kept = np.flatnonzero(weight > 0)
            if kept.size == 0:
                raise ValueError("all sample weights are zero; give at least one row a positive weight")
            given: Any = rows.as_csr() if rows.is_sparse else rows.dense
            rows, weight = check_matrix(given[kept]), weight[kept]
            codes, Y = (codes[kept], None) if Y is None else (codes, Y[kept])
        return TrainingSet(rows, codes, weight, len(classes), constant, self.feature_reduction, Y)

    def _stored_rows(self, store: BlockStore, sample_weight: Any) -> StoredRows:
        disk_engine(self.engine)
        if self._pairs:
            raise ValueError("one-vs-one is not trained from disk; use one-vs-rest, or an all-in-one loss")
        if self.solver not in ("auto", "dual") or self.feature_reduction:
            raise ValueError("from disk there is solver='dual' without feature_reduction only")
        if store.n_rows == 0:
            raise ValueError(f"{store.path} has no rows left")
        binary = isinstance(self._problem(), Binary)
        if store.classes.size < 2 and not (binary and store.manifest.multilabel):
            raise ValueError(f"{store.path} has rows of one class only; a classifier needs two at least")
        if store.manifest.multilabel and not binary:
            raise ValueError(
                f"{store.path} has rows with other than one label; train them with a one-vs-rest loss, "
                f"{self.loss!r} wants one label a row"
            )
        by_class = None
        if self.class_weight is not None:
            weights = _by_code(self.class_weight, store.classes)
            if store.manifest.multilabel or isinstance(weights, str):
                raise ValueError("class_weight must be a dict for rows of a store, and their labels one a row")
            by_class = np.array([weights.get(code, 1.0) for code in range(store.classes.size)])
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight, float)
            if sample_weight.shape != (store.manifest.next_id,) or not (sample_weight >= 0).all():
                raise ValueError(
                    f"sample_weight must have {store.manifest.next_id} numbers of at least 0, one for each id that "
                    f"was ever given to a row of the store; got shape {sample_weight.shape}"
                )
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return StoredRows(store, float(self.C), by_class, sample_weight, constant)

    def _checkpoint_folder(self) -> Path | None:
        """Where this fit leaves its checkpoints; one of several for different C has a folder of its own."""
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
            logger.info("warm_start: other rows or classes than in the last fit; starting from nothing")
            return None
        return state

    def _make_model(self, result: Result, classes: np.ndarray, seed: int) -> LinearModel:
        weights: Any = result.weights
        dtype = np.dtype(self.dtype)
        intercept = np.zeros(weights.shape[1], dtype)
        if self.fit_intercept:
            weights, last = _split_last_row(weights)
            intercept[:] = last * self.intercept_scaling
        if not self._pairs:  # a pair without weights has no vote
            intercept[result.untrained] = -np.inf
        certificate = certificate_values(result)
        return LinearModel(weights, intercept, classes, self._settings(seed), certificate, self._provenance.text)

    def _settings(self, seed: int) -> dict[str, Any]:
        """How the model is trained, in plain values."""
        dtype = np.dtype(self.dtype)
        settings = {name: value for name, value in self.get_params().items() if name not in NOT_OF_THE_MODEL}
        settings |= {"estimator": type(self).__name__, "loss": self.loss, "random_state": seed, "dtype": dtype.name}
        settings["pairs"] = self._pairs
        settings["probability"] = self._probability and dict(self._probability)
        settings["class_weight"] = _plain(self.class_weight)
        return settings | self._provenance.settings


def certificate_values(result: Result) -> dict[str, Any]:
    """Of the model file: plain values."""
    found = result.certificate
    certificate = {name: getattr(found, name) for name in ("primal", "dual", "gap", "violation")}
    return certificate | {"exit_reason": found.exit_reason, "message": found.message, "epochs": result.n_iter}


def _count_kept(data: TrainingSet, columns: int) -> int:
    if not data.reduced:
        return data.X.n_features * columns
    X = data.X.as_csr()
    # Stored zeros are not values.
    present = sp.csr_matrix((X.data != 0, X.indices, X.indptr), shape=X.shape).astype(np.int32)
    ptr, of_class = data.rows_by_class()
    own = sp.csr_matrix((np.ones(of_class.size, np.int32), of_class, ptr), shape=(data.n_classes, data.X.n_rows))
    return int(((own @ present) > 0).nnz)


def _split_last_row(weights: Any) -> tuple[Any, np.ndarray]:
    """All rows but the last, as a view, and the last one; scipy's own slicing would copy all of them."""
    if not sp.issparse(weights):
        return weights[:-1], weights[-1]
    end = weights.indptr[-2]
    last = np.zeros(weights.shape[1], weights.dtype)
    last[weights.indices[end:]] = weights.data[end:]
    rest = sp.csr_matrix((weights.shape[0] - 1, weights.shape[1]), dtype=weights.dtype)
    rest.data, rest.indices, rest.indptr = weights.data[:end], weights.indices[:end], weights.indptr[:-1]
    return rest, last


def _by_code(class_weight: dict[Any, float] | str, classes: np.ndarray) -> dict[int, float] | str:
    if isinstance(class_weight, str):
        return class_weight
    codes = {label: code for code, label in enumerate(classes.tolist())}
    unknown = [label for label in class_weight if label not in codes]
    if unknown:
        raise ValueError(f"class_weight names classes that y does not have: {unknown[:5]}")
    return {codes[label]: weight for label, weight in class_weight.items()}


def _plain(class_weight: Any) -> Any:
    if not isinstance(class_weight, dict):
        return class_weight
    return json.loads(json.dumps({str(label): float(weight) for label, weight in class_weight.items()}))
