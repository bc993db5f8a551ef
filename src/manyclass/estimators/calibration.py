"""Probabilities for classifiers that only know scores."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..data import check_matrix, encode_labels, has_label_sets
from ..model import LinearModel
from .linear_classifier import LinearClassifier

# Scores that are looked at: with more, a sample of the rows is enough to find two numbers.
SCORES_AT_MOST = 1 << 26


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier of this package with probabilities, fitted to the scores of held-out rows.

    The classifier is trained on all rows. One or two numbers turn its scores into probabilities; they are the most
    likely ones for the true classes of rows that were held out in cross-validation.

    Parameters
    ----------
    estimator : LinearClassifier
        Any estimator of this package.
    method : "sigmoid" or "temperature"
        Probabilities proportional to `1 / (1 + exp(-a s - b))`, or to `exp(a s)`, which the first comes close to for
        a very small b.
    cv : int, or what scikit-learn takes
        Number of folds (dealt at random, by the estimator's `random_state`; 5 for None), a splitter, or an iterable
        of pairs.

    Attributes
    ----------
    estimator_ : LinearClassifier
        Trained on all rows. Saved with `manyclass.save_model`, the model keeps the probabilities.
    classes_ : ndarray of shape (K,)
    rule_ : dict
        The numbers that were found.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "decision_function"])],
        "method": [StrOptions({"temperature", "sigmoid"})],
        "cv": ["cv_object"],
    }

    def __init__(self, estimator: LinearClassifier, *, method: str = "sigmoid", cv: Any = 5):
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "CalibratedClassifier":
        """Train on all rows, and in each fold without its held-out ones.

        Parameters
        ----------
        X, y, sample_weight
            As for the estimator.

        Returns
        -------
        self
        """
        self._validate_params()
        if has_label_sets(y):
            raise ValueError(
                "y has sets of labels, and probabilities are fitted to one label a row; OneVsRestLogistic has those "
                "of each label without"
            )
        self.estimator_ = clone(self.estimator).fit(X, y, sample_weight)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        codes = encode_labels(self.estimator_._check_labels(y, check_matrix(X).n_rows))[1]
        self.rule_ = fit_rule(self.estimator_, X, codes, self.method, cv=self.cv, weights=weights)
        self.estimator_.model_.settings["probability"] = self.rule_
        self.classes_ = self.estimator_.classes_
        self.n_features_in_ = self.estimator_.n_features_in_
        return self

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of a table that X was, as scikit-learn has them."""
        return self.estimator_.feature_names_in_

    @property
    def model_(self) -> LinearModel:
        """The model of the estimator, which knows the probabilities."""
        check_is_fitted(self)
        return self.estimator_.model_

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row, as the estimator does."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose class is predicted."""
        check_is_fitted(self)
        return self.estimator_.score(X, y, sample_weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """Score every row for every class, as the estimator does."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class for every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)

        Returns
        -------
        ndarray of shape (n, K)
        """
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of `predict_proba`."""
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(X)

    def predict_topk_proba(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Find the k most likely classes of each row and their probabilities, without ever holding those of all.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        k : int
            How many; at most the number of classes.

        Returns
        -------
        labels : ndarray of shape (n, k)
            Best first.
        probabilities : ndarray of shape (n, k)
        """
        check_is_fitted(self)
        return self.estimator_.predict_topk_proba(X, k)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def fit_rule(
    fitted: LinearClassifier,
    X: Any,
    codes: np.ndarray,
    method: str,
    *,
    cv: Any = 5,
    weights: np.ndarray | None = None,
) -> dict[str, Any]:
    """Find the rule from scores to probabilities for an estimator that was trained on all rows.

    Parameters
    ----------
    fitted : LinearClassifier
    X : array or sparse matrix of shape (n, d)
        The rows it was trained on.
    codes : int array of shape (n,)
        Their classes, as positions in its `classes_`.
    method, cv
        As for `CalibratedClassifier`.
    weights : ndarray of shape (n,), optional
        Sample weights.

    Returns
    -------
    dict
        As `manyclass.model.probability.probabilities` takes it.
    """
    return _most_likely_rule(method, *held_out_scores(fitted, X, codes, cv, weights))


def held_out_scores(
    fitted: LinearClassifier, X: Any, codes: np.ndarray, cv: Any, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, true classes and weights of rows that were held out in cross-validation."""
    rows = check_matrix(X)
    matrix: Any = rows.as_csr() if rows.is_sparse else rows.dense
    n, n_classes = len(codes), len(fitted.classes_)
    looked_at = np.random.default_rng(fitted._seed()).permutation(n)[: max(1, SCORES_AT_MOST // n_classes)]
    wanted = np.zeros(n, bool)
    wanted[looked_at] = True
    if cv is None or isinstance(cv, Integral):
        cv = KFold(min(int(cv or 5), n), shuffle=True, random_state=fitted._seed())
    scores, truth, counted = [], [], []
    for learn, every_held_out in check_cv(cv).split(matrix, codes):
        held_out = every_held_out[wanted[every_held_out]]
        present = np.unique(codes[learn])
        if len(present) < 2 or len(held_out) == 0:
            continue
        given = None if weights is None else weights[learn]
        model = fitted._for_codes(fitted.classes_).fit(matrix[learn], codes[learn], given).model_
        # A class that the fold does not know takes no part there.
        found = np.full((len(held_out), n_classes), -np.inf)
        found[:, model.classes] = model.scores(matrix[held_out], n_jobs=fitted.n_jobs)
        known = np.isin(codes[held_out], present)
        scores.append(found[known])
        truth.append(codes[held_out][known])
        counted.append(np.ones(known.sum()) if weights is None else weights[held_out][known])
    if sum(map(len, truth)) == 0:
        raise ValueError("no held-out row is of a class that its fold has seen; give more rows or other folds")
    return np.concatenate(scores), np.concatenate(truth), np.concatenate(counted)


def _most_likely_rule(method: str, scores: np.ndarray, truth: np.ndarray, counted: np.ndarray) -> dict[str, Any]:
    """The most likely numbers. The slope is found as its logarithm, so that it stays positive."""
    rows, share = np.arange(len(truth)), counted / counted.sum()
    trained = np.isfinite(scores)
    finite = np.where(trained, scores, 0.0)
    spread = max(float(finite.std()), 1e-12)

    def surprise(parameters: np.ndarray) -> float:
        slope = np.exp(parameters[0]) / spread
        if method == "temperature":
            log_p = np.where(trained, slope * finite, -np.inf)
        else:
            log_p = np.where(trained, log_expit(slope * finite + parameters[1]), -np.inf)
        return float(share @ (logsumexp(log_p, axis=1) - log_p[rows, truth]))

    start = [0.0] if method == "temperature" else [0.0, 0.0]
    found = minimize(surprise, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-9}).x
    slope = float(np.exp(found[0]) / spread)
    if method == "temperature":
        return {"method": "softmax", "slope": slope}
    return {"method": "sigmoid", "slope": slope, "offset": float(found[1])}
