"""Stores: the speed of converting to them and reading them, and training from disk compared with memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.measure import Run, alternate, seconds, shortfalls, times_faster
from benchmarks.memory_limit import MemoryLimit, memory_limit
from benchmarks.results import Bar, Row, versions_of
from benchmarks.session import Case, Session
from benchmarks.solvers import DECODER, SKLEARN_READER, converter, ours_from_disk
from benchmarks.store_making import drop_from_cache, store_of_stream, write_text
from manyclass.data import BlockStore

TITLES = {
    "store-conversion": "LIBSVM text to a store, and reading the store, one core",
    "disk-vs-memory": "Training from disk within a twentieth of the size of the rows, compared with memory",
}

BYTES_PER_NONZERO = 12  # of rows in memory: index, value, and overhead
SHARE = 1 / 20  # of the size of the rows: the limit for training from disk, including program and page cache
# A smaller limit would not hold the program itself, so small problems get a larger share.
LEAST_LIMIT = 384 << 20
# MB of the program beyond `memory`, such as text that is being read.
OVERHEAD = Bar(64, at_least=False)
SMALLER = Bar(0.55, at_least=False)
# Memory for creating stores: no more than for training from them.
CONVERSION_MEMORY = 200_000_000
# The rows that another library has to read take this many times the limit.
BEYOND = 1.25


def cases() -> Iterator[Case]:
    """Small problems first, for --quick; their times mean little."""
    for problem in ("text-2m", "lshtc-2012"):
        quick = problem == "text-2m"
        for memory in ("64MB", "512MB"):
            yield Case("store-conversion", problem, converter(memory), conversion, bar=Bar(60), quick=quick)
        yield Case("store-conversion", problem, DECODER, decoding, bar=Bar(250), quick=quick)
    for loss in ("squared_hinge", "cs"):
        yield Case("disk-vs-memory", "text-2m", ours_from_disk(loss), beside_memory, quick=True)
    for loss in ("squared_hinge", "cs"):
        bar = Bar(1.5, at_least=False)
        yield Case("disk-vs-memory", "text-700m", ours_from_disk(loss), beside_memory, bar=bar)
    yield Case("disk-vs-memory", "text-700m", SKLEARN_READER, within_limit)


def conversion(session: Session, case: Case) -> list[Row]:
    """Measure MB of text per second, peak memory, and the size of the store."""
    text = _text(session, case.problem)
    runs = []
    for _ in range(session.repetitions):
        with tempfile.TemporaryDirectory(dir=session.runner.folder) as store:
            run = session.runner.do(case.ours, "convert", one_core=True, text=str(text), store=store)
            runs.append(run)
    megabytes = text.stat().st_size / 1e6
    figures, memory = runs[0].reply.figures, case.ours.options["memory"]
    return [
        case.row(
            "MB of text a second",
            megabytes / median(seconds(runs)),
            bar=case.bar,
            repetitions={"seconds": seconds(runs)},
            versions=versions_of(runs[0]),
            note=f"{megabytes:.0f} MB of text, {figures['nonzeros']:.0f} non-zeros, {figures['blocks']:.0f} blocks",
        ),
        case.row(
            "size of block files, of 12 bytes a non-zero",
            figures["block_bytes"] / figures["nonzeros"] / BYTES_PER_NONZERO,
            bar=SMALLER,
        ),
        _above_memory(case, runs, memory),
    ]


def decoding(session: Session, case: Case) -> list[Row]:
    """Measure a second pass over all blocks, with the files in the page cache and the memory already allocated."""
    store = _store(session, case.problem)
    runs = [
        session.runner.do(case.ours, "decode", one_core=True, store=str(store.path), warm=True)
        for _ in range(session.repetitions)
    ]
    return [
        case.row(
            "million non-zeros a second",
            store.nnz / 1e6 / median(seconds(runs)),
            bar=case.bar,
            repetitions={"seconds": seconds(runs)},
            versions=versions_of(runs[0]),
        )
    ]


def beside_memory(session: Session, case: Case) -> list[Row]:
    """Compare whole fits to the session's gap, from disk within a limit and in memory."""
    store = _store(session, case.problem)
    rule = {"stop": "gap", "tol": session.gap}
    where = {"store": str(store.path)}
    first = session.runner.do(case.ours, "fit", **where, **rule)
    limit = _limit(store)
    memory = limit - first.reply.baseline_bytes
    peaks: list[int | None] = []

    def from_disk() -> Run:
        drop_from_cache(store.path)
        with memory_limit(limit) as group:
            run = session.runner.do(case.ours, "fit", limit=group, memory=memory, **where, **rule)
            peaks.append(group.peak)
        return run

    disk, more = alternate(
        from_disk,
        lambda: session.runner.do(case.ours, "fit", **where, **rule),
        (session.repetitions, session.repetitions - 1),
    )
    in_memory = [first, *more]
    times = {"disk": seconds(disk), "memory": seconds(in_memory)}
    size = BYTES_PER_NONZERO * store.nnz
    return [
        case.row(
            "seconds from disk / in memory",
            times_faster(in_memory, disk),
            bar=case.bar,
            repetitions=times,
            versions=versions_of(first),
            note=_told(size, limit, memory, first.reply.baseline_bytes, shortfalls(*disk, *in_memory)),
        ),
        case.row("seconds from disk", median(times["disk"])),
        case.row("seconds in memory", median(times["memory"])),
        case.row("passes from disk", disk[0].reply.iterations),
        case.row("passes in memory", first.reply.iterations),
        _above_memory(case, disk, memory),
        case.row("peak MB of the process from disk", max(run.reply.peak_bytes for run in disk) / 1e6),
        case.row("peak MB of the process in memory", max(run.reply.peak_bytes for run in in_memory) / 1e6),
        *(case.row("peak MB of the control group, page cache included", peak / 1e6) for peak in peaks[:1] if peak),
    ]


def within_limit(session: Session, case: Case) -> list[Row]:
    """Let another library read the first rows within the same limit, and report how it ends."""
    limit = _limit(_store(session, case.problem))
    text = session.runner.folder / f"{case.problem}-first.svm"
    nonzeros = write_text(session.stream(case.problem), text, least=BEYOND * limit / BYTES_PER_NONZERO)
    with memory_limit(limit) as group:
        code, said = session.runner.ending(case.ours, "read", group, path=str(text))
        how = _ending(group, code, said)
    text.unlink()
    given = f"{nonzeros} non-zeros, {BYTES_PER_NONZERO * nonzeros / 1e6:.0f} MB, in a limit of {limit / 1e6:.0f} MB"
    return [case.row("exit code of the peer (0: it has read the rows)", code, note=f"{how}: {given}")]


def _ending(group: MemoryLimit, code: int, said: str) -> str:
    if group.kills:
        return "killed by the system for lack of memory"
    return said or ("it has read the rows" if code == 0 else f"it ended with exit code {code}")


def _above_memory(case: Case, runs: list[Run], memory: int) -> Row:
    """Return the peak minus the memory after imports and the memory that the program may use."""
    peak = max(run.reply.peak_bytes - run.reply.baseline_bytes for run in runs)
    return case.row("peak MB above imports and memory=", (peak - memory) / 1e6, bar=OVERHEAD, note="VmHWM")


def _told(size: int, limit: int, memory: int, baseline: int, shortfall: str) -> str:
    limits = (
        f"{size / 1e6:.0f} MB of rows, limit {limit / 1e6:.0f} MB, memory={memory / 1e6:.0f} MB: the limit minus the "
        f"{baseline / 1e6:.0f} MB that the program takes after its imports"
    )
    return f"{shortfall}; {limits}" if shortfall else limits


def _limit(store: BlockStore) -> int:
    return max(int(SHARE * BYTES_PER_NONZERO * store.nnz), LEAST_LIMIT)


def _store(session: Session, problem: str) -> BlockStore:
    folder = session.runner.folder / f"{problem}.store"
    return session.once(
        ("store", problem), lambda: store_of_stream(session.stream(problem), folder, CONVERSION_MEMORY)
    )


def _text(session: Session, problem: str) -> Path:
    path = session.runner.folder / f"{problem}.svm"

    def make() -> Path:
        write_text(session.stream(problem), path)
        return path

    return session.once(("text", problem), make)
