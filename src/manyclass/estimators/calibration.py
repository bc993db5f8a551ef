"""Calibrated probabilities for classifiers that only provide scores."""

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

# At most this many scores are used. Beyond that, a sample of the rows is enough to fit two numbers.
SCORES_AT_MOST = 1 << 26


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Add probabilities to a classifier, calibrated on held-out rows.

    The classifier is trained on all rows. One or two numbers turn its scores into probabilities. They are fitted by
    maximum likelihood to the true classes of rows held out in cross-validation.

    Parameters
    ----------
    estimator : LinearClassifier
        Any estimator of this package.
    method : "sigmoid" or "temperature"
        Make probabilities proportional to `1 / (1 + exp(-a s - b))` ("sigmoid") or to `exp(a s)` ("temperature").
        The first approaches the second as b goes to minus infinity.
    cv : int, cross-validation splitter or iterable, optional
        Number of folds (assigned at random using the estimator's `random_state`; None means 5), a scikit-learn
        splitter, or an iterable of (train, test) index pairs.

    Attributes
    ----------
    estimator_ : LinearClassifier
        The estimator trained on all rows. `manyclass.save_model` saves the calibration with the model.
    classes_ : ndarray of shape (K,)
        The class labels.
    rule_ : dict
        The fitted calibration rule.
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
        """Train on all rows, and once per fold to get the scores of held-out rows.

        Parameters
        ----------
        X, y, sample_weight : as for the estimator

        Returns
        -------
        self
        """
        self._validate_params()
        if has_label_sets(y):
            raise ValueError(
                "y has sets of labels, but calibration needs one label per row; use OneVsRestLogistic, which "
                "predicts the probability of each label without calibration"
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
        """Column names of X, if it was a data frame, as in scikit-learn."""
        return self.estimator_.feature_names_in_

    @property
    def model_(self) -> LinearModel:
        """The model of the estimator, including the calibration."""
        return self._fitted.model_

    @property
    def _fitted(self) -> LinearClassifier:
        check_is_fitted(self)
        return self.estimator_

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row, as the estimator does."""
        return self._fitted.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows whose class is predicted correctly."""
        return self._fitted.score(X, y, sample_weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """Score every row for every class, as the estimator does."""
        return self._fitted.decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row, as an array of shape (n, K)."""
        return self._fitted.predict_proba(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities."""
        return self._fitted.predict_log_proba(X)

    def predict_topk_proba(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Find the k most likely classes of each row and their probabilities, both of shape (n, k), best first."""
        return self._fitted.predict_topk_proba(X, k)

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
    """Fit the rule that turns scores into probabilities, in the form that `manyclass.model.probability` expects.

    `fitted` was trained on X, and `codes` are positions of the labels in its `classes_`. `method` and `cv` are as in
    `CalibratedClassifier`.
    """
    return _most_likely_rule(method, *held_out_scores(fitted, X, codes, cv, weights))


def held_out_scores(
    fitted: LinearClassifier, X: Any, codes: np.ndarray, cv: Any, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores, true classes and weights of rows held out in cross-validation."""
    rows = check_matrix(X)
    matrix: Any = rows.as_csr() if rows.is_sparse else rows.dense
    n, n_classes = len(codes), len(fitted.classes_)
    looked_at = np.random.default_rng(fitted._seed()).permutation(n)[: max(1, SCORES_AT_MOST // n_classes)]
    wanted = np.zeros(n, bool)
    wanted[looked_at] = True
    if cv is None or isinstance(cv, Integral):
        cv = KFold(min(int(cv or 5), n), shuffle=True, random_state=fitted._seed())
    scores, truth, counted = [], [], []
    for learn, held_out in check_cv(cv).split(matrix, codes):
        held_out = held_out[wanted[held_out]]
        present = np.unique(codes[learn])
        if len(present) < 2 or len(held_out) == 0:
            continue
        given = None if weights is None else weights[learn]
        model = fitted._for_codes(fitted.classes_).fit(matrix[learn], codes[learn], given).model_
        # Classes without training rows in this fold are left out of it.
        found = np.full((len(held_out), n_classes), -np.inf)
        found[:, model.classes] = model.scores(matrix[held_out], n_jobs=fitted.n_jobs)
        known = np.isin(codes[held_out], present)
        scores.append(found[known])
        truth.append(codes[held_out][known])
        counted.append(np.ones(known.sum()) if weights is None else weights[held_out][known])
    if sum(map(len, truth)) == 0:
        raise ValueError("no held-out row has a class that occurs in its training fold; use more rows or other folds")
    return np.concatenate(scores), np.concatenate(truth), np.concatenate(counted)


def _most_likely_rule(method: str, scores: np.ndarray, truth: np.ndarray, counted: np.ndarray) -> dict[str, Any]:
    """Fit the rule by maximum likelihood, in the logarithm of the slope so that it stays positive."""
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
