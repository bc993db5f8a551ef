"""The command `manyclass reproduce`."""

import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from sklearn.exceptions import ConvergenceWarning

from ..reproductions import REPRODUCTIONS, Reproduction
from . import output, ranks
from .options import Jobs, Quiet

logger = logging.getLogger("manyclass.cli")
if TYPE_CHECKING:
    Table = str
else:
    Table = Literal[tuple(REPRODUCTIONS)]


@output.answers_errors
@ranks.alone
def reproduce(
    table: Annotated[Table, typer.Argument(help="Table to compute.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the CSV file and the plot.")] = Path("."),
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Recompute a table of a paper. The paper's figures are shown next to ours.

    \b
    Tables:
      alber-b1   Alber et al., Table B.1: test error and density of WW and LLW
      thesis-5   NTU thesis: nine classifiers, with C chosen by cross-validation

    The environment variable MANYCLASS_DATA names the folder of the data sets. Each data set is a subfolder with
    train.svm.xz and, if it has test rows, test.svm.xz. Missing data sets are skipped and listed. The table is
    printed, and written as a CSV file and a plot.
    """
    out.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        found = REPRODUCTIONS[table](lambda what: logger.info("%s", what), jobs)
    found.write_csv(out / f"{table}.csv")
    found.write_picture(out / f"{table}.png")
    _show(found)
    if caught:
        logger.warning("some fits stopped before their target: %s", caught[-1].message)
    logger.info("written: %s and %s", out / f"{table}.csv", out / f"{table}.png")


def _show(found: Reproduction) -> None:
    lines = [["" if row[name] is None else str(row[name]) for name in found.columns] for row in found.rows]
    output.show_table(found.title, found.columns, lines)
    for note in found.footnotes:
        typer.echo(note)
    if found.missing:
        typer.echo(f"missing: {', '.join(found.missing)}")
