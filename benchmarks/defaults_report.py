"""Write the tables of docs/choosing.md: accuracy and log loss against C, and ways to calibrate scores.

``python -m benchmarks penalties calibration`` measures and then writes them; ``python -m benchmarks.defaults_report``
writes them again from the latest measurements.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.league_report import between
from benchmarks.results import of_benchmark

DOCUMENT = ROOT / "docs" / "choosing.md"
SHOWN = ("0.25", "1", "4", "8", "16", "64")
METHODS = ("temperature", "sigmoid")
METRICS = ("log loss", "Brier score", "calibration error, %", "accuracy, %")
Figures = dict[tuple[str, str], dict[str, float]]


def write(results: Path, document: Path = DOCUMENT) -> None:
    """Write the tables of results between their markers."""
    text = document.read_text()
    for benchmark, table in (("penalties", against_penalties), ("calibration", by_method)):
        found = read(results, benchmark)
        if found:
            text = between(text, benchmark, table(found))
    document.write_text(text)


def read(results: Path, benchmark: str) -> Figures:
    """Return the figures by problem and loss, and by metric."""
    found: Figures = {}
    for record in of_benchmark(results, benchmark):
        own = found.setdefault((record["problem"], record["ours"]), {})
        own[record["metric"]] = float(record["value"])
    return found


def against_penalties(found: Figures) -> str:
    """Return a table with one row per problem and loss and one column per C."""
    lines = [f"| rows | loss | {' | '.join(f'C = {C}' for C in SHOWN)} |", "|---" * (len(SHOWN) + 2) + "|"]
    for (problem, loss), own in found.items():
        shown = [f"{own[f'accuracy, % at C = {C}']:.1f} / {own[f'log loss at C = {C}']:.2f}" for C in SHOWN]
        lines.append(f"| {problem} | `{loss}` | {' | '.join(shown)} |")
    return "\n".join(lines)


def by_method(found: Figures) -> str:
    """Return a table with one row per problem and loss and one column per metric, with one figure per method."""
    lines = [f"| rows | loss | {' | '.join(METRICS)} |", "|---" * (len(METRICS) + 2) + "|"]
    for (problem, loss), own in found.items():
        shown = [" / ".join(f"{own[f'{metric} by {method}']:.3g}" for method in METHODS) for metric in METRICS]
        lines.append(f"| {problem} | `{loss}` | {' | '.join(shown)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    write(ROOT / "benchmarks" / "results" / "results.csv")
