"""Results: figures with their bars, the CSV file and the table for the terminal."""

from __future__ import annotations

import csv
import os
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table
from rich.text import Text

from benchmarks.measure import Run


@dataclass(frozen=True)
class Bar:
    """A target for a figure: at least or at most `limit`."""

    limit: float
    at_least: bool = True

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}"


@dataclass(frozen=True)
class Row:
    """One figure. `value` is None if it could not be measured; `note` then says why.

    `series` are the columns of numbers behind the figure; they go to a separate file.
    """

    benchmark: str
    problem: str
    ours: str
    metric: str
    value: float | None
    peer: str = ""
    bar: Bar | None = None
    repetitions: dict[str, list[float]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    note: str = ""
    series: dict[str, list[float]] = field(default_factory=dict)

    @property
    def met(self) -> str:
        if self.bar is None:
            return ""
        if self.value is None:
            return "not measured"
        return "met" if self.bar.met_by(self.value) else "missed"

    def record(self) -> dict[str, str]:
        """Return the row in the form of the CSV file."""
        return {
            "benchmark": self.benchmark,
            "problem": self.problem,
            "ours": self.ours,
            "peer": self.peer,
            "metric": self.metric,
            "value": "" if self.value is None else f"{self.value:.6g}",
            "bar": "" if self.bar is None else str(self.bar),
            "met": self.met,
            "repetitions": "; ".join(
                f"{who}: {' '.join(f'{value:.4g}' for value in values)}" for who, values in self.repetitions.items()
            ),
            "versions": "; ".join(f"{name} {version}" for name, version in self.versions.items()),
            "processor": processor(),
            "note": self.note,
        }


# How names of metrics, which are keys of the CSV file, read in tables.
PRINTED = (
    (r"\b(microseconds) of (ours|the peer), median", r"\1, median, of \2"),
    (r",? of ours\b", ", manyclass"),
    (r",? of the peer\b", ", the other library"),
    (r"\bweights from (\S+) on\b", r"weights of at least \1"),
    (r"\bsize of block files, of\b", "size of block files relative to"),
    (r"\babove imports and memory=", "beyond imports and `memory` (negative: below the limit)"),
    (r"\babove imports\b", "beyond imports"),
    (r"\ban epoch\b", "per pass"),
    (r"\bepochs\b", "passes"),
    (r"(?<=\w) an? (?=(row|second|non-zero|class|label)\b)", " per "),
)


def printed(name: str) -> str:
    """Return the name of a metric or a model as tables print it."""
    for pattern, words in PRINTED:
        name = re.sub(pattern, words, name)
    return name


def of_benchmark(path: Path, benchmark: str) -> list[dict[str, str]]:
    """Read the records of a benchmark that have a value."""
    with path.open(newline="") as file:
        return [record for record in csv.DictReader(file) if record["benchmark"] == benchmark and record["value"]]


def figures(records: Iterable[dict[str, str]], column: str, digits: int) -> list[str]:
    """Return one Markdown row per figure: a column of its record, what was measured, the figure and its target."""
    return [
        f"| {record[column]} | {printed(record['metric'])} | {float(record['value']):.{digits}g} | {record['bar']} |"
        for record in records
    ]


def versions_of(*runs: Run) -> dict[str, str]:
    """Return the versions used in some runs; the last Python wins, which is that of the other library."""
    merged: dict[str, str] = {}
    for run in runs:
        merged |= run.reply.versions
    return merged


def processor() -> str:
    """Return the name of the processor and the number of cores available to this process."""
    name = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows to a CSV file, replacing those of the same benchmarks and problems.

    So the parts of a long run can be repeated one by one. Series are written in the same way, to a file named after
    their benchmark.
    """
    rows = list(rows)
    _replace(path, [row.record() for row in rows], ("benchmark", "problem"))
    for benchmark in dict.fromkeys(row.benchmark for row in rows if row.series):
        series = [record for row in rows if row.benchmark == benchmark for record in _series(row)]
        _replace(path.with_name(f"{benchmark}.csv"), series, ("problem",))


def _series(row: Row) -> Iterator[dict[str, str]]:
    for values in zip(*row.series.values(), strict=True):
        named = zip(row.series, (f"{value:.6g}" for value in values), strict=True)
        yield {"problem": row.problem, "ours": row.ours, **dict(named)}


def _replace(path: Path, records: list[dict[str, str]], key: tuple[str, ...]) -> None:
    """Write records to a file, replacing those with the same key."""
    replaced = {tuple(record[name] for name in key) for record in records}
    kept: list[dict[str, str]] = []
    if path.exists():
        with path.open(newline="") as file:
            told = csv.DictReader(file)
            kept = [record for record in told if tuple(record[name] for name in key) not in replaced]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept + records)


def table(title: str, rows: Sequence[Row]) -> Table:
    """Format rows for a terminal: each figure with its bar, followed by the versions and the processor."""
    versions = {name: version for row in rows for name, version in row.versions.items()}
    below = ", ".join([processor(), *(f"{name} {version}" for name, version in versions.items())])
    shown = Table(title=title, title_justify="left", caption=below, caption_justify="left")
    shown.add_column("problem", no_wrap=True)
    shown.add_column("solver")
    shown.add_column("figure")
    shown.add_column("value", justify="right", no_wrap=True)
    shown.add_column("bar", justify="right", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for row in rows:
        record = row.record()
        style = {"met": "green", "missed": "bold red", "not measured": "yellow"}.get(row.met, "")
        against = f"\nagainst {row.peer}" if row.peer and row.bar else ""
        more = "\n".join(part for part in (record["repetitions"] if row.bar else "", row.note) if part)
        shown.add_row(
            row.problem,
            row.ours + against,
            Text.assemble(printed(row.metric), "\n" if row.metric and more else "", (more, "dim")),
            "" if row.value is None else f"{row.value:.4g}",
            record["bar"],
            Text(row.met, style),
        )
    return shown
