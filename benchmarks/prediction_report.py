"""Write the tables of docs/prediction.md: the comparison with other libraries, and what smaller models cost.

``python -m benchmarks prediction compression`` measures and then writes them; ``python -m
benchmarks.prediction_report`` writes them again from the latest measurements.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.league_report import between
from benchmarks.results import figures, of_benchmark, printed

DOCUMENT = ROOT / "docs" / "prediction.md"


def write(results: Path, document: Path = DOCUMENT) -> None:
    """Write the tables of results between their markers."""
    text = document.read_text()
    for benchmark, table in (("prediction", against_peers), ("compression", by_size)):
        if own := of_benchmark(results, benchmark):
            text = between(text, benchmark, f"{table(own)}\n\n{own[0]['processor']}.")
    document.write_text(text)


def against_peers(records: list[dict[str, str]]) -> str:
    """Return a table with one row per figure."""
    return "\n".join(["| against | what | figure | target |", "|---|---|---|---|", *figures(records, "peer", 3)])


def by_size(records: list[dict[str, str]]) -> str:
    """Return one table per problem, with one row per model and one column per figure."""
    tables = []
    for problem in dict.fromkeys(record["problem"] for record in records):
        own = [record for record in records if record["problem"] == problem]
        metrics = list(dict.fromkeys(record["metric"] for record in own))
        lines = [f"| {problem} | {' | '.join(map(printed, metrics))} |", "|---" * (len(metrics) + 1) + "|"]
        for name in dict.fromkeys(record["ours"] for record in own):
            values = {record["metric"]: float(record["value"]) for record in own if record["ours"] == name}
            lines.append(f"| {printed(name)} | {' | '.join(f'{values[metric]:.4g}' for metric in metrics)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


if __name__ == "__main__":
    write(ROOT / "benchmarks" / "results" / "results.csv")
