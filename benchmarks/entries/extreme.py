"""PPDSparse compared with one-vs-rest, of other libraries and ours: time, precision, size and memory."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import TOPS, Run, alternate, seconds, shortfalls, times_faster
from benchmarks.protocol import Labels
from benchmarks.results import Bar, Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import NAPKINXC, NAPKINXC_SQUARED_HINGE, PECOS_DEFAULTS, Solver, estimator

TITLES = {
    "ppdsparse-training": "PPDSparse to a gap of 1e-2 on every label against one-vs-rest, ours and others",
    "extreme-tables": "Precision, time and size of PPDSparse, DiSMEC, PDSparse and one-vs-rest",
    "ppdsparse-memory": "12,582 labels: peak memory of PPDSparse relative to the size of data and model",
}

# For every fit of ours, also in quick runs, since the claim is about this gap.
RULE = {"stop": "gap", "tol": 1e-2}
FASTER = Bar(3)
NOT_WORSE = Bar(0)
MEMORY = Bar(2, at_least=False)

PEERS = (NAPKINXC, NAPKINXC_SQUARED_HINGE, PECOS_DEFAULTS)
OTHERS = (estimator("OneVsRestSVC", loss="squared_hinge"), estimator("DiSMEC"), estimator("PDSparse"))

TABLES = ("bibtex", "delicious", "corel5k", "wordnet-min5", "wordnet")
TRAINING = ("bibtex", "delicious", "wordnet-min5", "wordnet")
# Settings other than the paper's lam = 0.01 and C = 1, which suffice on bibtex. On wordnet-min5 they gave a P@1 that
# was 0.1 points below that of PECOS; C = 2 was also better on held-out rows (47.8 %, not 47.5 %, in three of five
# folds), unlike 0.1, 3, 10 and lam up to 1. With half the squared hinge, C = 2 is the loss of PECOS at C = 1. On
# delicious C = 0.5 was best on held-out rows: 68.4 % in five folds, compared with 68.1, 68.2 and 67.9 for 0.3, 1, 2.
CHOSEN = {"delicious": {"C": 0.5}, "wordnet-min5": {"C": 2.0}, "wordnet": {"C": 2.0}}


def ppdsparse(problem: str) -> Solver:
    """Return PPDSparse with the settings used for a problem."""
    return estimator("PPDSparse", **CHOSEN.get(problem, {}))


def cases() -> Iterator[Case]:
    """Every problem with every method; only comparisons with other libraries have targets."""
    for problem in TRAINING:
        quick = problem == "bibtex"
        for peer in PEERS:
            yield Case("ppdsparse-training", problem, ppdsparse(problem), beside, peer, FASTER, quick)
        for other in OTHERS:
            yield Case("ppdsparse-training", problem, ppdsparse(problem), beside, other, quick=quick)
    for problem in TABLES:
        for method in (ppdsparse(problem), *OTHERS):
            yield Case("extreme-tables", problem, method, alone)
    yield Case("ppdsparse-memory", "wordnet", ppdsparse("wordnet"), peak_over_stored, bar=MEMORY)


def beside(session: Session, case: Case) -> list[Row]:
    """Measure the speedup over the peer, and the precision of both."""
    first, found = rank(session, case.peer, case.problem), rank(session, case.ours, case.problem)
    our_runs, peer_runs = alternate(
        lambda: train(session, case.ours, case.problem),
        lambda: train(session, case.peer, case.problem),
        (session.repetitions - 1, session.peer_repetitions(first.seconds) - 1),
    )
    our_runs, peer_runs = [found, *our_runs], [first, *peer_runs]
    note = shortfalls(*our_runs, *peer_runs)
    rows = [
        case.compared("times faster", times_faster(our_runs, peer_runs), our_runs, peer_runs, note),
        case.row(
            "P@1 of ours less the peer's",
            found.precision[1] - first.precision[1],
            bar=NOT_WORSE if case.bar else None,
        ),
    ]
    for who, runs in (("ours", our_runs), ("the peer", peer_runs)):
        rows += [case.row(f"{metric} of {who}", value) for metric, value in figures(runs).items()]
    return rows


def alone(session: Session, case: Case) -> list[Row]:
    """Return the figures of one method."""
    found = rank(session, case.ours, case.problem)
    runs = [found, *(train(session, case.ours, case.problem) for _ in range(min(session.repetitions, 3) - 1))]
    return [
        case.timed("seconds", runs),
        *(case.row(metric, value) for metric, value in figures(runs).items() if metric != "seconds"),
    ]


def peak_over_stored(session: Session, case: Case) -> list[Row]:
    """Compare the peak, without interpreter and imports, with the bytes of the rows and the model."""
    run = train(session, case.ours, case.problem)
    problem = session.problem(case.problem)
    above = run.reply.peak_bytes - run.reply.baseline_bytes
    data, model = _bytes(problem.X) + _bytes(problem.y), run.reply.figures["weight_bytes"]
    return [
        case.row(
            "peak / (data + model)",
            above / (data + model),
            bar=case.bar,
            versions=versions_of(run),
            note=run.shortfall,
        ),
        case.row("peak MB above imports", above / 1e6),
        case.row("MB of data", data / 1e6),
        case.row("MB of the model", model / 1e6),
        case.row("seconds", run.seconds),
    ]


def _bytes(rows: Labels) -> int:
    if isinstance(rows, np.ndarray):
        return rows.nbytes
    return rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes


def figures(runs: list[Run]) -> dict[str, float]:
    """Summarise some fits of one solver; the first also ranked the labels of the test rows."""
    found = runs[0]
    told = {f"P@{k}": found.precision[k] for k in TOPS}
    told["seconds"] = median(seconds(runs))
    told["MB of the model"] = found.reply.figures["model_bytes"] / 1e6
    told["peak MB above imports"] = max(run.reply.peak_bytes - run.reply.baseline_bytes for run in runs) / 1e6
    names = ("density", "largest gap of a label")
    return told | {name: found.reply.figures[name] for name in names if name in found.reply.figures}


def rank(session: Session, solver: Solver, problem: str) -> Run:
    """Train, and find the best labels of the test rows."""
    return session.runner.rank(solver, session.problem(problem), **_rule(solver))


def train(session: Session, solver: Solver, problem: str) -> Run:
    """Train only."""
    return session.runner.train(solver, session.problem(problem), **_rule(solver))


def _rule(solver: Solver) -> dict[str, Any]:
    return RULE if solver.environment is None else {}
