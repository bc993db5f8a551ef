"""One-vs-rest by Pegasos on rows that come a block at a time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..problems import Problem
from .binary_stream import BinaryStream
from .options import SolverOptions
from .solver import Certificate, Progress, StopRule
from .stream import RowBlock, StreamShape, Variables


class PegasosStream(BinaryStream):
    """All rows are visited in every pass, once; see `native/binary/pegasos.hpp`.

    The variable of a row is the mean of its responses, as many as there were passes. Variables from before, of
    another fit or other penalties, count as one response.

    Parameters
    ----------
    problem, shape, dtype, seed, threads, interrupt
        As all streams have them.
    update : "row" or "block"
        With how many rows the weights change at a time: one, or all that are loaded.
    """

    def __init__(
        self,
        problem: Problem,
        shape: StreamShape,
        options: SolverOptions,
        *,
        interrupt: Any,
        update: str,
    ):
        super().__init__(problem, shape, options, interrupt=interrupt)
        self._together = update == "block"
        self._n = shape.n_rows
        self._visits = 0  # of each row, before this pass
        self._rows = 0  # that this pass has come by
        self._unit = 1.0  # the sum of all responses is this times the weights
        self._share = 1.0  # of the tolerance that the estimate has to meet

    def load(self, block: RowBlock, variables: Sequence[Variables | None], *, project: bool = False) -> None:
        """Go on with these rows and variables."""
        super().load(block, variables, project=project)
        if project:
            self._visits = 1

    def visit(self, rule: StopRule, rounds: int | str, pass_number: int) -> None:
        """Visit the rows once."""
        begin, end = ((rows / self._n) for rows in (self._rows, self._rows + self._block.n_rows))
        time = (self._visits + begin, self._visits + end, float(self._visits), self._unit)
        seed = self._seed_of(pass_number)
        found = self._kernel.visit_by_pegasos(time, self._together, seed, self._threads, self._interrupt)
        loss, gap, norm, violation = np.array(found).T
        self._seen += loss, gap, norm
        self._violation = np.maximum(self._violation, violation)
        self._rows += self._block.n_rows

    def end_pass(self, rule: StopRule) -> None:
        """Estimate where the fit stands from what the rows have seen, each before its visit."""
        loss, gap, norm = self._seen
        self._sums = np.array([loss + norm / 2, loss + norm / 2 - gap, self._violation])
        self._passes += 1
        self._visits += 1
        self._rows = 0
        found = self._total()
        ready = replace(rule, tol=rule.tol * self._share).met(found)
        self.progress = Progress(
            self._passes, found.primal, found.dual, found.violation, active=1.0, ready=ready, pass_ended=True
        )
        self._begin_pass()

    def begin_certificate(self) -> None:
        """Forget what was added up for another one, and a pass that was broken off."""
        super().begin_certificate()
        self._rows = 0
        self._visits = max(1, self._visits)

    def set_weights(self, exact: Any) -> None:
        """Take over exact weights, rounded: those of the means."""
        super().set_weights(exact)
        self._unit = float(self._visits)

    def certificate(self, rule: StopRule) -> Certificate:
        """End a certificate; if it does not meet the rule, the next one comes when the estimate is better."""
        found = super().certificate(rule)
        if not rule.met(found):
            self._share /= 2
        return found
