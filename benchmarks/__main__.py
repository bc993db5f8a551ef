"""``python -m benchmarks``: run all benchmarks, only the quick ones, or the named ones."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console

from benchmarks.entries import ENTRIES, Entry
from benchmarks.ladder import TOLERANCES
from benchmarks.measure import Runner
from benchmarks.results import Row, table, write
from benchmarks.session import Session

RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run the requested benchmarks. A missed target is reported but is not an error: the machine may be busy."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("entry", nargs="*", help="names of entries; all by default")
    parser.add_argument("--list", action="store_true", help="list the entries")
    parser.add_argument("--quick", action="store_true", help="the small cases only, one repetition")
    parser.add_argument("--problem", action="append", help="only this problem (may be repeated)")
    parser.add_argument("--repetitions", type=int, help="timed fits per figure (5; with --quick 1)")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds a single fit may take (3600)")
    asked = parser.parse_args(arguments)
    console = Console()
    if asked.list:
        for entry in ENTRIES.values():
            console.print(f"{entry.name:26}{entry.title}", highlight=False, soft_wrap=True)
        return 0
    unknown = [name for name in asked.entry if name not in ENTRIES]
    if unknown:
        parser.error(f"no entry {', '.join(unknown)}; --list shows the names")

    target = RESULTS / ("quick.csv" if asked.quick else "results.csv")
    every: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="manyclass-bench-") as folder:
        session = _session(Runner(Path(folder), asked.timeout), asked)
        for name in asked.entry or ENTRIES:
            rows = _run(ENTRIES[name], session, asked, console)
            if rows:
                write(target, rows)
                console.print(table(ENTRIES[name].title, rows))
                report = ENTRIES[name].report
                if report and not asked.quick:
                    report(target)
            every += rows
    count = Counter(row.met for row in every)
    console.print(
        f"{count['met']} targets met, {count['missed']} missed, {count['not measured']} not measured; "
        f"all figures are in {target}",
        soft_wrap=True,
    )
    return 0


def _session(runner: Runner, asked: argparse.Namespace) -> Session:
    if asked.quick:
        return Session(
            runner, repetitions=asked.repetitions or 1, patience=0.0, gap=1e-1, tolerances=TOLERANCES[1::2]
        )
    return Session(runner, repetitions=asked.repetitions or 5)


def _run(entry: Entry, session: Session, asked: argparse.Namespace, console: Console) -> list[Row]:
    rows: list[Row] = []
    for case in entry.cases:
        if (asked.quick and not case.quick) or (asked.problem and case.problem not in asked.problem):
            continue
        start = time.perf_counter()
        with console.status(f"{entry.name}: {case.ours.name} on {case.problem}"):
            rows += case.run(session)
        taken = time.perf_counter() - start
        console.print(f"{entry.name}: {case.ours.name} on {case.problem}, {taken:.0f} s", style="dim")
    return rows


if __name__ == "__main__":
    sys.exit(main())
