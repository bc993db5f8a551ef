"""Select C by cross-validation: all folds in parallel, each along a warm-started path of C."""

import time
import warnings
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, check_cv

from ..data import BlockStore, check_matrix, encode_label_sets, encode_labels, has_label_sets
from ..engines import FoldResults, StopAll, cross_validate, disk_engine, listening
from ..model.threads import thread_count
from .linear_classifier import LinearClassifier

# Number of additional values of C to propose when the best one is at the edge of the grid.
STEPS_BEYOND = 4


class EdgeOfGridWarning(UserWarning):
    """The best C is the smallest or largest one compared, so values beyond it may be better still."""


@dataclass(frozen=True)
class Selection:
    """Results of a cross-validation over C.

    Attributes
    ----------
    Cs : ndarray of shape (c,)
        The values of C, in ascending order.
    accuracies : ndarray of shape (c, folds)
        Share of held-out rows whose class was predicted correctly. For sets of labels, share of rows whose best class
        is in the set.
    gaps : ndarray of shape (c, folds)
        Relative duality gap of each fit.
    converged : ndarray of shape (c, folds)
        Whether each fit converged.
    seconds : float
        Total time.
    """

    Cs: np.ndarray
    accuracies: np.ndarray
    gaps: np.ndarray
    converged: np.ndarray
    seconds: float

    @property
    def means(self) -> np.ndarray:
        """Mean accuracy for each value of C."""
        return self.accuracies.mean(axis=1)

    @property
    def best_C(self) -> float:
        """The C with the highest mean accuracy; the smallest in case of ties."""
        return float(self.Cs[self.means.argmax()])

    @property
    def at_edge(self) -> str | None:
        """`"smallest"` or `"largest"` if that C is strictly the best; otherwise None.

        Values beyond the edge were not compared and may be better. Also None if `Cs` has a single value.
        """
        best = np.flatnonzero(self.means == self.means.max())
        if len(self.Cs) == 1 or len(best) > 1 or 0 < best[0] < len(self.Cs) - 1:
            return None
        return "smallest" if best[0] == 0 else "largest"

    @property
    def wider_Cs(self) -> np.ndarray:
        """`Cs`, extended beyond the best value if it is at the edge, with the ratio of the last two values."""
        if self.at_edge is None:
            return self.Cs
        steps = np.arange(1, STEPS_BEYOND + 1)
        if self.at_edge == "largest":
            return np.concatenate([self.Cs, self.Cs[-1] * (self.Cs[-1] / self.Cs[-2]) ** steps])
        return np.concatenate([self.Cs[0] * (self.Cs[0] / self.Cs[1]) ** steps[::-1], self.Cs])


def select_C(
    estimator: LinearClassifier, X: Any, y: Any = None, Cs: Any = (), *, cv: Any = 5, sample_weight: Any = None
) -> Selection:
    """Compare values of C by cross-validation.

    Folds are trained in parallel with one thread each, or more if there are threads to spare. Within a fold, each C
    starts from the solution for the previous one. Engines with their own workers train one fold at a time. From a
    store, all folds are trained together, and each block is read once per pass for all of them.

    A single `ConvergenceWarning` counts the fits that did not converge. `EdgeOfGridWarning` is issued if the best C
    is the smallest or largest one; the `wider_Cs` of the result then extend beyond it.

    Parameters
    ----------
    estimator : LinearClassifier
        Any estimator of this package; it is not modified. Its `C` is ignored, and its `n_jobs` is the number of
        threads for all folds together.
    X, y, sample_weight : as for `fit`
    Cs : iterable of float
        The values of C to compare.
    cv : int, cross-validation splitter or iterable
        Number of folds (assigned at random using the estimator's `random_state`), a scikit-learn splitter, or an
        iterable of (train, test) index pairs. For a store, it must be an int.

    Returns
    -------
    Selection
    """
    begin = time.perf_counter()
    Cs = np.sort(np.asarray(list(Cs), dtype=float))
    if Cs.size == 0 or not (Cs > 0).all():
        raise ValueError(f"Cs must contain at least one value, and only positive ones; got {Cs.tolist()}")
    cross_validated = _from_store if isinstance(X, BlockStore) else _from_rows
    found = cross_validated(estimator, X, y, Cs, cv, sample_weight)
    return _with_warnings(Selection(Cs, *found, time.perf_counter() - begin))


def _from_rows(
    estimator: LinearClassifier, X: Any, y: Any, Cs: np.ndarray, cv: Any, sample_weight: Any
) -> FoldResults:
    rows = check_matrix(X)
    matrix: Any = rows.as_csr() if rows.is_sparse else rows.dense
    labels = estimator._check_labels(y, rows.n_rows)
    several = has_label_sets(labels)
    classes, codes = encode_label_sets(labels) if several else encode_labels(labels)
    if isinstance(cv, int):
        if not 2 <= cv <= rows.n_rows:
            raise ValueError(f"cv must be between 2 and the number of rows, {rows.n_rows}; got {cv}")
        cv = KFold(cv, shuffle=True, random_state=estimator._seed())
    splits = list(check_cv(cv).split(matrix, codes))
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    accuracies, gaps = np.zeros((2, len(Cs), len(splits)))
    converged = np.zeros(gaps.shape, bool)
    stop = StopAll()
    in_threads = estimator.engine == "memory"
    threads = thread_count(estimator.n_jobs)
    alone = len(splits) // threads * threads  # folds that get one thread each
    of_others = threads // max(1, len(splits) - alone)

    def train(fold: int) -> None:
        learn, held_out = splits[fold]
        worker = estimator._for_codes(classes).set_params(verbose=0)
        if in_threads:
            worker.set_params(n_jobs=1 if fold < alone else of_others)
        worker._stop_with = stop
        given = None if weights is None else weights[learn]
        for c, fitted in enumerate(worker.path(matrix[learn], codes[learn], Cs, given)):
            best = fitted.predict_topk(matrix[held_out], 1)[0][:, 0]
            right = codes[held_out, best] if several else best == codes[held_out]
            accuracies[c, fold] = np.mean(right)
            gaps[c, fold] = fitted.certificate_.gap
            converged[c, fold] = fitted.certificate_.exit_reason == "converged"
            if fitted.certificate_.exit_reason == "interrupted":
                stop.request()
            if stop.requested:
                return

    with listening(stop), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if in_threads:
            with ThreadPoolExecutor(min(len(splits), threads)) as pool:
                jobs = [pool.submit(train, fold) for fold in range(len(splits))]
                done, _ = wait(jobs, return_when=FIRST_EXCEPTION)
                if any(job.exception() for job in done):
                    stop.request()
            for job in jobs:
                job.result()
        else:  # joblib backends are configured per thread, so stay in this one
            for fold in range(len(splits)):
                if not stop.requested:
                    train(fold)
    if stop.requested:
        raise KeyboardInterrupt
    return FoldResults(accuracies, gaps, converged)


def _from_store(
    estimator: LinearClassifier, store: BlockStore, y: Any, Cs: np.ndarray, folds: Any, sample_weight: Any
) -> FoldResults:
    if y is not None:
        raise ValueError("a BlockStore already contains the labels; leave y out")
    if not isinstance(folds, int) or not 2 <= folds <= store.n_rows:
        raise ValueError(f"cv must be an int between 2 and the number of rows, {store.n_rows}; got {folds!r}")
    if store.manifest.multilabel:
        raise ValueError(
            f"{store.path} has sets of labels, and select_C needs one label per row of a store; use store.load()"
        )
    estimator._check_parameters()
    return cross_validate(
        estimator._problem(),
        estimator._stored_rows(store, sample_weight),
        disk_engine(estimator.engine),
        Cs.tolist(),
        folds,
        estimator._options(estimator._seed()),
    )


def _with_warnings(found: Selection) -> Selection:
    short = int((~found.converged).sum())
    if short:
        message = f"{short} of {found.converged.size} fits did not converge; raise max_iter or tol"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
    if found.at_edge is not None:
        wider = ", ".join(f"{C:.3g}" for C in found.wider_Cs)
        warnings.warn(
            f"the best C, {found.best_C:.3g}, is the {found.at_edge} of Cs, and values beyond it may be better; try "
            f"more, such as {wider}",
            EdgeOfGridWarning,
            stacklevel=3,
        )
    return found
