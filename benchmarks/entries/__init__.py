"""The named entries: every claim about speed and memory, as a list of cases."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.entries import alone, peers, reading, threads
from benchmarks.session import Case


@dataclass(frozen=True)
class Entry:
    """Cases that are run and shown together."""

    name: str
    title: str
    cases: tuple[Case, ...]


def _entries() -> dict[str, Entry]:
    titles = peers.TITLES | reading.TITLES | threads.TITLES | alone.TITLES
    cases = [*peers.cases(), *reading.cases(), *threads.cases(), *alone.cases()]
    return {
        name: Entry(name, title, tuple(case for case in cases if case.benchmark == name))
        for name, title in titles.items()
    }


ENTRIES = _entries()
