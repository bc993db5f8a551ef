"""What a fitted estimator does: labels, scores, probabilities, and weights as scikit-learn has them."""

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
from .two_classes import PAIRS, REST, TOGETHER, model_columns, one_column


def _knows_probabilities(estimator: "Predictor") -> bool:
    fitted = getattr(estimator, "model_", None)
    return estimator._probability is not None or (
        fitted is not None and fitted.settings.get("probability") is not None
    )


class Predictor:
    """The part of an estimator that needs `model_` and no loss."""

    model_: LinearModel
    classes_: np.ndarray
    n_features_in_: int
    n_jobs: int | None
    dtype: Any
    _sparse_coef: bool = False
    _indicator_dtype: np.dtype | None = None  # of y, if it was an array of zeros and ones
    _one_vs_rest: ClassVar[bool] = False  # classes do not know each other
    _probability: ClassVar[dict[str, Any] | None] = None  # from scores to probabilities, if the loss knows how

    def predict(self, X: Any, *, k: int | None = None, threshold: float = 0.0) -> np.ndarray | sp.csr_matrix:
        """Predict the class of each row; after training on sets of labels, the labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore
        k : int, optional
            After training on sets of labels: so many labels a row, those with the largest scores.
        threshold : float
            After training on sets of labels, without `k`: all labels with scores above it.

        Returns
        -------
        ndarray of shape (n,), or csr_matrix of shape (n, K)
            Labels; or ones for the labels that are predicted, by their positions in `classes_`, as an array of zeros
            and ones if y was one.
        """
        check_is_fitted(self)
        if self.model_.multilabel:
            (found,) = self._for_rows(
                X, lambda rows: (predict_sets(self.model_, rows, k=k, threshold=threshold, n_jobs=self.n_jobs),)
            )
            return found if self._indicator_dtype is None else found.toarray().astype(self._indicator_dtype)
        if k is not None or threshold != 0:
            raise ValueError(
                "k and threshold are for estimators trained on sets of labels; predict_topk gives the k best classes"
            )
        return self.classes_[self._best_codes(X)]

    def _best_codes(self, X: Any) -> np.ndarray:
        (codes,) = self._for_rows(X, lambda rows: self.model_.topk(rows, 1, n_jobs=self.n_jobs)[:1])
        return codes[:, 0]

    def predict_topk(
        self, X: Any, k: int = 5, *, sparse: bool = False
    ) -> tuple[np.ndarray, np.ndarray] | sp.csr_matrix:
        """Find the k most likely classes of each row, without ever holding all scores.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore
        k : int
            How many; at most the number of classes.
        sparse : bool
            Give a matrix by classes.

        Returns
        -------
        labels : ndarray of shape (n, k)
            Best first.
        scores : ndarray of shape (n, k)
            Or with `sparse` only one, a csr_matrix of shape (n, K) with the scores of the k best classes; scores of 0
            are stored, too.
        """
        if sparse:
            (found,) = self._for_rows(X, lambda rows: (topk_matrix(self.model_, rows, k, n_jobs=self.n_jobs),))
            return found
        codes, scores = self._for_rows(X, lambda rows: self.model_.topk(rows, k, n_jobs=self.n_jobs))
        return self.classes_[codes], scores

    def decision_function(self, X: Any) -> np.ndarray:
        """Score every row for every class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore

        Returns
        -------
        ndarray of shape (n, K), or (n,) for two classes
            With two classes and one label per row, as scikit-learn has it: positive where `classes_[1]` is predicted.
            One-vs-rest gives the score of that class, all others the difference of the two scores; one-vs-one the
            votes for that class, as `OneVsOneClassifier` does.
        """
        (scores,) = self._for_rows(X, lambda rows: (self.model_.scores(rows, n_jobs=self.n_jobs),))
        if not self._has_two_classes:
            return scores
        return scores[:, 1] if self.model_.pairs else one_column(scores, self._trained)[:, 0]

    @available_if(_knows_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class for every row.

        Of maximum entropy; of one-vs-rest logistic regression, where what each class gives on its own is scaled to a
        sum of 1, unless rows have sets of labels; and of an estimator that `CalibratedClassifier` has fitted.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore

        Returns
        -------
        ndarray of shape (n, K)
        """
        (found,) = self._for_rows(X, lambda rows: (self.model_.probabilities(rows, n_jobs=self.n_jobs),))
        return found

    @available_if(_knows_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, exact also where these are too small for a number.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore

        Returns
        -------
        ndarray of shape (n, K)
        """
        (found,) = self._for_rows(X, lambda rows: (self.model_.log_probabilities(rows, n_jobs=self.n_jobs),))
        return found

    @available_if(_knows_probabilities)
    def predict_topk_proba(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Find the k most likely classes of each row and their probabilities, without ever holding those of all.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or BlockStore
        k : int
            How many; at most the number of classes.

        Returns
        -------
        labels : ndarray of shape (n, k)
            Best first.
        probabilities : ndarray of shape (n, k)
        """
        codes, found = self._for_rows(X, lambda rows: self.model_.topk_probabilities(rows, k, n_jobs=self.n_jobs))
        return self.classes_[codes], found

    @property
    def coef_(self) -> np.ndarray | sp.csr_matrix:
        """Weights of shape (K, d), of two classes (1, d): an array, after `sparsify` a sparse matrix.

        The model itself (`model_.weights`, of shape (d, K)) is sparse where that is smaller; this property makes an
        array of it at each access, which cannot be written to. Assign other weights to change the model; its
        certificate stays that of the fit.
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
            raise ValueError(f"coef_ must have the shape {expected} as after fit, got {weights.shape}")
        weights = weights.T.astype(self.model_.intercept.dtype)
        if self._has_two_classes:
            weights = model_columns(weights, self._trained)
        self.model_.weights = sp.csr_matrix(weights) if sp.issparse(weights) else np.ascontiguousarray(weights)

    @property
    def intercept_(self) -> np.ndarray:
        """Constant of each class, of shape (K,), of two classes (1,); zeros without `fit_intercept`.

        Assign others to change the model.
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
            raise ValueError(f"intercept_ must have the shape {expected} as after fit, got {given.shape}")
        if self._has_two_classes:
            given = model_columns(given[None, :], self._trained)[0]
        self.model_.intercept = np.array(given)

    @property
    def _has_two_classes(self) -> bool:
        """And one label per row, which scikit-learn calls binary."""
        return len(self.classes_) == 2 and not self.model_.multilabel

    @property
    def _trained(self) -> str:
        return PAIRS if self.model_.pairs else REST if self._one_vs_rest else TOGETHER

    def sparsify(self) -> "Predictor":
        """Store only the non-zero weights, and give `coef_` as a sparse matrix.

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
        """Store all weights, and give `coef_` as an array.

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
            # scikit-learn records names and number of features; the values are checked once, here.
            X = validate_data(self, X, reset=reset, skip_check_array=True) if reset else X
            rows = check_matrix(X, used_as=used_as)
            if reset:
                self.n_features_in_ = rows.n_features
        else:
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
            rows = check_matrix(X, used_as=used_as)
        if not reset and rows.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {rows.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        if rows.n_rows == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
        return rows

    def _for_rows(self, X: Any, find: Callable[[Any], Sequence[Any]]) -> tuple[Any, ...]:
        """What `find` gives for the rows; those of a store are read block by block, and come in the order of ids."""
        check_is_fitted(self)
        if isinstance(X, BlockStore):
            if X.n_features > self.n_features_in_:
                raise ValueError(
                    f"{X.path} has {X.n_features} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            return by_blocks(X, self.model_, find)
        # A model that was trained on a store knows by which steps its rows came about.
        return tuple(find(self.model_.prepare(X) if self.model_.chain else self._check_rows(X, reset=False)))


def _as_array(weights: sp.csr_matrix) -> np.ndarray:
    try:
        return weights.toarray()
    except MemoryError as error:
        features, labels = weights.shape
        raise MemoryError(
            f"coef_ of {labels} labels and {features} features takes "
            f"{weights.dtype.itemsize * features * labels / 1e9:.0f} GB as an array; call sparsify() first, "
            "which makes it a sparse matrix, or use model_.weights"
        ) from error


def by_blocks(
    store: BlockStore,
    model: LinearModel,
    find: Callable[[RowMatrix], Sequence[Any]],
    keep: Callable[[sp.csr_matrix], sp.csr_matrix] | None = None,
) -> tuple[Any, ...]:
    """What `find` gives for the rows of all blocks, prepared for a model, in the order of their ids.

    Parameters
    ----------
    store : BlockStore
    model : LinearModel
    find : callable
    keep : callable, optional
        Leaves out features that the model does not know, of a store that has such.

    Raises
    ------
    ValueError
        If the rows of the store were prepared in another way than those that the model was trained on.
    """
    try:
        left = model.chain.after(store.chain)
    except ValueError as error:
        raise ValueError(f"{error}; convert the data in the same way as the training data") from error
    if store.n_features > model.n_features:
        left = model.chain  # rows of length 1 are shorter without some of their features
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
    return tuple(put_together(column)[order] for column in zip(*found, strict=True))


def put_together(parts: Sequence[Any]) -> Any:
    """Rows of arrays, or of sparse matrices, one below the other."""
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
