"""The command `manyclass cv`."""

import logging
import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning

from ..data import BlockStore
from ..estimators import EdgeOfGridWarning, estimator_for, select_C
from ..problems import LOSSES
from . import normalizing, output, ranks
from .fitting import USUAL
from .inputs import LabelledRows, naming, open_store, read_labelled
from .options import AsJson, Intercept, Jobs, MemoryOptions, PreparedFile, Quiet, WeightType, positive, usual
from .panels import given_in, in_model, in_training, takes_groups

logger = logging.getLogger("manyclass.cli")
MOST_PENALTIES = 1000


def list_of_losses(text: str) -> Any:
    """Parse a list such as ww,cs,maxent."""
    losses = [part.strip() for part in text.split(",")]
    for loss in losses:
        if loss not in LOSSES:
            raise typer.BadParameter(f"there is no loss {loss!r}; choose from {', '.join(LOSSES)}")
    return losses


def list_of_penalties(text: str) -> Any:
    """Parse a list such as 0.1,1,10, or a range of powers such as 2^-5:2^3."""
    try:
        if ":" in text:
            (base, first), (other, last) = (part.split("^") for part in text.split(":"))
            if float(base) != float(other) or not 0 < float(base) != 1:
                raise ValueError
            exponents = range(int(first), int(last) + 1)
            Cs = [float(base) ** e for e in exponents[: MOST_PENALTIES + 1]]
        else:
            Cs = [float(b) ** float(e or 1) for b, _, e in (part.partition("^") for part in text.split(","))]
        if not Cs or not all(np.isfinite(C) and C > 0 for C in Cs) or len(Cs) > MOST_PENALTIES:
            raise ValueError
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is neither a list such as 0.1,1,10 nor a range such as 2^-5:2^3"
        ) from None
    return sorted(set(Cs))


def option_of_penalties(Cs: np.ndarray) -> str:
    """Format values of C for `list_of_penalties`: consecutive powers of 2 or 10 as a range, others as a list."""
    for base in (2, 10):
        exponents = np.log(Cs) / np.log(base)
        first, last = round(exponents[0]), round(exponents[-1])
        if len(Cs) > 1 and np.array_equal(Cs, [float(base) ** e for e in range(first, last + 1)]):
            return f"{base}^{first}:{base}^{last}"
    return ",".join(f"{C:.6g}" for C in Cs)


@dataclass(frozen=True)
class Grid:
    """What to compare."""

    losses: Annotated[
        Any,
        in_model(
            "--loss",
            "-l",
            parser=list_of_losses,
            metavar="LOSS,LOSS",
            help="One or more losses to compare; train --help lists them.",
        ),
    ] = "ww"
    Cs: Annotated[
        Any,
        in_model(
            "-C",
            "--C",
            parser=list_of_penalties,
            metavar="C,C",
            help="Values of C to try: a list such as 0.1,1,10, or a range of powers.",
        ),
    ] = "2^-5:2^3"
    folds: Annotated[int, in_training(min=2, help="Number of folds.")] = 5


@dataclass(frozen=True)
class EstimatorOptions:
    """Parameters that all fits have in common, named after those of the estimators."""

    fit_intercept: Intercept = USUAL["fit_intercept"]
    dtype: WeightType = "float32"
    tol: Annotated[
        float | None,
        in_training(callback=positive, help=f"Stop a fit when its relative gap is this small. {usual('tol')}"),
    ] = None
    n_jobs: Jobs = None
    random_state: Annotated[
        int, in_training("--seed", min=0, help="Seed for the folds and the order of the rows.")
    ] = 0


@output.answers_errors
@ranks.alone
@takes_groups
def cv(
    data: Annotated[str, typer.Argument(help="Data as for train; - reads stdin.")],
    file: PreparedFile,
    grid: Grid,
    fits: EstimatorOptions,
    disk: MemoryOptions,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare losses and values of C by cross-validation.

    \b
    Examples:
      manyclass cv big.svm --loss ww,cs,maxent --C 2^-5:2^3
      manyclass cv big.svm -l squared_hinge -C 0.1,1,10 --folds 10
      manyclass cv news.csv --text-column body --label-column topic

    Prints the accuracy on held-out rows for each loss and C, and the best C for each loss. For sets of labels, a row
    counts as correct if its best label is in the set. The vocabulary of a table is built from all rows, including
    held-out ones. With a store, all folds are trained together, so each pass reads a block only once.
    """
    scaled = {loss: bool(normalizing.chosen(file.normalize, loss)) for loss in grid.losses}
    rows = _read(data, file, fits, scaled)
    engine = disk.engine(rows if isinstance(rows, BlockStore) else None) or "memory"
    report: dict[str, Any] = {"rows": rows.n_rows, "folds": grid.folds, "losses": {}}
    for loss in grid.losses:
        prepared = rows.normalized() if isinstance(rows, LabelledRows) and scaled[loss] else rows
        with naming(data):
            estimator = estimator_for(loss, engine=engine, **given_in(fits))
            report["losses"][loss] = _compare(loss, estimator, prepared, grid)
    output.show_report(report, _show, as_json=as_json)


def _read(
    data: str, file: PreparedFile, fits: EstimatorOptions, scaled: dict[str, bool]
) -> LabelledRows | BlockStore:
    store = open_store(data, file)
    if store is not None:
        normalizing.check_store(store, file.normalize)
        return store
    return read_labelled(
        data,
        file,
        min_df=file.min_df,
        dtype=fits.dtype,
        several=all(LOSSES[loss].takes_sets for loss in scaled),
        normalize=True if all(scaled.values()) else file.normalize,
    )


def _compare(loss: str, estimator: Any, rows: LabelledRows | BlockStore, grid: Grid) -> dict[str, Any]:
    steps = rows.chain.describe()
    about = "; ".join([f"{output.counted(len(grid.Cs), 'value')} of C in {grid.folds} folds", *steps])
    logger.info("%s: %s", loss, about)
    X, labels = (rows.X, rows.labels) if isinstance(rows, LabelledRows) else (rows, None)
    with warnings.catch_warnings():
        for said_below in (ConvergenceWarning, EdgeOfGridWarning):
            warnings.simplefilter("ignore", said_below)
        found = select_C(estimator, X, labels, grid.Cs, cv=grid.folds)
    return {
        "C": found.Cs,
        "accuracy": found.means,
        "deviation": found.accuracies.std(axis=1),
        "largest_gap": found.gaps.max(axis=1),
        "best_C": found.best_C,
        "at_edge": found.at_edge,
        "wider_C": found.wider_Cs,
        "seconds": found.seconds,
        "steps": steps,
        "not_converged": int((~found.converged).sum()),
    }


def _show(report: dict[str, Any]) -> None:
    number, percent = output.number, output.percent
    lines, best = [], []
    for loss, found in report["losses"].items():
        figures = (found[name] for name in ("C", "accuracy", "deviation", "largest_gap"))
        for C, mean, deviation, gap in zip(*figures, strict=True):
            mark = "best" if found["best_C"] == C else ""
            lines.append([loss, number(float(C)), percent(mean), percent(deviation), number(float(gap)), mark])
        top = percent(found["accuracy"].max())
        best.append([loss, number(found["best_C"]), top, output.seconds(found["seconds"])])
    columns = ("loss", "C", "accuracy", "deviation", "largest gap", "")
    output.show_table(f"{output.counted(report['rows'], 'row')} in {report['folds']} folds", columns, lines)
    output.show_table("best of each loss", ("loss", "C", "accuracy", "seconds"), best)
    for loss, found in report["losses"].items():
        if found["not_converged"]:
            fits = output.counted(found["not_converged"], "fit")
            logger.warning("%s: %s stopped before the target", loss, fits)
        if found["at_edge"]:
            logger.warning(
                "%s: the best C, %s, is the %s that was tried, so values beyond it may be better; try --C %s",
                loss,
                output.number(found["best_C"]),
                found["at_edge"],
                option_of_penalties(found["wider_C"]),
            )
