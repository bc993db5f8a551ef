"""One-vs-rest by StreamSVM: a single pass over rows that arrive block by block."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._native import core, native
from .binary_stream import BinaryStream
from .solver import StopRule
from .stream import RowBlock, Variables


class EnclosingBallStream(BinaryStream):
    """Grow a ball around all rows for each class in one pass; see `native/binary/enclosing_ball.hpp`.

    Training cannot resume from a ball: a pass starts anew, even if there are variables. These are stored without the
    factors that all later rows contribute; loading them for a certificate applies the factors.
    """

    _balls: Any = None  # of a pass whose variables are stored without their factors
    _factors: np.ndarray | None = None  # by vector of classes and lane

    @property
    def unsettled(self) -> bool:  # type: ignore[override]
        return self._balls is not None

    def visit(self, rule: StopRule, rounds: int | str, pass_number: int) -> None:
        if self._balls is None:
            self._balls = native(core, "EnclosingBalls", self._dtype)(self._B)
        self._kernel.grow_balls(self._balls, self._seed_of(pass_number), self._threads, self._interrupt)

    def end_pass(self, rule: StopRule) -> None:
        self._passes += 1
        self._sums[:] = np.nan
        self.progress = self._report(ready=True, exhausted="one_pass")

    def begin_certificate(self) -> None:
        super().begin_certificate()
        if self._balls is not None:
            self._factors = self._balls.factors().reshape(self._B, -1)

    def load(self, block: RowBlock, variables: Sequence[Variables | None], *, project: bool = False) -> None:
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
        super().set_weights(exact)
        self._balls = self._factors = None
