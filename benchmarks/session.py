"""One run of the benchmarks: its settings and its cases."""

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
        Timed fits per figure.
    patience : float
        Seconds that another library may take to repeat a fit: slow ones run only once.
    gap : float
        Relative duality gap at which manyclass is compared with itself.
    tolerances : tuple of float
        Tolerances to try in a comparison with another library.
    load : callable
        Returns a problem by its name.
    stream : callable
        Yields the rows of a problem that does not fit in memory, part by part.
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
    """One solver on one problem, alone or compared with another (`peer`); `measure` does the measuring."""

    benchmark: str
    problem: str
    ours: Solver
    measure: Callable[[Session, Case], list[Row]]
    peer: Solver | None = None
    bar: Bar | None = None
    quick: bool = False
    one_core: bool = False

    def row(self, metric: str, value: float | None, **more: Any) -> Row:
        """Return a figure of this case."""
        peer = self.peer.name if self.peer else ""
        return Row(self.benchmark, self.problem, self.ours.name, metric, value, peer=peer, **more)

    def timed(self, metric: str, runs: list[Run]) -> Row:
        """Return the median time of some of our runs."""
        times = seconds(runs)
        return self.row(
            metric,
            median(times),
            repetitions={"ours": times},
            versions=versions_of(runs[0]),
            note=shortfalls(*runs),
        )

    def compared(self, metric: str, value: float, ours: list[Run], peer: list[Run], note: str = "") -> Row:
        """Return a figure that compares our runs with those of the peer."""
        return self.row(
            metric,
            value,
            bar=self.bar,
            repetitions={"ours": seconds(ours), "peer": seconds(peer)},
            versions=versions_of(ours[0], peer[0]),
            note=note,
        )

    def run(self, session: Session) -> list[Row]:
        """Return the figures of the case, or a single row without a value, whose note says why."""
        try:
            return self.measure(session, self)
        except UnavailableError as reason:
            return [self.row("", None, bar=self.bar, note=str(reason))]
