"""Two threads compared with one, on an idle machine and with all cores busy."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import alternate, busy_cores, seconds, shortfalls, times_faster
from benchmarks.results import Bar, Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import SVMS, ours

TITLES = {
    "threads": "Two threads against one",
    "threads-busy": "Two threads against one while another process spins on every core",
}


def cases() -> Iterator[Case]:
    """Every loss on every problem; with 20 classes or busy cores, the target is only not to be slower."""
    for problem, times in (("bench-1k", 1.6), ("wordnet-min5", 1.6), ("news20", 1.0)):
        for loss in SVMS:
            two, one = ours(loss, threads=2), ours(loss, threads=1)
            quick = problem == "bench-1k"
            yield Case("threads", problem, two, side_by_side, one, Bar(times), quick)
            yield Case("threads-busy", problem, two, with_busy_cores, one, Bar(1.0))


def side_by_side(session: Session, case: Case) -> list[Row]:
    """Measure the speedup at the same gap."""
    problem = session.problem(case.problem)
    our_runs, peer_runs = alternate(
        lambda: session.runner.train(case.ours, problem, stop="gap", tol=session.gap),
        lambda: session.runner.train(case.peer, problem, stop="gap", tol=session.gap),
        (session.repetitions, session.repetitions),
    )
    return [
        case.row(
            f"times faster to gap {session.gap:g}",
            times_faster(our_runs, peer_runs),
            bar=case.bar,
            repetitions={"two": seconds(our_runs), "one": seconds(peer_runs)},
            versions=versions_of(our_runs[0]),
            note=shortfalls(*our_runs, *peer_runs),
        )
    ]


def with_busy_cores(session: Session, case: Case) -> list[Row]:
    """Measure the same while other processes keep every core busy."""
    # Loaded before the cores are busy, which should only affect the measurement.
    session.problem(case.problem)
    with busy_cores():
        return side_by_side(session, case)
