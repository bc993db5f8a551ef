"""A trained linear model: weights by features, scores, the best classes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import Chain, RowMatrix, check_matrix
from .compression import compress_weights
from .label_order import LabelOrder
from .label_sets import predict_sets
from .probability import log_probabilities, probabilities
from .threads import thread_count
from .weights import JoinedWeights, WideWeights, as_matrix, is_sparse, make_scorer, nbytes, nonzeros

# Rows scored by one call into the core: Ctrl-C is answered in between.
ROWS_AT_ONCE = 4096
# Scores held at once where all of a row are needed.
SCORES_AT_ONCE = 1 << 24


@dataclass
class LinearModel:
    """Scores are `X @ weights + intercept`; the class with the largest one is predicted.

    A one-vs-one model has a column for each pair of classes `a < b`, in the order of `numpy.triu_indices`. A positive
    score is a vote for a, a negative one for b; the score of a class is the number of its votes, plus a number below
    one half in size that orders classes with equal votes by the sum of their margins.

    Attributes
    ----------
    weights : ndarray or csr_matrix of shape (n_features, K or pairs), float32 or float64
        One row a feature: that is how they are read when a sparse row is scored. Compressed models have
        `SparseWeights`, those of few of very many features `WideWeights`, and models in shards `JoinedWeights`
        instead, which `matrix` expands. To change them, assign
        new ones: what a model has derived from them to predict does not notice changes within.
    intercept : ndarray of shape (K or pairs,)
        Minus infinity marks a class that was never trained (an interrupted one-vs-rest fit): it is never
        predicted.
    classes : ndarray of shape (K,)
        The labels.
    settings : dict
        How it was trained; plain values that JSON can hold.
    certificate : dict
        Primal, dual, gap and violation at the end of training.
    chain : Chain
        The steps from raw input, texts or rows, to the rows that the weights are for. Methods that take an `X` apply
        them to it, except to a `RowMatrix`, which `prepare` gives.
    label_counts : int64 ndarray of shape (K,), optional
        How many of the `settings["n_rows"]` training rows had each label: measures weighted by propensities need it.
    tree : LabelOrder, optional
        What a `LabelTree` over the labels is made from.
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
        """Whether it was trained on rows with sets of labels."""
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
        """Whether only non-zero weights are stored."""
        return is_sparse(self.weights)

    @property
    def n_parts(self) -> int:
        """In how many files the weights are: one, or the shards of a model."""
        return len(self.weights.parts) if isinstance(self.weights, JoinedWeights) else 1

    @property
    def matrix(self) -> Any:
        """The weights as one ndarray or csr_matrix, whatever they are stored as."""
        return as_matrix(self.weights)

    @property
    def density(self) -> float:
        """Share of the weights that are not zero."""
        return nonzeros(self.weights) / max(1, self.weights.shape[0] * self.weights.shape[1])

    @property
    def nbytes(self) -> int:
        """Memory of weights and intercept."""
        return int(nbytes(self.weights) + self.intercept.nbytes)

    def scores(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Score every row for every class.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        ndarray of shape (n, K)
        """
        rows = self.prepare(X)
        out = np.empty((rows.n_rows, self.n_classes), self.dtype)
        threads = thread_count(n_jobs)
        for begin, end in self._parts(rows):
            if self.pairs:
                out[begin:end] = self._pair_votes(rows, begin, end, threads)
            else:
                self._score(rows, begin, end, None, out[begin:end], threads)
        return out

    def topk(self, X: Any, k: int, *, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best classes of each row, without ever holding all scores.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        k : int
            At most the number of classes.
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        codes : int32 ndarray of shape (n, k)
            Positions in `classes`, best first; of equal scores the lower one first.
        scores : ndarray of shape (n, k)
        """
        if not 1 <= k <= self.n_classes:
            raise ValueError(f"k must be between 1 and the number of classes, {self.n_classes}; got {k}")
        rows = self.prepare(X)
        codes = np.empty((rows.n_rows, k), np.int32)
        scores = np.empty((rows.n_rows, k), self.dtype)
        threads = thread_count(n_jobs)
        for begin, end in self._parts(rows):
            if self.pairs:
                votes = self._pair_votes(rows, begin, end, threads)
                codes[begin:end] = np.argsort(-votes, axis=1, kind="stable")[:, :k]
                scores[begin:end] = np.take_along_axis(votes, codes[begin:end], axis=1)
            else:
                self._score(rows, begin, end, codes[begin:end], scores[begin:end], threads)
        return codes, scores

    def predict_topk(self, X: Any, k: int = 5, *, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the labels of the k best classes of each row, without ever holding all scores.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        k : int
            At most the number of classes.
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        labels : ndarray of shape (n, k)
            Best first.
        scores : ndarray of shape (n, k)
        """
        codes, scores = self.topk(X, k, n_jobs=n_jobs)
        return self.classes[codes], scores

    def probabilities(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Probability of every class for every row, if the model knows any.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        ndarray of shape (n, K)
        """
        return probabilities(self._probability_rule(), self.scores(X, n_jobs=n_jobs))

    def log_probabilities(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Logarithm of the probability of every class for every row; see `probabilities`."""
        return log_probabilities(self._probability_rule(), self.scores(X, n_jobs=n_jobs))

    def topk_probabilities(self, X: Any, k: int, *, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the k most likely classes of each row, without ever holding the probabilities of all.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        k : int
            At most the number of classes.
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        codes : int32 ndarray of shape (n, k)
            Positions in `classes`, best first; of equal ones the lower one first.
        probabilities : ndarray of shape (n, k)
        """
        if not 1 <= k <= self.n_classes:
            raise ValueError(f"k must be between 1 and the number of classes, {self.n_classes}; got {k}")
        rule = self._probability_rule()
        rows = self.prepare(X)
        codes = np.empty((rows.n_rows, k), np.int32)
        found = np.empty((rows.n_rows, k), self.dtype)
        for begin, end in _ranges(rows.n_rows, _rows_for(self.n_classes)):
            scores = self.scores(rows[begin:end], n_jobs=n_jobs)
            codes[begin:end] = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            found[begin:end] = np.take_along_axis(probabilities(rule, scores), codes[begin:end], axis=1)
        return codes, found

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
        """Give the best class of each row; of a model for sets of labels, the labels.

        Parameters
        ----------
        X : texts, array or sparse matrix of shape (n, n_features), or RowMatrix
        k : int, optional
            Of a model for sets of labels: so many labels a row, those with the largest scores.
        threshold : float
            Of such a model, without `k`: all labels with scores above it.
        n_jobs : int, optional
            Threads; None for all cores.

        Returns
        -------
        ndarray of shape (n,) with labels, or csr_matrix of shape (n, K) of ones
        """
        if self.multilabel:
            return predict_sets(self, self.prepare(X), k=k, threshold=threshold, n_jobs=n_jobs)
        if k is not None or threshold != 0:
            raise ValueError(
                "k and threshold are for models of sets of labels; predict_topk gives the k best classes"
            )
        return self.classes[self.topk(X, 1, n_jobs=n_jobs)[0][:, 0]]

    def compress(self, dtype: str | None = None, *, prune: float = 0.0, keep: int | None = None) -> "LinearModel":
        """Make a smaller model, which predicts nearly the same.

        Parameters
        ----------
        dtype : "float16", "int8" or None
            What weights are stored as: in half precision, or as integers from -127 to 127 with one scale a class.
            None keeps their type. Scores are computed in float32 from these.
        prune : float
            Drop weights that are smaller in size.
        keep : int, optional
            Keep of each class the largest weights in size only, so many at the most.

        Returns
        -------
        LinearModel
            With `settings["compression"]`. The certificate is still that of the weights that were trained.
        """
        weights = compress_weights(self.weights, dtype=dtype, prune=prune, keep=keep)
        settings = self.settings | {"compression": {"dtype": dtype, "prune": prune, "keep": keep}}
        return replace(self, weights=weights, intercept=self.intercept.astype(weights.dtype), settings=settings)

    def prepare(self, X: Any) -> RowMatrix:
        """Give the rows that the weights are for: the result of all steps of the chain, checked.

        Parameters
        ----------
        X : texts, array or sparse matrix, or RowMatrix
            What the first step takes. If that takes texts and is the only step, also rows that it has given before.
            A `RowMatrix` counts as prepared.

        Returns
        -------
        RowMatrix
            To be passed to the other methods.
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

    def _parts(self, rows: RowMatrix) -> Iterator[tuple[int, int]]:
        return _ranges(rows.n_rows, _rows_for(self.weights.shape[1]) if self.pairs else ROWS_AT_ONCE)

    def _pair_votes(self, rows: RowMatrix, begin: int, end: int, threads: int) -> np.ndarray:
        scores = np.empty((end - begin, self.weights.shape[1]), self.dtype)
        self._score(rows, begin, end, None, scores, threads)
        first, second = np.triu_indices(self.n_classes, 1)
        pairs = np.arange(len(first))
        # (pairs, K): to which class a positive and a negative score go
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
        """The core's view of the weights, made when it is first needed."""
        made = self._made
        if made is None or made[0] is not self.weights or made[1] is not self.intercept:
            self._made = made = (self.weights, self.intercept, make_scorer(self.weights, self.intercept))
        return made[2]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}


def _rows_for(scores_a_row: int) -> int:
    return max(1, min(ROWS_AT_ONCE, SCORES_AT_ONCE // scores_a_row))


def _ranges(n: int, at_once: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(n, begin + at_once)) for begin in range(0, n, at_once))
