"""Prediction with a fitted estimator: labels, scores, probabilities, and weights in scikit-learn's form."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ..data import BlockStore, RowMatrix, check_matrix
from ..data.matrix import UnfitRowError
from ..model import LinearModel
from ..model.label_sets import predict_sets, topk_matrix
from .two_classes import COUPLED, PAIRS, REST, model_columns, one_column


def _knows_probabilities(estimator: "Predictor") -> bool:
    fitted = getattr(estimator, "model_", None)
    return estimator._probability is not None or (
        fitted is not None and fitted.settings.get("probability") is not None
    )


class Predictor:
    """The part of an estimator that only needs `model_`."""

    model_: LinearModel
    classes_: np.ndarray
    n_features_in_: int
    n_jobs: int | None
    dtype: Any
    _sparse_coef: bool = False
    _indicator_dtype: np.dtype | None = None  # of y, if it was an array of zeros and ones
    _one_vs_rest: ClassVar[bool] = False  # each class is trained independently of the others
    _probability: ClassVar[dict[str, Any] | None] = None  # rule from scores to probabilities, if the loss has one

    def predict(self, X: Any, *, k: int | None = None, threshold: float = 0.0) -> np.ndarray | sp.csr_matrix:
        """Predict the class of each row, or its set of labels after training on sets.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore
        k : int, optional
            Predict the k labels with the largest scores for each row. Only after training on sets of labels.
        threshold : float
            Predict all labels with scores above this, if `k` is not given. Only after training on sets of labels.

        Returns
        -------
        ndarray of shape (n,), or csr_matrix of shape (n, K)
            Predicted classes. After training on sets of labels, an indicator matrix with one column per class in
            `classes_`; it is a dense array if y was one.
        """
        check_is_fitted(self)
        if self.model_.multilabel:
            found = self._for_rows(
                X, lambda rows: predict_sets(self.model_, rows, k=k, threshold=threshold, n_jobs=self.n_jobs)
            )
            return found if self._indicator_dtype is None else found.toarray().astype(self._indicator_dtype)
        if k is not None or threshold != 0:
            raise ValueError(
                "k and threshold need an estimator trained on sets of labels; use predict_topk for the k best classes"
            )
        return self.classes_[self._best_codes(X)]

    def _best_codes(self, X: Any) -> np.ndarray:
        return self._for_rows(X, lambda rows: self.model_.topk(rows, 1, n_jobs=self.n_jobs)[0])[:, 0]

    def predict_topk(
        self, X: Any, k: int = 5, *, sparse: bool = False
    ) -> tuple[np.ndarray, np.ndarray] | sp.csr_matrix:
        """Find the k best classes of each row and their scores.

        Never holds the scores of all classes in memory.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore
        k : int
            Number of classes to return per row; at most K.
        sparse : bool
            Return a single sparse matrix of scores.

        Returns
        -------
        labels : ndarray of shape (n, k)
            Best first.
        scores : ndarray of shape (n, k)
            With `sparse=True`, the only return value is a csr_matrix of shape (n, K) with the scores of the k best
            classes, in which scores of 0 are stored explicitly.
        """
        if sparse:
            return self._for_rows(X, lambda rows: topk_matrix(self.model_, rows, k, n_jobs=self.n_jobs))
        codes, scores = self._for_rows(X, lambda rows: self.model_.topk(rows, k, n_jobs=self.n_jobs))
        return self.classes_[codes], scores

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each class for each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore

        Returns
        -------
        ndarray of shape (n, K), or (n,) for two classes
            With two classes and one label per row, there is one score per row, as in scikit-learn, which is positive
            where `classes_[1]` is predicted. It is the score of that class for one-vs-rest, the votes for it for
            one-vs-one (as in `OneVsOneClassifier`), and the difference of the two scores otherwise.
        """
        scores = self._for_rows(X, lambda rows: self.model_.scores(rows, n_jobs=self.n_jobs))
        if not self._has_two_classes:
            return scores
        return scores[:, 1] if self.model_.pairs else one_column(scores, self._trained)[:, 0]

    @available_if(_knows_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row.

        Available for maximum entropy, for one-vs-rest logistic regression, and for estimators fitted by
        `CalibratedClassifier`. One-vs-rest probabilities are scaled to sum to 1, except after training on sets of
        labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore

        Returns
        -------
        ndarray of shape (n, K)
        """
        return self._for_rows(X, lambda rows: self.model_.probabilities(rows, n_jobs=self.n_jobs))

    @available_if(_knows_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`, accurate even where the probabilities underflow."""
        return self._for_rows(X, lambda rows: self.model_.log_probabilities(rows, n_jobs=self.n_jobs))

    @available_if(_knows_probabilities)
    def predict_topk_proba(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Find the k most likely classes of each row and their probabilities.

        Never holds the probabilities of all classes in memory.

        Parameters
        ----------
        X, k : as for `predict_topk`

        Returns
        -------
        labels, probabilities : ndarrays of shape (n, k)
            Most likely first.
        """
        codes, found = self._for_rows(X, lambda rows: self.model_.topk_probabilities(rows, k, n_jobs=self.n_jobs))
        return self.classes_[codes], found

    @property
    def coef_(self) -> np.ndarray | sp.csr_matrix:
        """Weights of shape (K, d), or (1, d) for two classes: an array, or a sparse matrix after `sparsify`.

        The model itself (`model_.weights`, of shape (d, K)) is sparse where that is smaller. This property then
        builds a read-only array on each access. Assign new weights to change the model; its certificate remains that
        of the fit.
        """
        check_is_fitted(self)
        weights = self.model_.matrix
        if self._has_two_classes:
            weights = one_column(weights, self._trained)
        if self._sparse_coef:
            return sp.csr_matrix(weights.T)
        if sp.issparse(weights):
            weights = _as_array(weights)
        shown = weights.T.view()
        shown.flags.writeable = False
        return shown

    @coef_.setter
    def coef_(self, coef: Any) -> None:
        check_is_fitted(self)
        weights: Any = sp.csr_matrix(coef) if sp.issparse(coef) else np.asarray(coef)
        columns = 1 if self._has_two_classes else self.model_.weights.shape[1]
        expected = (columns, self.model_.n_features)
        if weights.shape != expected:
            raise ValueError(f"coef_ must keep the shape {expected} it has after fit, got {weights.shape}")
        weights = weights.T.astype(self.model_.intercept.dtype)
        if self._has_two_classes:
            weights = model_columns(weights, self._trained)
        self.model_.weights = sp.csr_matrix(weights) if sp.issparse(weights) else np.ascontiguousarray(weights)

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts of shape (K,), or (1,) for two classes; zeros without `fit_intercept`.

        Assign new values to change the model.
        """
        check_is_fitted(self)
        intercept = self.model_.intercept
        if self._has_two_classes:
            intercept = one_column(intercept[None, :], self._trained)[0]
        shown = intercept.view()
        shown.flags.writeable = False
        return shown

    @intercept_.setter
    def intercept_(self, intercept: Any) -> None:
        check_is_fitted(self)
        expected = self.intercept_.shape
        given = np.asarray(intercept, self.model_.intercept.dtype)
        if given.ndim == 0:
            given = np.full(expected, given)
        if given.shape != expected:
            raise ValueError(f"intercept_ must keep the shape {expected} it has after fit, got {given.shape}")
        if self._has_two_classes:
            given = model_columns(given[None, :], self._trained)[0]
        self.model_.intercept = np.array(given)

    @property
    def _has_two_classes(self) -> bool:
        """Whether there are two classes and one label per row, which scikit-learn calls binary."""
        return len(self.classes_) == 2 and not self.model_.multilabel

    @property
    def _trained(self) -> str:
        return PAIRS if self.model_.pairs else REST if self._one_vs_rest else COUPLED

    def sparsify(self) -> "Predictor":
        """Store only the nonzero weights, and make `coef_` a sparse matrix.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if not self.model_.is_sparse:
            self.model_.weights = sp.csr_matrix(self.model_.matrix)
        self._sparse_coef = True
        return self

    def densify(self) -> "Predictor":
        """Store all weights, and make `coef_` an array.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if self.model_.is_sparse:
            self.model_.weights = self.model_.matrix.toarray()
        self._sparse_coef = False
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _check_rows(self, X: Any, *, reset: bool) -> RowMatrix:
        used_as = np.dtype(self.dtype) if reset else self.model_.dtype
        if sp.issparse(X):
            # scikit-learn records the names and number of features; check_matrix validates the values.
            X = validate_data(self, X, reset=reset, skip_check_array=True) if reset else X
            rows = check_matrix(X, used_as=used_as)
            if reset:
                self.n_features_in_ = rows.n_features
        else:
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
            rows = check_matrix(X, used_as=used_as)
        if not reset and rows.n_features != self.n_features_in_:
            raise self._wrong_width("X", rows.n_features)
        if rows.n_rows == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
        return rows

    def _wrong_width(self, source: Any, found: int) -> ValueError:
        expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
        return ValueError(f"{source} has {found} features, but {expected}")

    def _for_rows(self, X: Any, find: Callable[[Any], Any]) -> Any:
        """Apply `find` to the rows; those of a store are read block by block, with results in order of row ids."""
        check_is_fitted(self)
        if isinstance(X, BlockStore):
            if X.n_features > self.n_features_in_:
                raise self._wrong_width(X.path, X.n_features)
            return by_blocks(X, self.model_, find)
        # A model trained on a store remembers the steps that prepared its rows.
        return find(self.model_.prepare(X) if self.model_.chain else self._check_rows(X, reset=False))


def _as_array(weights: sp.csr_matrix) -> np.ndarray:
    try:
        return weights.toarray()
    except MemoryError as error:
        features, labels = weights.shape
        raise MemoryError(
            f"coef_ of {labels} labels and {features} features needs "
            f"{weights.dtype.itemsize * features * labels / 1e9:.0f} GB as an array; call sparsify() first to get a "
            "sparse matrix, or use model_.weights"
        ) from error


def by_blocks(
    store: BlockStore,
    model: LinearModel,
    find: Callable[[RowMatrix], Any],
    keep: Callable[[sp.csr_matrix], sp.csr_matrix] | None = None,
) -> Any:
    """Apply `find` to the rows of all blocks, prepared for a model, and return results in the order of row ids.

    `find` returns an array or sparse matrix with a row for each, or a tuple of them. `keep` drops features that the
    model does not have, if the store has any. Raises ValueError if the rows of the store were prepared differently
    from the training rows of the model.
    """
    try:
        left = model.chain.after(store.chain)
    except ValueError as error:
        raise ValueError(f"{error}; convert the rows in the same way as the training rows") from error
    if store.n_features > model.n_features:
        left = model.chain  # dropping features shortens rows of length 1, so normalise again
    ids, found = [], []
    for number in range(store.n_blocks):
        block = store.read(number)
        ids.append(block.ids)
        rows = block.as_csr(max(store.n_features, model.n_features))
        try:
            prepared = check_matrix(left.transform(rows if keep is None else keep(rows)), used_as=model.dtype)
        except UnfitRowError as error:
            raise ValueError(f"block {number} of {store.path}: {error}") from error
        found.append(find(prepared))
    order = np.argsort(np.concatenate(ids))
    if isinstance(found[0], tuple):
        return tuple(put_together(column)[order] for column in zip(*found, strict=True))
    return put_together(found)[order]


def put_together(parts: Sequence[Any]) -> Any:
    """Stack arrays or sparse matrices vertically."""
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
