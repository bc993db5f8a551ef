"""The command `manyclass cv`."""

import logging
import warnings
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning

from ..data import BlockStore
from ..data.sizes import parse_size
from ..engines import DiskEngine
from ..estimators import EdgeOfGridWarning, estimator_for, select_C
from ..problems import LOSSES
from . import normalizing, output, ranks
from .fitting import USUAL, Dtype
from .formats import DataFormat, TableOptions
from .inputs import LabelledRows, naming, open_store, read_labelled
from .options import AsJson, Delimiter, LabelColumn, MinDf, Quiet, SkipUnlabelled, TextColumn, positive, usual
from .panels import in_data, in_disk, in_model, in_training

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


@output.answers_errors
@ranks.alone
def cv(
    data: Annotated[str, typer.Argument(help="Data as for train; - reads stdin.")],
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Annotated[DataFormat, in_data(help="Data format; auto goes by the file name.")] = DataFormat.auto,
    delimiter: Delimiter = None,
    skip_unlabelled: SkipUnlabelled = False,
    normalize: normalizing.Normalize = None,
    min_df: MinDf = "1",
    losses: Annotated[
        Any,
        in_model(
            "--loss",
            "-l",
            parser=list_of_losses,
            metavar="LOSS,LOSS",
            help="One or more losses to compare; train --help lists them.",
        ),
    ] = "ww",
    Cs: Annotated[
        Any,
        in_model("-C", "--C", parser=list_of_penalties, metavar="C,C", help="Values of C to try: a list or range."),
    ] = "2^-5:2^3",
    intercept: Annotated[bool, in_model(help="Add a constant feature to every row.")] = USUAL["fit_intercept"],
    dtype: Annotated[Dtype, in_model(help="Type of the weights.")] = Dtype.float32,
    folds: Annotated[int, in_training(min=2, help="Number of folds.")] = 5,
    tol: Annotated[
        float | None,
        in_training(callback=positive, help=f"Stop a fit when its relative gap is this small. {usual('tol')}"),
    ] = None,
    jobs: Annotated[int | None, in_training("--jobs", "-j", help="Number of threads. [default: all cores]")] = None,
    seed: Annotated[int, in_training(min=0, help="Seed for the folds and the order of the rows.")] = 0,
    memory: Annotated[
        Any,
        in_disk(parser=parse_size, metavar="SIZE", help="Memory to use when training from a store. [default: 1GB]"),
    ] = None,
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
    output.log_to_stderr(quiet=quiet)
    table = TableOptions(text_column, label_column, None, delimiter, skip_unlabelled)
    store = open_store(data, table)
    scaled = {loss: bool(normalizing.chosen(normalize, loss)) for loss in losses}
    engine: str | DiskEngine = "memory"
    if store is None:
        if memory is not None:
            raise typer.BadParameter("it applies only to a store", param_hint="--memory")
        rows: LabelledRows | BlockStore = read_labelled(
            data,
            format,
            table,
            min_df=min_df,
            dtype=dtype.value,
            several=all(LOSSES[loss].takes_sets for loss in losses),
            normalize=True if all(scaled.values()) else normalize,
        )
    else:
        normalizing.check_store(store, normalize)
        engine = DiskEngine() if memory is None else DiskEngine(memory)
        rows = store
    report: dict[str, Any] = {"rows": rows.n_rows, "folds": folds, "losses": {}}
    given = {} if tol is None else {"tol": tol}
    for loss in losses:
        prepared = rows.normalized() if isinstance(rows, LabelledRows) and scaled[loss] else rows
        X, labels = (prepared.X, prepared.labels) if isinstance(prepared, LabelledRows) else (prepared, None)
        steps = prepared.chain.describe()
        about = "; ".join([f"{output.counted(len(Cs), 'value')} of C in {folds} folds", *steps])
        logger.info("%s: %s", loss, about)
        estimator = estimator_for(
            loss,
            fit_intercept=intercept,
            n_jobs=jobs,
            random_state=seed,
            dtype=dtype.value,
            engine=engine,
            **given,
        )
        with naming(data), warnings.catch_warnings():
            for said_below in (ConvergenceWarning, EdgeOfGridWarning):
                warnings.simplefilter("ignore", said_below)
            found = select_C(estimator, X, labels, Cs, cv=folds)
        report["losses"][loss] = {
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
    if as_json:
        typer.echo(output.to_json(report))
    else:
        _show(report)


def _show(report: dict[str, Any]) -> None:
    lines = [
        [
            loss,
            output.number(float(C)),
            output.percent(mean),
            output.percent(deviation),
            output.number(float(gap)),
            "best" if found["best_C"] == C else "",
        ]
        for loss, found in report["losses"].items()
        for C, mean, deviation, gap in zip(
            found["C"], found["accuracy"], found["deviation"], found["largest_gap"], strict=True
        )
    ]
    columns = ("loss", "C", "accuracy", "deviation", "largest gap", "")
    output.show_table(f"{output.counted(report['rows'], 'row')} in {report['folds']} folds", columns, lines)
    best = [
        [
            loss,
            output.number(found["best_C"]),
            output.percent(found["accuracy"].max()),
            output.seconds(found["seconds"]),
        ]
        for loss, found in report["losses"].items()
    ]
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
