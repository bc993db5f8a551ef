"""One-vs-rest by Pegasos on rows that arrive block by block."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..problems import Problem
from .binary_stream import BinaryStream
from .options import SolverOptions
from .solver import Certificate, StopRule
from .stream import RowBlock, StreamShape, Variables


class PegasosStream(BinaryStream):
    """Visit every row once per pass; see `native/binary/pegasos.hpp`.

    The variable of a row is the mean of its responses, one per pass. Variables of another fit or of other penalties
    count as one response. `update` says whether the weights change after each "row", or after all loaded rows.
    """

    def __init__(self, problem: Problem, shape: StreamShape, options: SolverOptions, *, interrupt: Any, update: str):
        super().__init__(problem, shape, options, interrupt=interrupt)
        self._by_blocks = update == "block"
        self._n = shape.n_rows
        self._visits = 0  # per row, before this pass
        self._rows = 0  # visited in this pass
        self._unit = 1.0  # the weights times this are the sum of all responses
        self._share = 1.0  # of the tolerance that an estimate has to meet

    def load(self, block: RowBlock, variables: Sequence[Variables | None], *, project: bool = False) -> None:
        super().load(block, variables, project=project)
        if project:
            self._visits = 1

    def visit(self, rule: StopRule, rounds: int | str, pass_number: int) -> None:
        begin, end = ((rows / self._n) for rows in (self._rows, self._rows + self._block.n_rows))
        time = (self._visits + begin, self._visits + end, float(self._visits), self._unit)
        seed = self._seed_of(pass_number)
        found = self._kernel.visit_by_pegasos(time, self._by_blocks, seed, self._threads, self._interrupt)
        loss, gap, norm, violation = np.array(found).T
        self._seen += loss, gap, norm
        self._violation = np.maximum(self._violation, violation)
        self._rows += self._block.n_rows

    def end_pass(self, rule: StopRule) -> None:
        loss, gap, norm = self._seen
        self._sums = np.array([loss + norm / 2, loss + norm / 2 - gap, self._violation])
        self._passes += 1
        self._visits += 1
        self._rows = 0
        self.progress = self._report(ready=replace(rule, tol=rule.tol * self._share).met(self._total()))
        self._begin_pass()

    def begin_certificate(self) -> None:
        super().begin_certificate()
        self._rows = 0
        self._visits = max(1, self._visits)

    def set_weights(self, exact: Any) -> None:
        super().set_weights(exact)
        self._unit = float(self._visits)

    def certificate(self, rule: StopRule) -> Certificate:
        """If it does not meet the rule, the next one waits for a better estimate."""
        found = super().certificate(rule)
        if not rule.met(found):
            self._share /= 2
        return found
