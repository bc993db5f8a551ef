"""Cross-validation from a store: each block is read once per pass for all folds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._native import core
from ..problems import Problem
from .disk import DiskFits, new_variables
from .disk_engine import DiskEngine, DiskJob
from .options import FitOptions
from .stopping import listening
from .stored_rows import StoredRows


class FoldResults(NamedTuple):
    """Results per penalty and fold."""

    accuracies: np.ndarray
    gaps: np.ndarray
    converged: np.ndarray


def cross_validate(
    problem: Problem, data: StoredRows, engine: DiskEngine, Cs: Sequence[float], folds: int, options: FitOptions
) -> FoldResults:
    """Train all folds for ascending penalties, each starting from the solution for the previous one.

    Rows are assigned to folds at random by their ids. `options.max_iter` applies to each penalty. Ctrl-C raises
    KeyboardInterrupt.
    """
    accuracies, gaps = np.zeros((2, len(Cs), folds))
    results = FoldResults(accuracies, gaps, np.zeros((len(Cs), folds), bool))
    interrupt: Any = core.Interrupt()
    jobs = [DiskJob(problem, replace(data, C=C), engine, options, interrupt) for C in Cs]
    variables = [new_variables(jobs[0]) for _ in range(folds)]
    try:
        with listening(interrupt):
            fits = DiskFits(jobs[0], variables, folds)
            for c, job in enumerate(jobs):
                if c:
                    fits.start(job)
                _train(fits, options, interrupt, c, results)
                results.accuracies[c] = fits.held_out_accuracies()
    finally:
        for store in variables:
            store.close()
    return results


def _train(fits: DiskFits, options: FitOptions, interrupt: Any, c: int, results: FoldResults) -> None:
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
            results.gaps[c, fold] = found.gap
            results.converged[c, fold] = rule.met(found)
        if spent or not fits.progress():
            return
