"""Write the tables and the plot of docs/extreme-tables.md.

``python -m benchmarks ppdsparse-training extreme-tables label-scaling ppdsparse-memory`` measures and then writes
them; ``python -m benchmarks.extreme_report`` writes them again from the latest measurements. `published.csv`
has figures of Yen et al. (PPDSparse, KDD 2017), tables 1 to 3, for the data sets available here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT
from benchmarks.league_report import between
from benchmarks.measure import TOPS
from benchmarks.problems import FIVE_ROWS, FIXED_ROWS
from benchmarks.results import of_benchmark, printed
from benchmarks.solvers import NAPKINXC, PECOS_DEFAULTS

DOCUMENT = ROOT / "docs" / "extreme-tables.md"
PLOT = ROOT / "docs" / "images" / "label-scaling.png"
PUBLISHED = Path(__file__).with_name("published.csv")
BENCHMARKS = ("ppdsparse-training", "extreme-tables", "label-scaling", "ppdsparse-memory")

SERIES = {
    "five rows per label": [f"five-rows-{number}" for number in FIVE_ROWS],
    "500,000 rows": [f"labels-{number}" for number in FIXED_ROWS],
}
PEERS = {"napkinXC": NAPKINXC.name, "PECOS": PECOS_DEFAULTS.name}

Figures = dict[tuple[str, str, str], dict[str, float]]  # by problem, solver and peer


def write(results: Path, document: Path = DOCUMENT, plot: Path = PLOT) -> None:
    """Write the tables between the markers of their benchmarks, and the plot."""
    text = document.read_text()
    for benchmark, table in zip(BENCHMARKS, (training_table, methods_table, scaling_part, memory_table), strict=True):
        figures, processor = read(results, benchmark)
        if figures:
            text = between(text, benchmark, f"{table(figures)}\n\nMeasured on: {processor}.")
    document.write_text(text)
    scaling, _ = read(results, "label-scaling")
    if scaling:
        draw(plot, scaling)


def read(results: Path, benchmark: str) -> tuple[Figures, str]:
    """Return the figures of a benchmark and the name of the processor."""
    found: Figures = {}
    processor = ""
    for record in of_benchmark(results, benchmark):
        key = record["problem"], record["ours"], record["peer"]
        found.setdefault(key, {})[record["metric"]] = float(record["value"])
        processor = record["processor"]
    return found, processor


def published() -> dict[tuple[str, str], dict[str, float]]:
    """Return the papers' figures by problem and method."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    with PUBLISHED.open(newline="") as file:
        for record in csv.DictReader(file):
            for method in ("PDSparse", "DiSMEC", "PPDSparse"):
                found.setdefault((record["problem"], method), {})[record["metric"]] = float(record[method])
    return found


# ---- Tables


def training_table(figures: Figures) -> str:
    """Return a table with one row per other method: time, precision, size and memory of both."""
    heads = ("problem", "against", "times faster", "seconds", "P@1, P@3, P@5", "MB of the model", "peak MB")
    lines = _head(heads)
    for (problem, _, peer), own in figures.items():
        both = [
            [own[f"{metric} of {who}"] for who in ("ours", "the peer")]
            for metric in ("seconds", "MB of the model", "peak MB above imports")
        ]
        precision = " / ".join(_precisions(own, f" of {who}") for who in ("ours", "the peer"))
        taken, size, peak = (" / ".join(f"{value:.3g}" for value in pair) for pair in both)
        lines.append(_line(problem, peer, f"{own['times faster']:.2f}", taken, precision, size, peak))
    return "\n".join(lines)


def methods_table(figures: Figures) -> str:
    """Return a table with one row per method, next to the paper's figures where available."""
    heads = (
        "problem",
        "method",
        "P@1, P@3, P@5",
        "the same in the paper",
        "seconds",
        "seconds in the paper",
        "MB of the model",
        "density",
    )
    papers = published()
    lines = _head(heads)
    for (problem, method, _), own in figures.items():
        theirs = papers.get((problem, method.split(",")[0]), {})
        lines.append(
            _line(
                problem,
                method,
                _precisions(own),
                ", ".join(f"{theirs[f'P@{k}']:.2f}" for k in TOPS) if theirs else "–",
                f"{own['seconds']:.3g}",
                f"{theirs['seconds']:g}" if theirs else "–",
                f"{own['MB of the model']:.3g}",
                f"{own['density']:.2%}",
            )
        )
    return "\n".join(lines)


def scaling_part(figures: Figures) -> str:
    """Return the plot and a table with one row per number of labels."""
    heads = ("labels", "rows", "seconds", "ms per label", "support per label", "weights per label", "MB of the model")
    lines = [f"![Cost and size per label against the number of labels](images/{PLOT.name})", ""]
    lines += _head((*heads, "peak MB", "P@1", *(f"seconds of {peer}" for peer in PEERS)))
    alone = {problem: own for (problem, _, peer), own in figures.items() if not peer}
    for problem in (problem for problems in SERIES.values() for problem in problems if problem in alone):
        own = alone[problem]
        theirs = [seconds_of(figures, problem, name) for name in PEERS.values()]
        lines.append(
            _line(
                f"{own['labels']:,.0f}",
                f"{own['rows']:,.0f}",
                *(f"{own[name]:.4g}" for name in ("seconds", "milliseconds a label")),
                *(_known(own.get(f"{name} a label"), ".0f") for name in ("support", "weights")),
                *(f"{own[name]:,.0f}" for name in ("MB of the model", "peak MB above imports")),
                f"{own['P@1']:.2%}",
                *(_known(value, ".4g") for value in theirs),
            )
        )
    return "\n".join(lines)


def memory_table(figures: Figures) -> str:
    """Return a table with one row per figure."""
    lines = _head(("problem", "what", "figure"))
    for (problem, _, _), own in figures.items():
        lines += [_line(problem, printed(metric), f"{value:.4g}") for metric, value in own.items()]
    return "\n".join(lines)


def seconds_of(figures: Figures, problem: str, peer: str) -> float | None:
    """Return the seconds of another library on a problem, if measured."""
    for (name, _, other), own in figures.items():
        if (name, other) == (problem, peer):
            return own.get("seconds of the peer")
    return None


def _known(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"


def _precisions(own: dict[str, float], of: str = "") -> str:
    return ", ".join(f"{100 * own[f'P@{k}{of}']:.2f}" for k in TOPS)


def _head(names: Iterable[str]) -> list[str]:
    names = list(names)
    return [_line(*names), "|" + "---|" * len(names)]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


# ---- Plot


def draw(target: Path, figures: Figures) -> None:
    """Plot time, model size and memory per label against the number of labels."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    alone = {problem: own for (problem, _, peer), own in figures.items() if not peer}
    for place, (name, problems) in enumerate(SERIES.items()):
        own = [alone[problem] for problem in problems if problem in alone]
        if not own:
            continue
        look = {"color": f"C{place}", "marker": "os"[place], "label": f"PPDSparse, {name}"}
        labels = [each["labels"] for each in own]
        panels[0].plot(labels, [each["milliseconds a label"] for each in own], **look)
        panels[1].plot(labels, [each["MB of the model"] * 1e3 / each["labels"] for each in own], **look)
        panels[2].plot(labels, [each["peak MB above imports"] / 1e3 for each in own], **look)
    for place, (name, peer) in enumerate(PEERS.items()):
        times = {problem: seconds_of(figures, problem, peer) for problem in alone}
        known = [(alone[problem]["labels"], taken) for problem, taken in times.items() if taken is not None]
        if known:
            shown = [(K, 1e3 * taken / K) for K, taken in sorted(known)]
            panels[0].plot(
                *zip(*shown, strict=True), color="#888888", marker="x+"[place], label=f"{name}, five rows per label"
            )
    for axes, what in zip(
        panels, ("milliseconds per label", "KB of the model per label", "peak GB beyond imports"), strict=True
    ):
        _axes(axes, what)
    panels[2].set(yscale="linear", ylim=(0, None))
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=130, metadata={"Software": None})
    plt.close(figure)


def _axes(axes: Any, what: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set(xscale="log", yscale="log", xlabel="labels")
    axes.set_title(what, size=11)
    axes.set_xticks([1e3, 1e4, 1e5], ["1,000", "10,000", "100,000"])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.grid(color="#e5e5e5", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    write(ROOT / "benchmarks" / "results" / "results.csv")
