"""The cost of checkpoints."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from benchmarks.results import Bar, Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import ours

TITLES = {"checkpoint-cost": "A checkpoint every 60 seconds, 12,582 classes, for 150 seconds"}

EVERY = 60.0
# Far from converged at the time limit. Two checkpoints fall due before it, and a last one is written at the end.
RULE = {"stop": "gap", "tol": 1e-6, "time_limit": 150.0}


def cases() -> Iterator[Case]:
    """Whole rows, and leagues."""
    for solver in (ours("ww"), ours("ww", solver="leagues")):
        yield Case("checkpoint-cost", "wordnet", solver, share_of_time, bar=Bar(0.03, at_least=False))


def share_of_time(session: Session, case: Case) -> list[Row]:
    """Compare the seconds that a fit spends writing with the others; a single run is robust to other load."""
    problem = session.problem(case.problem)
    with tempfile.TemporaryDirectory(dir=session.runner.folder) as folder:
        run = session.runner.train(case.ours, problem, checkpoint=folder, every=EVERY, **RULE)
    writing = run.reply.figures.get("seconds of checkpoint", 0.0)
    return [
        case.row(
            "seconds writing / seconds not writing",
            writing / (run.seconds - writing),
            bar=case.bar,
            versions=versions_of(run),
            note=run.shortfall,
        ),
        case.row("seconds writing", writing),
        case.row("seconds in all", run.seconds),
    ]
