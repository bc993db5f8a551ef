"""Write the tables and plots of docs/store.md on block minimisation, after figures 2 to 4 of Yu et al.

``python -m benchmarks block-minimisation`` measures and then writes them; ``python -m benchmarks.block_report``
writes them again from the latest measurements.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import block_methods as methods
from benchmarks.environments import ROOT
from benchmarks.league_report import between
from benchmarks.results import of_benchmark

DOCUMENT = ROOT / "docs" / "store.md"
IMAGES = ROOT / "docs" / "images"
METHODS_PLOT, BLOCKS_PLOT = "block-methods.png", "block-splits.png"

# Okabe and Ito's colours, which are safe for colour-blind readers, and a marker for each.
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7", "#000000", "#888888")
MARKERS = ("o", "s", "^", "v", "D", "*", "P", "x")
# Figure 4: one colour per number of blocks.
SHADES = ("#0072B2", "#000000", "#E69F00", "#CC79A7")
SPLIT_NAMES = ("random split, new order", "random split, same order", "raw split, new order", "raw split, same order")


@dataclass(frozen=True)
class Curve:
    """Training pass by pass: seconds, relative difference to the optimum, test accuracy."""

    seconds: np.ndarray
    difference: np.ndarray
    accuracy: np.ndarray


Curves = dict[str, dict[str, Curve]]  # by problem and solver
Figures = dict[str, dict[str, dict[str, float]]]  # by problem, solver and metric


def write(results: Path, document: Path = DOCUMENT, images: Path = IMAGES) -> None:
    """Write the tables between their markers, and the plots."""
    series = results.with_name(f"{methods.NAME}.csv")
    if not series.exists():
        return  # nothing was measured
    curves, figures = read_curves(series), read_figures(results)
    text = document.read_text()
    text = between(text, "methods", methods_part(figures))
    text = between(text, "compression", compression_table(figures))
    document.write_text(text)
    images.mkdir(parents=True, exist_ok=True)
    draw_methods(images / METHODS_PLOT, curves)
    draw_blocks(images / BLOCKS_PLOT, curves)


def read_curves(path: Path) -> Curves:
    """Return the curves of all problems."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    with path.open(newline="") as file:
        for record in csv.DictReader(file):
            values = tuple(float(record[name]) for name in ("seconds", "difference", "accuracy"))
            found.setdefault((record["problem"], record["ours"]), []).append(values)
    curves: Curves = {}
    for (problem, ours), rows in found.items():
        curves.setdefault(problem, {})[ours] = Curve(*np.array(rows).T)
    return curves


def read_figures(path: Path) -> Figures:
    """Return the figures that are not curves."""
    found: Figures = {}
    for record in of_benchmark(path, methods.NAME):
        solvers = found.setdefault(record["problem"], {})
        solvers.setdefault(record["ours"], {})[record["metric"]] = float(record["value"])
    return found


# ---- Tables


def methods_part(figures: Figures) -> str:
    """Return the plots and the table as Markdown."""
    heads = [f"{what} to {within:.1%}" for within in methods.WITHIN for what in ("passes", "seconds")]
    lines = [
        f"![Objective and test accuracy against training time, by method](images/{METHODS_PLOT})",
        "",
        f"![Objective against training time, by split, order and number of blocks](images/{BLOCKS_PLOT})",
        "",
        f"| problem | method | {' | '.join(heads)} | difference at the end | test accuracy at the end |",
        "|---|---|" + "---|" * (len(heads) + 2),
    ]
    compressed = {solver.name for solver in methods.COMPRESSIONS.values()}
    for problem, solvers in figures.items():
        for solver, own in solvers.items():
            if solver not in compressed:
                lines.append(f"| {problem} | {solver} | {' | '.join(_cells(own))} |")
    return "\n".join(lines)


def _cells(own: dict[str, float]) -> list[str]:
    cells = []
    for within in methods.WITHIN:
        for what, form in (("passes", ".0f"), ("seconds", ".2f")):
            value = own.get(f"{what} to {within:.1%} of the optimum")
            cells.append("–" if value is None else f"{value:{form}}")
    difference = own.get("relative difference to the optimum at the end")
    cells.append("–" if difference is None else f"{difference:.1e}")
    return [*cells, f"{own['test accuracy at the end']:.4f}"]


def compression_table(figures: Figures) -> str:
    """Return the comparison of compressions (section 7.6) as Markdown."""
    lines = [
        "| problem | compression | bytes per non-zero | seconds of ten passes | seconds to read and decode once |",
        "|---|---|---|---|---|",
    ]
    for problem, solvers in figures.items():
        for kind, solver in methods.COMPRESSIONS.items():
            own = solvers.get(solver.name)
            if own is not None:
                lines.append(
                    f"| {problem} | {kind} | {own['bytes a non-zero']:.2f} | {own['seconds of ten passes']:.2f} "
                    f"| {own['seconds to read and decode']:.3f} |"
                )
    return "\n".join(lines)


# ---- Plots


def draw_methods(target: Path, curves: Curves) -> None:
    """Draw figure 2: one row per problem, objective on the left, accuracy on the right."""
    plt = _pyplot()
    figure, grid = plt.subplots(len(curves), 2, figsize=(11, 3.9 * len(curves)), squeeze=False, layout="constrained")
    for axes, (problem, by_solver) in zip(grid, curves.items(), strict=True):
        shown = [method.name for method in methods.METHODS if method.name in by_solver]
        best = max(by_solver[name].accuracy.max() for name in shown)
        for name in shown:
            style = _style([method.name for method in methods.METHODS].index(name), name == methods.IN_MEMORY.name)
            own = by_solver[name]
            _plot_difference(axes[0], own, label=name, **style)
            axes[1].plot(own.seconds, 100 * (best - own.accuracy), label=name, **style)
        axes[1].set(xscale="log", ylabel="test accuracy below the best\n(percentage points)")
        axes[1].set_yscale("symlog", linthresh=0.1)
        axes[1].set_ylim(bottom=0)
        axes[1].set_yticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
        axes[0].set_title(f"{problem}: objective", size=11)
        axes[1].set_title(f"{problem}: test accuracy", size=11)
        _label(axes[0])
        _label(axes[1])
    handles, labels = grid[0][1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    _save(plt, figure, target)


def draw_blocks(target: Path, curves: Curves) -> None:
    """Draw figures 3 and 4: one row per problem, splits on the left, numbers of blocks on the right."""
    plt = _pyplot()
    figure, grid = plt.subplots(len(curves), 2, figsize=(11, 3.9 * len(curves)), squeeze=False, layout="constrained")
    for (left, right), (problem, by_solver) in zip(grid, curves.items(), strict=True):
        for place, (split, name) in enumerate(zip(methods.SPLITS, SPLIT_NAMES, strict=True)):
            if split.name in by_solver:
                _plot_difference(left, by_solver[split.name], label=name, **_style((0, 1, 3, 4)[place]))
        for solver, line in ((methods.BLOCK_L_D, "-"), (methods.DEFAULT, ":")):
            for place, number in enumerate(methods.NUMBERS):
                own = by_solver.get(methods.with_blocks(solver, number).name)
                if own is not None:
                    look = {"color": SHADES[place], "marker": MARKERS[place], "ls": line, "ms": 4, "lw": 1.4}
                    _plot_difference(right, own, label=f"{number} blocks, {solver.name}", **look)
        left.set_title(f"{problem}: splits and orders of {methods.BLOCK_L_D.name}", size=11)
        right.set_title(f"{problem}: numbers of blocks", size=11)
        _label(left)
        _label(right)
    for axes in grid[-1]:
        axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    _save(plt, figure, target)


def _style(place: int, single: bool = False) -> dict[str, Any]:
    line = "--" if single else "-"
    return {"color": COLOURS[place], "marker": MARKERS[place], "ms": 4.5, "lw": 1.4, "ls": line}


def _plot_difference(axes: Any, own: Curve, **style: Any) -> None:
    if np.isfinite(own.difference).any():
        axes.plot(own.seconds, np.maximum(own.difference, methods.NEAR / 10), **style)
    axes.set(xscale="log", yscale="log", ylabel="relative difference to the optimum")


def _label(axes: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("training time (seconds)")
    axes.grid(color="#e5e5e5", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(plt: Any, figure: Any, target: Path) -> None:
    figure.savefig(target, dpi=130, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    write(ROOT / "benchmarks" / "results" / "results.csv")
