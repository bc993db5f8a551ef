"""Benchmarks of manyclass alone: progress, memory, and test error against tolerance."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Run
from benchmarks.results import Bar, Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import SVMS, ours

TITLES = {
    "progress": "WW and CS: seconds and passes to a gap and to a violation",
    "llw-convergence": "LLW: passes to a gap for small and large C",
    "wordnet-memory": "12,582 classes: Crammer-Singer to gap 1e-2",
    "memory": "Peak memory in training, relative to data, weights and dual variables",
    "tolerances": "Test error and time against tolerance",
}

TARGETS = (("gap", 1e-1), ("gap", 1e-2), ("gap", 1e-3), ("kkt", 1e-1))
TOLERANCES = tuple(("gap", tol) for tol in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)) + tuple(
    ("kkt", tol) for tol in (0.5, 0.2, 0.1, 0.05, 0.01)
)
# Keys of `memory_`: the bytes that a fit stores.
STORED = ("data", "weights", "dual_variables")


def cases() -> Iterator[Case]:
    """Every problem and loss of each benchmark."""
    for problem in ("bench-1k", "wordnet-min5"):
        for loss in ("ww", "cs"):
            yield Case("progress", problem, ours(loss), progress)
        for loss in SVMS:
            yield Case("memory", problem, ours(loss), peak_over_stored, bar=Bar(1.3, at_least=False))
    epochs = Bar(100, at_least=False)
    yield Case("llw-convergence", "news20", ours("llw", C=1e4, tol=1e-3), epochs_to_gap, bar=epochs)
    for problem in ("letter", "usps", "satimage"):
        for C in (0.1, 1.0, 10.0):
            yield Case("llw-convergence", problem, ours("llw", C=C, tol=1e-2), epochs_to_gap)
    limit = Bar(1.5, at_least=False)
    yield Case("wordnet-memory", "wordnet", ours("cs"), peak_gigabytes, bar=limit)
    for problem in ("bench-1k", "wordnet-min5", "news20"):
        for loss in SVMS:
            yield Case("tolerances", problem, ours(loss), tolerance_table)


def progress(session: Session, case: Case) -> list[Row]:
    """Run one whole fit per target, so that each time includes the certificate."""
    problem = session.problem(case.problem)
    rows = []
    for stop, tol in TARGETS:
        runs = [
            session.runner.train(case.ours, problem, stop=stop, tol=tol) for _ in range(min(session.repetitions, 3))
        ]
        target = f"{'gap' if stop == 'gap' else 'violation'} {tol:g}"
        rows.append(case.timed(f"seconds to {target}", runs))
        rows.append(case.row(f"epochs to {target}", runs[0].reply.iterations, note=_certificate(runs[0])))
    return rows


def epochs_to_gap(session: Session, case: Case) -> list[Row]:
    """Measure passes and seconds of one fit, at the solver's own C and gap."""
    options = case.ours.options
    run = session.runner.train(
        case.ours, session.problem(case.problem), stop="gap", tol=options["tol"], max_iter=100_000
    )
    at = f"gap {options['tol']:g} at C = {options['C']:g}"
    return [
        case.row(
            f"epochs to {at}", run.reply.iterations, bar=case.bar, versions=versions_of(run), note=_certificate(run)
        ),
        case.row(f"seconds to {at}", run.seconds, repetitions={"ours": [run.seconds]}),
    ]


def peak_gigabytes(session: Session, case: Case) -> list[Row]:
    """Measure the peak resident memory of the training process, including interpreter and data."""
    run = session.runner.train(case.ours, session.problem(case.problem), evaluate=True, stop="gap", tol=1e-2)
    return [
        case.row(
            "peak GB",
            run.reply.peak_bytes / 1e9,
            bar=case.bar,
            versions=versions_of(run),
            note=_certificate(run),
        ),
        case.row("seconds to gap 0.01", run.seconds, repetitions={"ours": [run.seconds]}),
        case.row("test error", run.error),
    ]


def peak_over_stored(session: Session, case: Case) -> list[Row]:
    """Compare the peak, without interpreter and imports, with what the fit reports to store."""
    run = session.runner.train(case.ours, session.problem(case.problem), stop="gap", tol=session.gap)
    versions = versions_of(run)
    above = run.reply.peak_bytes - run.reply.baseline_bytes
    rows = [
        case.row("peak GB", run.reply.peak_bytes / 1e9, versions=versions, note=run.shortfall),
        case.row("peak GB above the interpreter", above / 1e9),
    ]
    missing = [name for name in STORED if name not in run.reply.memory]
    if missing:
        note = f"n/a: memory_ lacks the bytes of {', '.join(missing)}"
        return [case.row("peak / stored", None, bar=case.bar, versions=versions, note=note), *rows]
    stored = sum(run.reply.memory[name] for name in STORED)
    rows += [case.row(f"GB of {name.replace('_', ' ')}", run.reply.memory[name] / 1e9) for name in STORED]
    return [case.row("peak / stored", above / stored, bar=case.bar, versions=versions), *rows]


def tolerance_table(session: Session, case: Case) -> list[Row]:
    """Measure test error against tolerance, from which the defaults of `stop` and `tol` were chosen."""
    problem = session.problem(case.problem)
    rows = []
    for stop, tol in TOLERANCES:
        run = session.runner.train(case.ours, problem, evaluate=True, stop=stop, tol=tol)
        at = f"stop={stop} tol={tol:g}"
        rows += [
            case.row(f"test error at {at}", run.error, versions=versions_of(run), note=_certificate(run)),
            case.row(f"seconds at {at}", run.seconds, repetitions={"ours": [run.seconds]}),
            case.row(f"epochs at {at}", run.reply.iterations),
        ]
    return rows


def _certificate(run: Run) -> str:
    figures = ", ".join(f"{name} {value:.4g}" for name, value in run.reply.certificate.items())
    return f"{run.shortfall}: {figures}" if run.shortfall else figures
