"""What checkpoints cost a fit of some minutes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from benchmarks.measure import shortfalls
from benchmarks.results import Bar, Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import ours

TITLES = {"checkpoint-cost": "A checkpoint every 60 seconds against none, 12,582 classes to gap 1e-3"}

EVERY = 60.0


def cases() -> Iterator[Case]:
    """By whole rows, and by leagues."""
    for solver in (ours("ww"), ours("ww", solver="leagues")):
        yield Case("checkpoint-cost", "wordnet", solver, share_of_time, bar=Bar(0.03, at_least=False))


def share_of_time(session: Session, case: Case) -> list[Row]:
    """Seconds in which a fit writes, over those in which it does not: in one run, whatever else the machine does."""
    problem = session.problem(case.problem)
    rule = {"stop": "gap", "tol": 1e-3}
    without = session.runner.train(case.ours, problem, **rule)
    with tempfile.TemporaryDirectory(dir=session.runner.folder) as folder:
        run = session.runner.train(case.ours, problem, checkpoint=folder, every=EVERY, **rule)
    writing = run.reply.figures.get("seconds of checkpoint", 0.0)
    note = shortfalls(run, without)
    if run.seconds < 2 * EVERY:
        note = f"{note}; " * bool(note) + f"the fit took {run.seconds:.0f} s: hardly a checkpoint fell due"
    return [
        case.row(
            "seconds writing / seconds not writing",
            writing / (run.seconds - writing),
            bar=case.bar,
            versions=versions_of(run),
            note=note,
        ),
        case.row("seconds writing", writing),
        case.row("seconds with checkpoints", run.seconds),
        case.row("seconds without", without.seconds),
    ]
