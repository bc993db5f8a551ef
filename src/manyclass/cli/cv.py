"""`manyclass cv`: losses and penalties compared by cross-validation."""

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
from .options import Delimiter, LabelColumn, SkipUnlabelled, TextColumn, document_frequency, positive, usual

logger = logging.getLogger("manyclass.cli")
MOST_PENALTIES = 1000


def list_of_losses(text: str) -> Any:
    """Read ww,cs,maxent."""
    losses = [part.strip() for part in text.split(",")]
    for loss in losses:
        if loss not in LOSSES:
            raise typer.BadParameter(f"there is no loss {loss!r}; there are {', '.join(LOSSES)}")
    return losses


def list_of_penalties(text: str) -> Any:
    """Read 0.1,1,10 or, for all powers in between, 2^-5:2^3."""
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
    """Write penalties as `list_of_penalties` reads them: as a range if they are all powers of 2 or of 10 in it."""
    for base in (2, 10):
        exponents = np.log(Cs) / np.log(base)
        first, last = round(exponents[0]), round(exponents[-1])
        if len(Cs) > 1 and np.array_equal(Cs, [float(base) ** e for e in range(first, last + 1)]):
            return f"{base}^{first}:{base}^{last}"
    return ",".join(f"{C:.6g}" for C in Cs)


@output.answers_errors
@ranks.alone
def cv(
    data: Annotated[str, typer.Argument(help="As for train; - for stdin.")],
    losses: Annotated[
        Any,
        typer.Option("--loss", "-l", parser=list_of_losses, metavar="LOSS,LOSS", help="One or more, as for train."),
    ] = "ww",
    Cs: Annotated[
        Any, typer.Option("-C", "--C", parser=list_of_penalties, metavar="C,C", help="Penalties: a list or a range.")
    ] = "2^-5:2^3",
    folds: Annotated[int, typer.Option(min=2, help="The rows are dealt to so many folds.")] = 5,
    tol: Annotated[float | None, typer.Option(callback=positive, help=f"Relative gap. {usual('tol')}")] = None,
    intercept: Annotated[bool, typer.Option(help="Add a constant feature.")] = USUAL["fit_intercept"],
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads. [default: all cores]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the folds and of the order of rows.")] = 0,
    dtype: Annotated[Dtype, typer.Option(help="Type of the weights.")] = Dtype.float32,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    delimiter: Delimiter = None,
    skip_unlabelled: SkipUnlabelled = False,
    normalize: normalizing.Normalize = None,
    min_df: Annotated[
        Any, typer.Option(parser=document_frequency, metavar="N", help="Drop words of fewer texts.")
    ] = "1",
    format: Annotated[DataFormat, typer.Option(help="auto: by the name of the file.")] = DataFormat.auto,
    memory: Annotated[
        Any, typer.Option(parser=parse_size, metavar="SIZE", help="From a store: what it may use. [default: 1GB]")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Compare losses and penalties by cross-validation.

    \b
    Examples:
      manyclass cv big.svm --loss ww,cs,maxent --C 2^-5:2^3
      manyclass cv news.csv --text-column body --label-column topic -l squared_hinge -C 0.1,1,10 --folds 10

    Prints the share of held-out rows that were right, for each loss and penalty, and the best of each loss; of rows
    with sets of labels those whose best label is in the set. The words of a table are counted over all rows, held-out
    ones too. From a store all folds are trained together, so that a block is read once a pass for all of them.
    """
    output.log_to_stderr(quiet=quiet)
    table = TableOptions(text_column, label_column, None, delimiter, skip_unlabelled)
    store = open_store(data, table)
    scaled = {loss: bool(normalizing.chosen(normalize, loss)) for loss in losses}
    engine: str | DiskEngine = "memory"
    if store is None:
        if memory is not None:
            raise typer.BadParameter("it is for rows of a store", param_hint="--memory")
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
                "%s: the best C, %s, is the %s that was tried, and others beyond it may be better; try --C %s",
                loss,
                output.number(found["best_C"]),
                found["at_edge"],
                option_of_penalties(found["wider_C"]),
            )
