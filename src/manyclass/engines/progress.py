"""Progress bar with the current gap and the time left, shown if `verbose`."""

import logging
import math
import time
from typing import Any

from ..solvers import Certificate, Progress, StopRule

logger = logging.getLogger("manyclass")
# Without rich, log at most one line per this many seconds.
SECONDS_BETWEEN_LINES = 2.0
# Omit the target on terminals with fewer columns.
NARROW = 100


class ProgressDisplay:
    """Show a progress bar if `verbose`, or log lines if rich is not installed."""

    def __init__(self, rule: StopRule, verbose: bool, *, by_classes: bool = False):
        self._rule, self._by_classes = rule, by_classes
        self._verbose = verbose
        self._bar: Any = None
        self._task: Any = None
        self._narrow = False
        self._first: float | None = None  # logarithm of the first gap (or violation) seen
        self._share = 0.0
        self._logged = -math.inf

    def __enter__(self) -> "ProgressDisplay":
        if self._verbose:
            try:
                from rich.console import Console
                from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
                from rich.progress import Progress as Bar
                from rich.table import Column
            except ModuleNotFoundError:
                return self
            console = Console(stderr=True)
            self._narrow = console.width < NARROW
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),  # shrinks on narrow terminals
                TextColumn("elapsed"),
                TimeElapsedColumn(table_column=Column(no_wrap=True)),
                TextColumn("remaining"),
                TimeRemainingColumn(table_column=Column(no_wrap=True)),
            )
            self._bar = Bar(*columns, console=console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task("first pass", total=1.0)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, progress: Progress, found: Certificate | None) -> None:
        """Show the current state of the fit."""
        if not self._verbose:
            return
        seen = found or Certificate(progress.primal, progress.dual, progress.violation)
        value = seen.gap if self._rule.stop == "gap" else seen.violation
        self._share = max(self._share, self._done(value, progress))
        kind = "estimate" if found is None else "certificate"
        target = "" if self._narrow else f"; target {self._rule.tol:.3g}"
        text = f"pass {progress.epochs:,g}, {self._rule.stop} {value:.3g} ({kind}{target})"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._share, description=text)
        elif time.monotonic() - self._logged > SECONDS_BETWEEN_LINES:
            self._logged = time.monotonic()
            logger.warning("%s, %.0f %% done", text, 100 * self._share)

    def _done(self, value: float, progress: Progress) -> float:
        if self._by_classes:
            return 1 - progress.active
        if not (math.isfinite(value) and value > 0):
            return 0.0
        # The gap falls by about the same factor in each pass, so measure progress by its logarithm.
        if self._first is None:
            self._first = math.log(value)
        way = self._first - math.log(self._rule.tol)
        return min(1.0, max(0.0, (self._first - math.log(value)) / way)) if way > 0 else 1.0
