"""What a reproduction gives: rows of a table, footnotes, a picture."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any


@dataclass
class Reproduction:
    """A table with the paper's figures beside ours.

    Attributes
    ----------
    title : str
    columns : sequence of str
    rows : list of dict
        One value a column; None where there is none.
    footnotes : list of str
        The setting, and what explains differences.
    missing : list of str
        Data sets of the paper that are not at hand.
    draw : callable
        Draws the picture into a matplotlib figure.
    """

    title: str
    columns: Sequence[str]
    rows: list[dict[str, Any]] = field(default_factory=list)
    footnotes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    draw: Callable[[Any], None] = lambda figure: None

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
