"""The named entries: every claim about speed and memory, as a list of cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import block_report, defaults_report, extreme_report, league_report, prediction_report, store_report
from benchmarks.entries import (
    alone,
    block_minimisation,
    checkpoints,
    defaults,
    extreme,
    label_scaling,
    leagues,
    peers,
    prediction,
    reading,
    stores,
    threads,
)
from benchmarks.session import Case


@dataclass(frozen=True)
class Entry:
    """Cases that run and are shown together; `report` writes their tables in the documents from the CSV file."""

    name: str
    title: str
    cases: tuple[Case, ...]
    report: Callable[[Path], None] | None = None


def _entries() -> dict[str, Entry]:
    files = (peers, reading, threads, alone, leagues, checkpoints, stores, block_minimisation)
    files += (extreme, label_scaling, prediction, defaults)
    titles = {name: title for file in files for name, title in file.TITLES.items()}
    cases = [case for file in files for case in file.cases()]
    reports = {
        "league-scaling": league_report.write,
        "block-minimisation": block_report.write,
        "store-conversion": store_report.write,
        "disk-vs-memory": store_report.write,
        "prediction": prediction_report.write,
        "compression": prediction_report.write,
        "penalties": defaults_report.write,
        "calibration": defaults_report.write,
    } | dict.fromkeys(extreme_report.BENCHMARKS, extreme_report.write)
    return {
        name: Entry(name, title, tuple(case for case in cases if case.benchmark == name), reports.get(name))
        for name, title in titles.items()
    }


ENTRIES = _entries()
