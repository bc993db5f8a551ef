"""Write the tables and the plot of docs/leagues.md on how leagues scale.

``python -m benchmarks league-scaling`` measures and then writes them; ``python -m benchmarks.league_report`` writes
them again from the latest measurements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import cost_model
from benchmarks.cost_model import Machine, Network, Sample, Shape
from benchmarks.environments import ROOT
from benchmarks.results import of_benchmark
from manyclass.data.synthetic import CLASS_SIZE_SPREAD, PRESETS
from manyclass.problems import PROBLEMS
from manyclass.solvers.schedule import divide_classes, league_count

DOCUMENT = ROOT / "docs" / "leagues.md"
PLOT = ROOT / "docs" / "images" / "league-scaling.png"

# Between processes of one machine: also an assumption. A parcel is copied twice, and ranks poll every 0.2 ms.
LOCAL = Network(bandwidth=2e9, latency=5e-4)
NETWORKS = {"10 Gbit/s": Network(1.25e9, 3e-4), "100 Gbit/s": Network(12.5e9, 3e-4)}
RANKS = (4, 16, 64, 256, 1024)
# Counted in synthetic text of these shapes: non-zeros of frequent features per row, frequent features, and features
# of more than one row. Last, the share of weights that are not 0 at the optimum for C = 1 on the real data, from
# Table 3 of Alber et al.
PAPER = {
    "lshtc-small": (124.3, 15_646, 35_306, 0.0574),
    "lshtc-large": (106.1, 36_524, 285_967, 0.0161),
    "lshtc-2012": (123.9, 121_973, 431_665, 0.0142),
    "lshtc-2011": (122.2, 126_307, 445_618, 0.0111),
}


Setup = tuple[int, int, int]  # leagues, ranks, threads of each
Figures = dict[str, dict[Setup, dict[str, float]]]  # by problem and setup
Predicted = dict[str, dict[str, dict[int, tuple[int, float, float]]]]  # by shape, network and ranks


@dataclass(frozen=True)
class Measured:
    """Ten passes over a problem on one setup, with the predictions of the cost model."""

    problem: str
    leagues: int
    ranks: int
    threads: int
    figures: dict[str, float]
    shape: Shape
    seconds: float
    megabytes: float

    @property
    def setup(self) -> str:
        return f"{self.ranks} x {self.threads}"


def write(results: Path, document: Path = DOCUMENT, plot: Path = PLOT) -> None:
    """Write the tables between their markers, and the plot."""
    found, cores = read(results)
    if not any(setup[1] > 1 for _, setup, _ in measured(found)):
        return  # nothing to show without mpirun or without data
    shapes = {problem: shape_of(figures) for problem, figures in found.items()}
    machine = cost_model.fit_machine(
        [
            Sample(
                in_use(shapes[problem], leagues, figures),
                leagues,
                figures["seconds an epoch"],
                figures["seconds to pack and unpack a league"],
            )
            for problem, (leagues, ranks, threads), figures in measured(found)
            if ranks == threads == 1
        ]
    )
    runs = list(compare(found, shapes, machine, cores))
    predicted = predict(machine)
    text = document.read_text()
    text = between(text, "measured", measured_table(runs, machine))
    text = between(text, "predicted", predicted_table(predicted, runs))
    document.write_text(text)
    draw(plot, runs, predicted)


def read(results: Path) -> tuple[Figures, int]:
    """Return the figures by problem and setup, and the number of cores of the machine."""
    found: Figures = {}
    cores = 1
    for record in of_benchmark(results, "league-scaling"):
        leagues, ranks, threads = map(int, re.findall(r": (\d+)", record["ours"]))
        setups = found.setdefault(record["problem"], {})
        setups.setdefault((leagues, ranks, threads), {})[record["metric"]] = float(record["value"])
        cores = int(record["processor"].rsplit(", ", 1)[1].split()[0])
    return found, cores


def measured(found: Figures) -> Iterator[tuple[str, Setup, dict[str, float]]]:
    """Yield the setups that could be measured, with their problems and figures."""
    for problem, setups in found.items():
        for setup, figures in setups.items():
            if "seconds an epoch" in figures:
                yield problem, setup, figures


def shape_of(setups: dict[Setup, dict[str, float]]) -> Shape:
    """Return the shape of a problem, which is among the figures of its first setup."""
    figures = next(figures for figures in setups.values() if "rows" in figures)
    return Shape(
        rows=int(figures["rows"]),
        classes=int(figures["classes"]),
        nonzeros=figures["non-zeros a row of frequent features"],
        heads=int(figures["frequent features"]),
        shared=int(figures["features of two rows or more"]),
    )


def in_use(shape: Shape, leagues: int, figures: dict[str, float]) -> Shape:
    """Return the shape with the density and support found in a run."""
    density = cost_model.density_of(shape, leagues, 1e6 * figures["MB of a league"])
    return replace(shape, density=density, support=figures["dual variables a row"])


def compare(found: Figures, shapes: dict[str, Shape], machine: Machine, cores: int) -> Iterator[Measured]:
    """Yield measurements with their predictions, for the number of leagues that the solver chooses."""
    for problem, (leagues, ranks, threads), figures in measured(found):
        if leagues == league_count(shapes[problem].classes):
            shape = in_use(shapes[problem], leagues, figures)
            seconds = cost_model.epoch_seconds(shape, leagues, ranks, machine, LOCAL, threads=threads, cores=cores)
            megabytes = cost_model.parcels(leagues, ranks) * cost_model.league_bytes(shape, leagues) / 1e6
            yield Measured(problem, leagues, ranks, threads, figures, shape, seconds, megabytes)


def predict(machine: Machine) -> Predicted:
    """Return leagues, seconds per pass and bytes that a rank sends in it, by data set, network and ranks."""
    found: Predicted = {}
    for name, (nonzeros, heads, shared, density) in PAPER.items():
        text = PRESETS[name]
        shape = Shape(text.n, text.K, nonzeros, heads, shared, density, PROBLEMS["ww"].usual_support(text.K))
        sizes = np.random.default_rng(0).lognormal(0.0, CLASS_SIZE_SPREAD, text.K)
        rows = 1 + np.random.default_rng(1).multinomial(text.n - text.K, sizes / sizes.sum())
        for network, line in NETWORKS.items():
            by_ranks = found.setdefault(name, {}).setdefault(network, {})
            for ranks in (1, *RANKS):
                leagues = max(league_count(text.K), 2 * ranks)
                if leagues > text.K:
                    continue
                rows_of_league = np.bincount(divide_classes(rows, leagues), weights=rows)
                seconds = cost_model.epoch_seconds(
                    shape, leagues, ranks, machine, line, rows_of_league=rows_of_league
                )
                sent = 2 * (ranks - 1) * (leagues - 1) * cost_model.league_bytes(shape, leagues) / ranks
                by_ranks[ranks] = leagues, seconds, sent
    return found


def measured_table(runs: list[Measured], machine: Machine) -> str:
    """Return the measurements as a Markdown table, followed by the fitted constants."""
    lines = [
        "| problem | leagues | ranks x threads | seconds per pass | of which waiting | seconds predicted "
        "| MB exchanged | MB predicted | peak GB per rank |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        f = run.figures
        lines.append(
            f"| {run.problem} | {run.leagues} | {run.setup} | {f['seconds an epoch']:.2f} "
            f"| {f['seconds waiting an epoch']:.2f} | {run.seconds:.2f} | {f['MB exchanged an epoch']:.0f} "
            f"| {run.megabytes:.0f} | {f['peak GB of a rank']:.2f} |"
        )
    off = [abs(run.seconds / run.figures["seconds an epoch"] - 1) for run in runs if run.ranks > 1]
    lines += [
        "",
        f"The model's constants, from the runs on one core: {1e9 * machine.multiply_add:.3g} ns per multiply-add, "
        f"{1e9 * machine.own_read:.3g} ns per read of the weight of a row's own class, "
        f"{1e6 * machine.visit:.3g} µs per visit, {1e9 * machine.update:.3g} ns per update; "
        f"to pack and unpack a league, {1e9 * machine.scan:.3g} ns per weight, {1e9 * machine.entry:.3g} ns more if "
        f"it is not 0, and {1e9 * machine.feature:.3g} ns per feature. On two and four ranks its times are off by "
        f"{min(off):.0%} to {max(off):.0%}.",
    ]
    return "\n".join(lines)


def predicted_table(predicted: Predicted, runs: list[Measured]) -> str:
    """Return the predictions as a Markdown table, followed by their assumptions."""
    names = list(NETWORKS)
    heads = " | ".join(f"{name}: seconds | speed-up" for name in names)
    lines = [
        f"| shape | ranks | leagues | {heads} | MB sent per rank |",
        "|---|---|---|" + "---|" * (2 * len(names) + 1),
    ]
    for shape, networks in predicted.items():
        for ranks, (leagues, _, sent) in networks[names[0]].items():
            cells = [
                f"{networks[name][ranks][1]:.3g} | {networks[name][1][1] / networks[name][ranks][1]:.3g}"
                for name in names
            ]
            lines.append(f"| {shape} | {ranks:,} | {leagues:,} | {' | '.join(cells)} | {sent / 1e6:,.0f} |")
    own = next((run.shape for run in runs if run.problem == "lshtc-small"), None)
    if own is not None:
        lines += [
            "",
            f"The share of weights that are not 0 is that of the real data: from {PAPER['lshtc-small'][3]:.1%} for "
            f"LSHTC-small down to {PAPER['lshtc-2011'][3]:.1%} for LSHTC-2011. On our synthetic text in the shape of "
            f"LSHTC-small it is {own.density:.0%} over the first ten passes, which start with every class, and rows "
            f"have {own.support:.0f} dual variables in use instead of the {PROBLEMS['ww'].typical_support} that are "
            "assumed here.",
        ]
    return "\n".join(lines)


def between(text: str, name: str, content: str) -> str:
    """Return the text with new content between the markers of this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the document must have one {begin} and one {end}")
    head, rest = text.split(begin)
    return f"{head}{begin}\n{content}\n{end}{rest.split(end)[1]}"


def _both(run: Measured) -> tuple[float, float]:
    return run.figures["seconds an epoch"], run.seconds


def draw(target: Path, runs: list[Measured], predicted: Predicted) -> None:
    """Plot measurements on the left and predictions on the right."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(1, 1.2), layout="constrained")
    problems = list(dict.fromkeys(run.problem for run in runs))
    setups = list(dict.fromkeys(run.setup for run in runs))
    for k, problem in enumerate(problems):
        own = {run.setup: run for run in runs if run.problem == problem}
        one = own["1 x 1"].figures["seconds an epoch"]
        x = np.arange(len(own)) + 0.25 * (k - 1)
        measured, modelled = ([one / t for t in times] for times in zip(*map(_both, own.values()), strict=True))
        left.bar(x, measured, 0.23, color=f"C{k}", label=problem)
        left.plot(x, modelled, "k_", ms=11, mew=2, label="predicted" if k == 0 else None)
    left.set(xticks=range(len(setups)), xticklabels=setups, xlabel="ranks x threads", ylabel="speed-up of a pass")
    left.set_title("measured, one machine", size=11)
    left.set_ylim(0, 1.35 * left.get_ylim()[1])
    left.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
    for k, (shape, networks) in enumerate(predicted.items()):
        for network, style in zip(networks, ("--", "-"), strict=True):
            by_ranks = networks[network]
            speedups = [by_ranks[1][1] / seconds for _, seconds, _ in by_ranks.values()]
            label = shape if style == "-" else None
            right.plot(list(by_ranks), speedups, style, color=f"C{k}", marker="o", ms=3, label=label)
    right.plot([1, RANKS[-1]], [1, RANKS[-1]], color="#bbbbbb", lw=1, label="ideal")
    ticks = (1, *RANKS)
    labels = [f"{tick:,}" for tick in ticks]
    right.set(xscale="log", yscale="log", xticks=ticks, xticklabels=labels, yticks=ticks, yticklabels=labels)
    right.set_xlabel("ranks of one thread")
    right.minorticks_off()
    right.set_title(f"predicted: {', '.join(reversed(list(NETWORKS)))} (dashed)", size=11)
    right.set_ylabel("speed-up of a pass")
    right.legend(frameon=False, fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=130, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    write(ROOT / "benchmarks" / "results" / "results.csv")
