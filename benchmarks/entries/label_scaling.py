"""Cost per label as their number grows: synthetic text with a fixed number of rows, or of rows per label."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.entries.extreme import beside, figures, rank
from benchmarks.problems import FIVE_ROWS, FIXED_ROWS
from benchmarks.results import Row
from benchmarks.session import Case, Session
from benchmarks.solvers import NAPKINXC, PECOS_DEFAULTS, estimator

TITLES = {"label-scaling": "PPDSparse on synthetic text: the cost per label, for 1,000 to 200,000 labels"}

PPDSPARSE = estimator("PPDSparse")
# The time of other libraries is proportional to labels times rows: only these finish within minutes.
WITH_PEERS = ("five-rows-1k", "five-rows-3k")


def cases() -> Iterator[Case]:
    """Few labels first."""
    for number in FIVE_ROWS:
        yield Case("label-scaling", f"five-rows-{number}", PPDSPARSE, of_a_label)
    for problem in WITH_PEERS:
        for peer in (NAPKINXC, PECOS_DEFAULTS):
            yield Case("label-scaling", problem, PPDSPARSE, beside, peer)
    for number in FIXED_ROWS:
        yield Case("label-scaling", f"labels-{number}", PPDSPARSE, of_a_label)


def of_a_label(session: Session, case: Case) -> list[Row]:
    """Run a single fit: the largest take many minutes, and the figures span two orders of magnitude."""
    problem = session.problem(case.problem)
    run = rank(session, case.ours, case.problem)
    (n, d), K = problem.X.shape, problem.K
    support = run.reply.figures.get("support")
    return [
        case.timed("seconds", [run]),
        case.row("labels", K),
        case.row("rows", n),
        case.row("features", d),
        case.row("non-zeros", problem.X.nnz),
        case.row("milliseconds a label", 1e3 * run.seconds / K),
        case.row("support a label", None if support is None else support / K),
        case.row("weights a label", run.reply.figures["density"] * d),
        *(case.row(metric, value) for metric, value in figures([run]).items() if metric != "seconds"),
    ]
