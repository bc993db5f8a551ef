"""One-vs-rest by StreamSVM: one pass over rows that come a block at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._native import core, native
from .binary_stream import BinaryStream
from .solver import Progress, StopRule
from .stream import RowBlock, Variables


class EnclosingBallStream(BinaryStream):
    """A ball around all rows for each class, grown in one pass; see `native/binary/enclosing_ball.hpp`.

    A ball cannot be gone on with: a pass begins anew, whatever variables there are. They are kept without the
    factors that all later rows give them, which they get when they are loaded for a certificate.
    """

    _balls: Any = None  # of a pass whose variables lack their factors
    _factors: np.ndarray | None = None  # by vectors of classes and lanes

    @property
    def unsettled(self) -> bool:  # type: ignore[override]
        """Whether variables lack their factors."""
        return self._balls is not None

    def visit(self, rule: StopRule, rounds: int | str, pass_number: int) -> None:
        """Let the balls grow to the rows."""
        if self._balls is None:
            self._balls = native(core, "EnclosingBalls", self._dtype)(self._B)
        self._kernel.grow_balls(self._balls, self._seed_of(pass_number), self._threads, self._interrupt)

    def end_pass(self, rule: StopRule) -> None:
        """There is no second one."""
        self._passes += 1
        self.progress = Progress(
            self._passes, np.nan, np.nan, np.nan, active=1.0, ready=True, pass_ended=True, exhausted="one_pass"
        )

    def begin_certificate(self) -> None:
        """Forget what was added up for another one; take the factors of the balls as they are."""
        super().begin_certificate()
        if self._balls is not None:
            self._factors = self._balls.factors().reshape(self._B, -1)

    def load(self, block: RowBlock, variables: Sequence[Variables | None], *, project: bool = False) -> None:
        """Go on with these rows and variables."""
        if project and self._factors is not None:
            variables = [None if part is None else self._times_factors(part) for part in variables]
        super().load(block, variables, project=project)

    def _times_factors(self, part: Variables) -> Variables:
        assert self._factors is not None
        bits = np.unpackbits(part["lanes"].view(np.uint8), bitorder="little").reshape(-1, 16)
        entry, lane = np.nonzero(bits)
        vector = np.repeat(np.arange(self._B), part["counts"])[entry]
        return part | {"values": part["values"] * self._factors[vector, lane]}

    def set_weights(self, exact: Any) -> None:
        """Take over exact weights, rounded: all variables have their factors."""
        super().set_weights(exact)
        self._balls = self._factors = None
