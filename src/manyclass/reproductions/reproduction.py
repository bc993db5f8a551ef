"""The result of a reproduction: a table with footnotes, and a picture."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from .data_sets import folder


@dataclass
class Reproduction:
    """A table with the paper's figures next to ours; `None` in a row is a missing value.

    The footnotes say how the rows were computed and what explains differences, and `missing` lists the paper's data
    sets that are not available. `draw` draws the picture into a matplotlib figure.
    """

    title: str
    columns: Sequence[str]
    rows: list[dict[str, Any]] = field(default_factory=list)
    footnotes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    draw: Callable[[Any], None] = lambda figure: None

    def folder_of(self, name: str, data_sets: Mapping[str, Sequence[str]]) -> Path | None:
        """Return the folder of a data set, given first in its entry; if there is none, list it as missing."""
        path = folder(data_sets[name][0]) if name in data_sets else None
        if path is None:
            self.missing.append(name)
        return path

    def add_note(self, text: str) -> str:
        """Add a footnote, and return its mark."""
        mark = f"[{len(self.footnotes) + 1}]"
        self.footnotes.append(f"{mark} {text}")
        return mark

    def write_csv(self, path: Path) -> None:
        """Write all rows, with footnotes as comments at the end."""
        with open(path, "w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
            for note in self.footnotes:
                out.write(f"# {note}\n")

    def write_picture(self, path: Path) -> None:
        """Draw the picture into a PNG file."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 7), layout="constrained")
        self.draw(figure)
        figure.savefig(path, dpi=120)


def paper_table(name: str) -> list[dict[str, str]]:
    """Read a table of a paper, as it was printed."""
    text = resources.files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def panels(
    figure: Any, rows: list[dict[str, Any]], *, ncols: int, sharex: bool = False
) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Yield a panel for each data set, with its rows, in two lines; then draw a legend with `ncols` columns."""
    names = list(dict.fromkeys(row["data set"] for row in rows))
    if not names:
        return
    all_of_them = figure.subplots(2, -(-len(names) // 2), squeeze=False, sharex=sharex).ravel()
    for panel, name in zip(all_of_them, names, strict=False):
        panel.set_title(name)
        yield panel, [row for row in rows if row["data set"] == name]
    for panel in all_of_them[len(names) :]:
        panel.axis("off")
    figure.legend(*all_of_them[0].get_legend_handles_labels(), loc="outside upper right", ncols=ncols)
