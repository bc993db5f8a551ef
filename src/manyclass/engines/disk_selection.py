"""Cross-validation from a store: all folds along a path of penalties, each block read once a pass for all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._native import core
from ..problems import Problem
from .disk import DiskFits, about_variables
from .disk_engine import DiskEngine
from .dual_store import DualStore
from .options import FitOptions
from .stopping import listening
from .stored_rows import StoredRows


class FoldResults(NamedTuple):
    """Of each penalty and fold."""

    accuracies: np.ndarray
    gaps: np.ndarray
    converged: np.ndarray


def cross_validate(
    problem: Problem,
    data: StoredRows,
    engine: DiskEngine,
    Cs: Sequence[float],
    folds: int,
    options: FitOptions,
) -> FoldResults:
    """Train all folds for one penalty after another, each from where the last one has ended.

    Parameters
    ----------
    problem, data, engine
        As `run` has them.
    Cs : sequence of float
        The penalties, ascending.
    folds : int
        Rows are dealt to them by their ids, at random.
    options : FitOptions
        The passes are those of each penalty.

    Returns
    -------
    FoldResults

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    accuracies, gaps = np.zeros((2, len(Cs), folds))
    results = FoldResults(accuracies, gaps, np.zeros((len(Cs), folds), bool))
    about = about_variables(problem, data, options.dtype)
    variables = [DualStore(about, data.store.path) for _ in range(folds)]
    interrupt: Any = core.Interrupt()
    try:
        with listening(interrupt):
            fits = DiskFits(
                problem,
                replace(data, C=Cs[0]),
                engine,
                options,
                interrupt=interrupt,
                variables=variables,
                folds=folds,
            )
            for place, C in enumerate(Cs):
                if place:
                    fits.set_data(replace(data, C=C))
                _train(fits, options, interrupt, place, results)
                results.accuracies[place] = fits.held_out_accuracies()
    finally:
        for store in variables:
            store.close()
    return results


def _train(fits: DiskFits, options: FitOptions, interrupt: Any, place: int, results: FoldResults) -> None:
    rule, passes = options.rule, 0
    while True:
        ended = fits.advance(rule)
        if interrupt.requested:
            raise KeyboardInterrupt
        passes += ended
        standing = fits.progress().values()
        spent = passes >= options.max_iter or all(progress.exhausted for progress in standing)
        if not ended or not (spent or all(progress.ready for progress in standing)):
            continue
        for fold, found in fits.certificates(rule).items():
            results.gaps[place, fold] = found.gap
            results.converged[place, fold] = rule.met(found)
        if spent or not fits.progress():
            return
