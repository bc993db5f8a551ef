"""A trained linear model: weights, scores and the best classes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import Chain, RowMatrix, check_matrix
from .compression import compress_weights
from .label_order import LabelOrder
from .label_sets import SCORES_AT_ONCE, predict_sets
from .probability import log_probabilities, probabilities
from .threads import thread_count
from .weights import JoinedWeights, WideWeights, as_matrix, is_sparse, make_scorer, nbytes, nonzeros

# Rows scored per call into the core; Ctrl-C takes effect between calls.
ROWS_AT_ONCE = 4096


@dataclass
class LinearModel:
    """A linear model with scores `X @ weights + intercept`, which predicts the class with the largest score.

    A one-vs-one model has one column per pair of classes `a < b`, in the order of `numpy.triu_indices`. A positive
    score is a vote for a, a negative one for b. The score of a class is its number of votes, plus a term smaller than
    one half in absolute value that breaks ties by the sum of margins.

    Attributes
    ----------
    weights : ndarray or csr_matrix of shape (n_features, K or pairs), float32 or float64
        One row per feature, which is the order in which sparse rows are scored. Compressed models have
        `SparseWeights` instead, models that use few of very many features `WideWeights`, and models in shards
        `JoinedWeights`; `matrix` expands any of these. Assign a new object to change the weights: in-place changes
        may not affect predictions.
    intercept : ndarray of shape (K or pairs,)
        Minus infinity marks a class that was not trained (after an interrupted one-vs-rest fit) and is never
        predicted.
    classes : ndarray of shape (K,)
        The class labels.
    settings : dict
        How the model was trained; JSON-serialisable values.
    certificate : dict
        Primal, dual, gap and violation at the end of training.
    chain : Chain
        The preprocessing steps from raw input (texts or rows) to the rows that are scored. Methods that take an `X`
        apply them, except to a `RowMatrix` returned by `prepare`.
    label_counts : int64 ndarray of shape (K,), optional
        Number of the `settings["n_rows"]` training rows with each label, needed for propensity-scored metrics.
    tree : LabelOrder, optional
        The order of the labels from which a `LabelTree` can be built.
    """

    weights: Any
    intercept: np.ndarray
    classes: np.ndarray
    settings: dict[str, Any] = field(default_factory=dict)
    certificate: dict[str, Any] = field(default_factory=dict)
    chain: Chain = field(default_factory=Chain)
    label_counts: np.ndarray | None = None
    tree: LabelOrder | None = None
    _made: tuple[Any, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def pairs(self) -> bool:
        """Whether this is a one-vs-one model."""
        return bool(self.settings.get("pairs", False))

    @property
    def multilabel(self) -> bool:
        """Whether the model was trained on sets of labels."""
        return bool(self.settings.get("multilabel", False))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.weights.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def dtype(self) -> np.dtype:
        """Type of the weights."""
        return self.weights.dtype

    @property
    def is_sparse(self) -> bool:
        """Whether only nonzero weights are stored."""
        return is_sparse(self.weights)

    @property
    def n_parts(self) -> int:
        """Number of files that hold the weights: one, or the number of shards."""
        return len(self.weights.parts) if isinstance(self.weights, JoinedWeights) else 1

    @property
    def matrix(self) -> Any:
        """The weights as one ndarray or csr_matrix, however they are stored."""
        return as_matrix(self.weights)

    @property
    def density(self) -> float:
        """Share of nonzero weights."""
        return nonzeros(self.weights) / max(1, self.weights.shape[0] * self.weights.shape[1])

    @property
    def nbytes(self) -> int:
        """Memory used by the weights and intercepts, in bytes."""
        return int(nbytes(self.weights) + self.intercept.nbytes)

    def scores(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Return the score of each class for each row.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        n_jobs : int, optional
            Number of threads; None for all cores.

        Returns
        -------
        ndarray of shape (n, K)
        """
        rows = self.prepare(X)
        out = np.empty((rows.n_rows, self.n_classes), self.dtype)
        threads = thread_count(n_jobs)
        for begin, end in _ranges(rows.n_rows, _rows_for(self.weights.shape[1]) if self.pairs else ROWS_AT_ONCE):
            if self.pairs:
                out[begin:end] = self._pair_votes(rows, begin, end, threads)
            else:
                self._score(rows, begin, end, None, out[begin:end], threads)
        return out

    def topk(self, X: Any, k: int, *, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best classes of each row without holding all scores in memory.

        Parameters
        ----------
        X, n_jobs : as for `scores`
        k : int
            At most the number of classes.

        Returns
        -------
        codes : int32 ndarray of shape (n, k)
            Positions in `classes`, best first; ties in ascending order of position.
        scores : ndarray of shape (n, k)
        """
        rows = self.prepare(X)
        if self.pairs:
            return self._best_of_all(rows, k, n_jobs)
        codes, scores = self.room_for_best(rows, k)
        threads = thread_count(n_jobs)
        for begin, end in _ranges(rows.n_rows, ROWS_AT_ONCE):
            self._score(rows, begin, end, codes[begin:end], scores[begin:end], threads)
        return codes, scores

    def predict_topk(self, X: Any, k: int = 5, *, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the labels of the k best classes of each row without holding all scores in memory.

        Parameters
        ----------
        X, k, n_jobs : as for `topk`

        Returns
        -------
        labels, scores : ndarrays of shape (n, k)
            Best first.
        """
        codes, scores = self.topk(X, k, n_jobs=n_jobs)
        return self.classes[codes], scores

    def probabilities(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Return the probability of each class for each row, if the model provides probabilities.

        Parameters
        ----------
        X, n_jobs : as for `scores`

        Returns
        -------
        ndarray of shape (n, K)
        """
        return probabilities(self._probability_rule(), self.scores(X, n_jobs=n_jobs))

    def log_probabilities(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Return the logarithms of the probabilities; see `probabilities`."""
        return log_probabilities(self._probability_rule(), self.scores(X, n_jobs=n_jobs))

    def topk_probabilities(self, X: Any, k: int, *, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the k most likely classes of each row without holding all probabilities in memory.

        Parameters
        ----------
        X, k, n_jobs : as for `topk`

        Returns
        -------
        codes : int32 ndarray of shape (n, k)
            Positions in `classes`, most likely first; ties in ascending order of position.
        probabilities : ndarray of shape (n, k)
        """
        return self._best_of_all(self.prepare(X), k, n_jobs, partial(probabilities, self._probability_rule()))

    def _probability_rule(self) -> dict[str, Any]:
        rule = self.settings.get("probability")
        if rule is None:
            raise ValueError(
                "this model has no probabilities; train maximum entropy or logistic regression, or calibrate it"
            )
        return rule

    def predict(
        self, X: Any, *, k: int | None = None, threshold: float = 0.0, n_jobs: int | None = None
    ) -> np.ndarray | sp.csr_matrix:
        """Predict the class of each row, or its set of labels if the model was trained on sets.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        k : int, optional
            Predict the k labels with the largest scores for each row. Only for models of sets of labels.
        threshold : float
            Predict all labels with scores above this, if `k` is not given. Only for models of sets of labels.
        n_jobs : int, optional
            Number of threads; None for all cores.

        Returns
        -------
        ndarray of shape (n,) with classes, or csr_matrix of shape (n, K) with ones for the predicted labels
        """
        if self.multilabel:
            return predict_sets(self, self.prepare(X), k=k, threshold=threshold, n_jobs=n_jobs)
        if k is not None or threshold != 0:
            raise ValueError(
                "k and threshold need a model of sets of labels; use predict_topk for the k best classes"
            )
        return self.classes[self.topk(X, 1, n_jobs=n_jobs)[0][:, 0]]

    def compress(self, dtype: str | None = None, *, prune: float = 0.0, keep: int | None = None) -> "LinearModel":
        """Return a smaller model with nearly the same predictions.

        Parameters
        ----------
        dtype : "float16", "int8" or None
            Store the weights in half precision, or as integers from -127 to 127 with one scale per class; scores are
            then computed in float32. None keeps the type of the weights.
        prune : float
            Drop weights smaller than this in absolute value.
        keep : int, optional
            Keep at most this many weights per class, the largest in absolute value.

        Returns
        -------
        LinearModel
            Has `settings["compression"]`. Its certificate is still that of the trained weights.
        """
        weights = compress_weights(self.weights, dtype=dtype, prune=prune, keep=keep)
        settings = self.settings | {"compression": {"dtype": dtype, "prune": prune, "keep": keep}}
        return replace(self, weights=weights, intercept=self.intercept.astype(weights.dtype), settings=settings)

    def prepare(self, X: Any) -> RowMatrix:
        """Apply all preprocessing steps and check the resulting rows.

        Parameters
        ----------
        X : texts, array or sparse matrix, or RowMatrix
            Input for the first step. If the only step takes texts, rows that it produced earlier are also accepted. A
            `RowMatrix` is taken as already prepared.

        Returns
        -------
        RowMatrix
            Rows that can be passed to the other methods.
        """
        if isinstance(X, RowMatrix):
            rows = X
            rows.check_fits(self.dtype)
        else:
            rows = check_matrix(self.chain.transform(X), used_as=self.dtype)
        if rows.n_features != self.n_features:
            raise ValueError(
                f"X has {rows.n_features} features, but LinearModel is expecting {self.n_features} features as input"
            )
        return rows

    def room_for_best(self, rows: RowMatrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return uninitialised arrays for the codes and scores of the k best classes of each row."""
        if not 1 <= k <= self.n_classes:
            raise ValueError(f"k must be between 1 and the number of classes, {self.n_classes}; got {k}")
        return np.empty((rows.n_rows, k), np.int32), np.empty((rows.n_rows, k), self.dtype)

    def _best_of_all(
        self, rows: RowMatrix, k: int, n_jobs: int | None, as_values: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best classes from all scores of a few rows at a time; `as_values` converts these scores."""
        codes, values = self.room_for_best(rows, k)
        for begin, end in _ranges(rows.n_rows, _rows_for(self.n_classes)):
            scores = self.scores(rows[begin:end], n_jobs=n_jobs)
            codes[begin:end] = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            values[begin:end] = np.take_along_axis(as_values(scores), codes[begin:end], axis=1)
        return codes, values

    def _pair_votes(self, rows: RowMatrix, begin: int, end: int, threads: int) -> np.ndarray:
        scores = np.empty((end - begin, self.weights.shape[1]), self.dtype)
        self._score(rows, begin, end, None, scores, threads)
        first, second = np.triu_indices(self.n_classes, 1)
        pairs = np.arange(len(first))
        # (pairs, K): the class that a positive or a negative score votes for
        to_first, to_second = (
            sp.csr_matrix((np.ones(len(pairs), np.float32), (pairs, to)), shape=(len(pairs), self.n_classes))
            for to in (first, second)
        )
        votes = (scores > 0) @ to_first + (scores < 0) @ to_second
        margins = scores @ (to_first - to_second)
        return votes + margins / (3 * (np.abs(margins) + 1))

    def _score(
        self, rows: RowMatrix, begin: int, end: int, codes: np.ndarray | None, scores: np.ndarray, threads: int
    ) -> None:
        if isinstance(self.weights, WideWeights):
            rows, begin, end = self.weights.narrow(rows[begin:end]), 0, end - begin
        if rows.dense is None:
            self.scorer.predict(rows.indptr, rows.indices, rows.values, begin, end, codes, scores, threads)
        else:
            part = sp.csr_matrix(rows.dense[begin:end])
            self.scorer.predict(part.indptr, part.indices, part.data, 0, end - begin, codes, scores, threads)

    @property
    def scorer(self) -> Any:
        """The native scorer for the weights, created on first use."""
        made = self._made
        if made is None or made[0] is not self.weights or made[1] is not self.intercept:
            self._made = made = (self.weights, self.intercept, make_scorer(self.weights, self.intercept))
        return made[2]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}


def _rows_for(scores_per_row: int) -> int:
    return max(1, min(ROWS_AT_ONCE, SCORES_AT_ONCE // scores_per_row))


def _ranges(n: int, at_once: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(n, begin + at_once)) for begin in range(0, n, at_once))
