"""Leagues of classes: a pass on threads and ranks, and whole fits compared with whole rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

import numpy as np

from benchmarks.cost_model import parcels
from benchmarks.measure import Run, alternate, shortfalls, times_faster
from benchmarks.results import Bar, Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import epochs_of_leagues, ours, ours_on_ranks
from manyclass.solvers.layout import tail_rows
from manyclass.solvers.leagues import LISTED

TITLES = {
    "league-scaling": "Ten passes of leagues, C = 1, no shrinking, on threads and ranks",
    "leagues-vs-rows": "Leagues against whole rows, and two threads against one, to violation 0.1",
    "ranks-vs-threads": "Two ranks of one thread against one rank of two, to violation 0.1; what they exchange",
}

# The default numbers of leagues.
LEAGUES = {"lshtc-small": 8, "wordnet-min5": 20, "wordnet": 32}
# On one core also with other numbers, to separate the cost of a class from that of a visit.
OTHER_LEAGUES = (8, 16, 32)
SETUPS = ((1, 1), (1, 2), (2, 1), (4, 1))  # ranks, threads of each
RULE = {"stop": "kkt", "tol": 0.1}


def cases() -> Iterator[Case]:
    """Every problem on every setup; then the comparisons with targets."""
    for problem, leagues in LEAGUES.items():
        yield Case("league-scaling", problem, epochs_of_leagues(leagues), shape)
        for ranks, threads in SETUPS:
            yield Case("league-scaling", problem, epochs_of_leagues(leagues, ranks, threads), epochs)
        for other in OTHER_LEAGUES:
            if other != leagues:
                yield Case("league-scaling", problem, epochs_of_leagues(other), epochs)
    two, one = ours("ww", solver="leagues"), ours("ww", threads=1, solver="leagues")
    for problem in LEAGUES:
        yield Case("leagues-vs-rows", problem, two, times_as_long, ours("ww"), Bar(1.5, at_least=False))
        yield Case("leagues-vs-rows", problem, two, faster, one, Bar(1.7))
    for problem in ("lshtc-small", "wordnet"):
        yield Case("ranks-vs-threads", problem, ours_on_ranks(2), times_as_long, two, Bar(1.3, at_least=False))
        ranks = epochs_of_leagues(LEAGUES[problem], ranks=2)
        alone = epochs_of_leagues(LEAGUES[problem])
        yield Case("ranks-vs-threads", problem, ranks, exchanged, alone, Bar(0.2, at_least=False))


def shape(session: Session, case: Case) -> list[Row]:
    """Return the inputs of the cost model for a problem."""
    problem = session.problem(case.problem)
    n, K = problem.X.shape[0], int(problem.y.max()) + 1
    rows_of = np.bincount(problem.X.indices, minlength=problem.X.shape[1])
    head = rows_of > tail_rows(K, LISTED)
    return [
        case.row("rows", n),
        case.row("classes", K),
        case.row("non-zeros a row of frequent features", rows_of[head].sum() / n),
        case.row("frequent features", int(head.sum())),
        case.row("features of two rows or more", int((rows_of > 1).sum())),
    ]


def epochs(session: Session, case: Case) -> list[Row]:
    """Return the figures of a pass as medians over several runs."""
    problem = session.problem(case.problem)
    runs = [session.runner.epochs(case.ours, problem) for _ in range(min(session.repetitions, 3))]

    def figure(name: str) -> list[float]:
        return [run.reply.figures[name] for run in runs]

    return [
        case.row(
            "seconds an epoch",
            median(figure("seconds")),
            repetitions={"runs": figure("seconds")},
            versions=versions_of(runs[0]),
        ),
        case.row("seconds waiting an epoch", median(figure("waiting"))),
        case.row("MB exchanged an epoch", median(figure("bytes")) / 1e6),
        case.row("MB of a league", median(figure("league_bytes")) / 1e6),
        case.row("dual variables a row", median(figure("support"))),
        case.row("seconds to pack and unpack a league", median(figure("packing"))),
        case.row("peak GB of a rank", median(figure("peak_bytes")) / 1e9),
    ]


def _in_turn(session: Session, case: Case) -> tuple[list[Run], list[Run]]:
    problem = session.problem(case.problem)
    return alternate(
        lambda: session.runner.train(case.ours, problem, **RULE),
        lambda: session.runner.train(case.peer, problem, **RULE),
        (session.repetitions, session.repetitions),
    )


def _compared(metric: str, ratio: Callable[[list[Run], list[Run]], float]) -> Callable[[Session, Case], list[Row]]:
    def measure(session: Session, case: Case) -> list[Row]:
        our_runs, peer_runs = _in_turn(session, case)
        note = shortfalls(*our_runs, *peer_runs)
        return [case.compared(metric, ratio(our_runs, peer_runs), our_runs, peer_runs, note)]

    return measure


times_as_long = _compared("times as long", lambda our_runs, peer_runs: 1 / times_faster(our_runs, peer_runs))
faster = _compared("times faster", times_faster)


def exchanged(session: Session, case: Case) -> list[Row]:
    """Compare the bytes exchanged with the cost model, given the leagues' bytes in a run on one rank."""
    problem = session.problem(case.problem)
    run, alone = (session.runner.epochs(solver, problem) for solver in (case.ours, case.peer))
    leagues = case.ours.options["leagues"]
    modelled = parcels(leagues, case.ours.ranks) * alone.reply.figures["league_bytes"]
    measured = run.reply.figures["bytes"]
    return [
        case.row(
            "bytes exchanged an epoch, away from the cost model",
            abs(measured / modelled - 1),
            bar=case.bar,
            versions=versions_of(run),
        ),
        case.row("MB exchanged an epoch", measured / 1e6),
        case.row("MB exchanged an epoch by the cost model", modelled / 1e6),
    ]
