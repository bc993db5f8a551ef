"""Write the tables of docs/store.md on conversion and on training from disk.

``python -m benchmarks store-conversion disk-vs-memory`` measures and then writes them; ``python -m
benchmarks.store_report`` writes them again from the latest measurements.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.league_report import between
from benchmarks.results import figures, of_benchmark

DOCUMENT = ROOT / "docs" / "store.md"
# The problems whose times are meaningful; others only try out the measurement.
SHOWN = {"store-conversion": "lshtc-2012", "disk-vs-memory": "text-700m"}


def write(results: Path, document: Path = DOCUMENT) -> None:
    """Write the tables of results between their markers."""
    text = document.read_text()
    for benchmark, problem in SHOWN.items():
        if own := [record for record in of_benchmark(results, benchmark) if record["problem"] == problem]:
            text = between(text, benchmark, table(own))
    document.write_text(text)


def table(records: list[dict[str, str]]) -> str:
    """Return Markdown, followed by the notes and the machine."""
    lines = ["| | what | figure | target |", "|---|---|---|---|", *figures(records, "ours", 4)]
    notes = dict.fromkeys(record["note"] for record in records if len(record["note"].split()) > 1)
    return "\n".join([*lines, "", f"{records[0]['processor']}. {'. '.join(notes)}."])


if __name__ == "__main__":
    write(ROOT / "benchmarks" / "results" / "results.csv")
