"""Time to get within 0.1 % of the objective value of another library, compared with its time."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.ladder import WITHIN, loosest
from benchmarks.measure import Run, alternate, seconds, shortfalls, times_faster
from benchmarks.results import Bar, Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import (
    LIBLINEAR_CS,
    LIBLINEAR_HINGE,
    LIBLINEAR_LOGISTIC_DUAL,
    LIBLINEAR_LOGISTIC_NEWTON,
    LIBLINEAR_SQUARED_HINGE,
    LIBLINEAR_SQUARED_HINGE_NEWTON,
    MULTICORE_SQUARED_HINGE,
    PECOS,
    SKLEARN_GRID_SEARCH,
    SKLEARN_MAXENT,
    SKLEARN_ONE_VS_ONE,
    ours,
)

# A peer that may never finish is stopped after this many times the seconds at which the target would be met.
LONGER = 1.5

TITLES = {
    "cs-liblinear": "Crammer-Singer against LIBLINEAR -s 4",
    "hinge-liblinear": "One-vs-rest hinge against LIBLINEAR -s 3",
    "squared-hinge-liblinear": "One-vs-rest squared hinge against LIBLINEAR -s 1",
    "squared-hinge-multicore": "One-vs-rest squared hinge against liblinear-multicore -s 1 -m 2",
    "squared-hinge-pecos": "One-vs-rest squared hinge with intercept against PECOS without a tree",
    "logistic-liblinear": "One-vs-rest logistic against LIBLINEAR -s 7 and -s 0",
    "newton-liblinear": "One-vs-rest by Newton's method against LIBLINEAR -s 0 and -s 2",
    "one-vs-one-sklearn": "One-vs-one squared hinge against scikit-learn's OneVsOneClassifier(LinearSVC)",
    "cv-sklearn": "5 folds, 9 values of C, against scikit-learn's GridSearchCV(LinearSVC, n_jobs=2)",
    "maxent-sklearn": "Maximum entropy against scikit-learn's LogisticRegression",
    "llw-alternating": "LLW against the published alternating algorithm, C = 100, gap 1e-3",
    "news20-one-thread": "One thread against one thread, 20 classes",
}


def cases() -> Iterator[Case]:
    """Every comparison of training times."""
    for problem, times in (("bench-1k", 8), ("wordnet-min5", 15)):
        yield _case("cs-liblinear", problem, LIBLINEAR_CS, times)
    for problem in ("bench-1k", "wordnet-min5"):
        yield _case("hinge-liblinear", problem, LIBLINEAR_HINGE, 20)
        yield _case("squared-hinge-liblinear", problem, LIBLINEAR_SQUARED_HINGE, 20)
        yield _case("squared-hinge-multicore", problem, MULTICORE_SQUARED_HINGE, 20, quick=False)
        yield _case("squared-hinge-pecos", problem, PECOS, 6, quick=False, fit_intercept=True)
    for peer in (LIBLINEAR_LOGISTIC_DUAL, LIBLINEAR_LOGISTIC_NEWTON):
        for problem, times in (("bench-1k", 10), ("news20", 2)):
            yield _case("logistic-liblinear", problem, peer, times, quick=False)
    for problem in ("bench-1k", "news20"):
        for peer in (LIBLINEAR_LOGISTIC_NEWTON, LIBLINEAR_SQUARED_HINGE_NEWTON):
            solver = ours(peer.loss, solver="newton")
            yield Case("newton-liblinear", problem, solver, to_peers_primal, peer, Bar(3))
    for problem in ("letter", "news20"):
        yield _case("one-vs-one-sklearn", problem, SKLEARN_ONE_VS_ONE, 10, quick=False)
    yield Case("cv-sklearn", "news20", ours("squared_hinge"), same_search, SKLEARN_GRID_SEARCH, Bar(10))
    for problem, times in (("bench-1k", 10), ("news20", 5)):
        yield _case("maxent-sklearn", problem, SKLEARN_MAXENT, times, quick=False)
    yield Case(
        "llw-alternating",
        "news20",
        ours("llw", C=100.0),
        same_gap,
        ours("llw", C=100.0, solver="alternating"),
        Bar(20),
    )
    for peer, times in ((LIBLINEAR_CS, 1.8), (LIBLINEAR_HINGE, 3), (LIBLINEAR_SQUARED_HINGE, 3)):
        solver = ours(peer.loss, threads=1, fit_intercept=False)
        bar = Bar(times)
        yield Case("news20-one-thread", "news20", solver, to_peers_primal, peer, bar, one_core=True)
    yield Case("news20-one-thread", "news20", ours("ww", threads=1), alone, one_core=True)


def _case(name, problem, peer, times, quick=True, fit_intercept=False) -> Case:
    solver = ours(peer.loss, fit_intercept=fit_intercept)
    quick = quick and problem == "bench-1k"
    return Case(name, problem, solver, to_peers_primal, peer, Bar(times), quick)


def to_peers_primal(session: Session, case: Case) -> list[Row]:
    """Measure the speedup over the peer at the loosest tolerance that reaches its primal value."""
    problem = session.problem(case.problem)
    first = session.runner.train(case.peer, problem, evaluate=True, one_core=case.one_core)

    def train(tolerance: float, *, evaluate: bool = False) -> Run:
        return session.runner.train(
            case.ours, problem, evaluate=evaluate, one_core=case.one_core, stop="gap", tol=tolerance
        )

    # The primal value of the certificate selects the tolerance; the reported one is computed here from the weights.
    tolerance = loosest(lambda tol: train(tol).reply.certificate["primal"], first.primal, session.tolerances)
    reached = train(tolerance, evaluate=True)
    further = (session.repetitions - 1, session.peer_repetitions(first.seconds) - 1)
    our_runs, peer_runs = alternate(
        lambda: train(tolerance),
        lambda: session.runner.train(case.peer, problem, one_core=case.one_core),
        further,
    )
    our_runs, peer_runs = [reached, *our_runs], [first, *peer_runs]
    both = {"ours": seconds(our_runs), "peer": seconds(peer_runs)}
    at = f"tol = {tolerance:g}, primal within {WITHIN - 1:.1%}"
    return [
        case.compared("times faster", times_faster(our_runs, peer_runs), our_runs, peer_runs),
        case.row(
            f"seconds of ours at {at}",
            median(both["ours"]),
            repetitions={"ours": both["ours"]},
            note=shortfalls(*our_runs),
        ),
        case.row("seconds of the peer", median(both["peer"]), repetitions={"peer": both["peer"]}),
        case.row("primal, ours / peer", reached.primal / first.primal),
        case.row("test error of ours", reached.error),
        case.row("test error of the peer", first.error),
        case.row("peak GB of ours", reached.reply.peak_bytes / 1e9),
        case.row("peak GB of the peer", first.reply.peak_bytes / 1e9),
    ]


def same_gap(session: Session, case: Case) -> list[Row]:
    """Measure the speedup over another of our solvers to a gap of 1e-3; it runs once, with a time limit."""
    problem = session.problem(case.problem)
    rule = {"stop": "gap", "tol": 1e-3, "max_iter": 1_000_000}
    runs = [session.runner.train(case.ours, problem, **rule) for _ in range(session.repetitions)]
    patience = LONGER * case.bar.limit * median(seconds(runs))
    peer = session.runner.train(case.peer, problem, time_limit=patience, **rule)
    times = {"ours": seconds(runs), "peer": [peer.seconds]}
    return [
        case.row(
            "times faster",
            peer.seconds / median(seconds(runs)),
            bar=case.bar,
            repetitions=times,
            versions=versions_of(runs[0]),
            note=shortfalls(*runs, peer),
        ),
        case.row("epochs of ours", runs[0].reply.iterations),
        case.row("epochs of the peer", peer.reply.iterations),
        case.row("gap of the peer (it has a time limit)", peer.reply.certificate["gap"]),
    ]


def same_search(session: Session, case: Case) -> list[Row]:
    """Measure the speedup in selecting C from the same values in the same folds."""
    problem = session.problem(case.problem)
    asked = {"Cs": [2.0**e for e in range(-5, 4)], "folds": 5}
    first = session.runner.search(case.peer, problem, **asked)
    our_runs, peer_runs = alternate(
        lambda: session.runner.search(case.ours, problem, **asked),
        lambda: session.runner.search(case.peer, problem, **asked),
        (session.repetitions, session.peer_repetitions(first.seconds) - 1),
    )
    peer_runs = [first, *peer_runs]
    note = f"ours: {our_runs[0].reply.note}; peer: {first.reply.note}"
    return [case.compared("times faster", times_faster(our_runs, peer_runs), our_runs, peer_runs, note)]


def alone(session: Session, case: Case) -> list[Row]:
    """Measure the seconds to the session's gap for a loss that no other library offers."""
    problem = session.problem(case.problem)
    runs = [
        session.runner.train(case.ours, problem, one_core=case.one_core, stop="gap", tol=session.gap)
        for _ in range(session.repetitions)
    ]
    return [case.timed(f"seconds to gap {session.gap:g}", runs)]
