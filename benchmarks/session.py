"""One run of the benchmarks: its thoroughness and its cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

from benchmarks import problems
from benchmarks.environments import UnavailableError
from benchmarks.ladder import TOLERANCES
from benchmarks.measure import Run, Runner, seconds, shortfalls
from benchmarks.problems import Problem
from benchmarks.results import Bar, Row, versions_of
from benchmarks.solvers import Solver
from benchmarks.store_making import Parts

Made = TypeVar("Made")


@dataclass
class Session:
    """Settings of a run, and the problems loaded so far.

    Parameters
    ----------
    runner : Runner
    repetitions : int
        Fits timed a figure.
    patience : float
        Seconds a peer may use for further repetitions of one fit: slow peers run once.
    gap : float
        Relative duality gap at which manyclass is compared with itself.
    tolerances : tuple of float
        Those that a comparison with a peer tries.
    load : callable
        Gives a problem by its name.
    stream : callable
        Gives the rows of one that is too large to be held, a part at a time.
    """

    runner: Runner
    repetitions: int = 5
    patience: float = 180.0
    gap: float = 1e-2
    tolerances: tuple[float, ...] = TOLERANCES
    load: Callable[[str], Problem] = problems.load
    stream: Callable[[str], Parts] = problems.stream
    _made: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def problem(self, name: str) -> Problem:
        return self.once(("problem", name), lambda: self.load(name))

    def once(self, what: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """Return something shared by several cases, created by the first one that needs it."""
        if what not in self._made:
            self._made[what] = make()
        return self._made[what]

    def peer_repetitions(self, first_seconds: float) -> int:
        """Return the total number of runs of a peer, given the time of its first fit."""
        affordable = 1 + int(self.patience / max(first_seconds, 1e-9))
        return min(self.repetitions, affordable)


@dataclass(frozen=True)
class Case:
    """One solver on one problem, beside a peer or alone; `measure` says what is compared."""

    benchmark: str
    problem: str
    ours: Solver
    measure: Callable[[Session, Case], list[Row]]
    peer: Solver | None = None
    bar: Bar | None = None
    quick: bool = False
    one_core: bool = False

    def row(self, metric: str, value: float | None, **more: Any) -> Row:
        """A figure of this case."""
        peer = self.peer.name if self.peer else ""
        return Row(self.benchmark, self.problem, self.ours.name, metric, value, peer=peer, **more)

    def timed(self, metric: str, runs: list[Run]) -> Row:
        """The median time of some runs of ours."""
        times = seconds(runs)
        return self.row(
            metric,
            median(times),
            repetitions={"ours": times},
            versions=versions_of(runs[0]),
            note=shortfalls(*runs),
        )

    def compared(self, metric: str, value: float, ours: list[Run], peer: list[Run], note: str = "") -> Row:
        """A figure that compares runs of ours with runs of the peer."""
        return self.row(
            metric,
            value,
            bar=self.bar,
            repetitions={"ours": seconds(ours), "peer": seconds(peer)},
            versions=versions_of(ours[0], peer[0]),
            note=note,
        )

    def run(self, session: Session) -> list[Row]:
        """Return the figures of the case, or one without a value that says why it could not be measured."""
        try:
            return self.measure(session, self)
        except UnavailableError as reason:
            return [self.row("", None, bar=self.bar, note=str(reason))]
