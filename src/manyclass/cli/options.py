"""Options that several commands share, the choices they offer, and parsers for their values."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from ..data import BlockStore
from ..data.sizes import parse_size
from ..data.tables import check_delimiter
from ..engines import DiskEngine
from ..model import LabelTree, LinearModel
from ..problems import LOSSES
from .fitting import USUAL
from .formats import DataFormat, FileOptions, PredictFormat
from .panels import Parameters, given_in, in_data, in_disk, in_model, in_output

if TYPE_CHECKING:
    Loss = str
else:
    Loss = Literal[tuple(LOSSES)]
Dtype = Literal["float32", "float64"]


def search_for(
    model: LinearModel, beam: int | None, jobs: int | None, *, probabilities: bool = False
) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Return a function that finds the codes and values of the k best labels, with a beam in the label tree."""
    if beam is not None:
        return functools.partial(LabelTree(model, n_jobs=jobs).topk, beam=beam, n_jobs=jobs)
    return functools.partial(model.topk_probabilities if probabilities else model.topk, n_jobs=jobs)


def delimiter(text: str) -> Any:
    """Parse a single character; `\\t` and `tab` stand for a tab."""
    try:
        return check_delimiter("\t" if text in (r"\t", "tab") else text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def document_frequency(text: str) -> Any:
    """Parse a number of texts (5) or a fraction of them (0.001)."""
    try:
        value: int | float = int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number of texts nor a fraction of them") from None
    if not value > 0 or (isinstance(value, float) and value > 1):
        raise typer.BadParameter(f"{text} is neither a number of texts (1 or more) nor a fraction between 0 and 1")
    return value


def positive(value: float | None) -> float | None:
    """Reject zero and negative numbers before any data is read."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value} is not positive")
    return value


def usual(parameter: str) -> str:
    """Describe the default of a parameter of the estimators."""
    return f"[default: {USUAL[parameter]}]"


ModelFile = Annotated[Path, typer.Argument(help="Model written by train.")]
# An option without a panel joins the panel of the option before it.
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Number of threads. [default: all cores]")]
JobsOfRank = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", help="Number of threads. [default: all cores; under mpirun, each rank's share of them]"
    ),
]
Beam = Annotated[
    int | None,
    typer.Option("--beam", min=1, help="Search the label tree built by index, keeping this many nodes per level."),
]
Intercept = Annotated[bool, in_model("--intercept/--no-intercept", help="Add a constant feature to every row.")]
WeightType = Annotated[Dtype, typer.Option("--dtype", help="Type of the weights.")]
Normalize = Annotated[
    bool | None,
    in_data(
        "--normalize/--no-normalize",
        help="Scale rows to length 1, also for prediction. [default: on for ppd_*, max_margin and --drop]",
    ),
]
MinDf = Annotated[
    Any,
    in_data(
        parser=document_frequency,
        metavar="N",
        help="Drop words that occur in fewer than N texts; below 1, N is a fraction of the texts.",
    ),
]
Strict = Annotated[bool, in_data("--strict", help="Reject features that the model was not trained on.")]
ForceOutput = Annotated[bool, in_output("--force", help="Replace what is at --output, even if it is not a model.")]
Quiet = Annotated[bool, in_output("--quiet", "-q", help="Do not show progress.")]
AsJson = Annotated[bool, in_output("--json", help="Print the report as JSON.")]

# ---- Data files

Delimiter = Annotated[
    Any, in_data(parser=delimiter, metavar="CHAR", help="Field separator of CSV, such as ';' or '\\t'. [default: ,]")
]
SkipUnlabelled = Annotated[bool, in_data("--skip-unlabelled", help="Skip table rows that have no label.")]
AUTO = "Data format; auto goes by the file name"


@dataclass(frozen=True)
class TrainingFile(FileOptions):
    """Options for a file that no model is given for."""

    text: Annotated[str | None, in_data("--text-column", help="Table column with the texts. [default: text]")] = None
    label: Annotated[str | None, in_data("--label-column", help="Table column with the labels. [default: label]")] = (
        None
    )
    format: Annotated[DataFormat, in_data(help=f"{AUTO}, and recognises XMC text by its first line.")] = "auto"
    delimiter: Delimiter = None
    skip_unlabelled: SkipUnlabelled = False


SameTextColumn = Annotated[
    str | None, in_data("--text-column", help="Table column with the texts. [default: as in training]")
]


@dataclass(frozen=True)
class LabelledFile(TrainingFile):
    """Options for a file with labels, to be read for a model."""

    text: SameTextColumn = None
    label: Annotated[
        str | None, in_data("--label-column", help="Table column with the labels. [default: as in training]")
    ] = None


@dataclass(frozen=True)
class UnlabelledFile(FileOptions):
    """Options for a file whose labels do not matter, to be read for a model."""

    text: SameTextColumn = None
    id: Annotated[
        str | None, in_data("--id-column", help="Table column whose value is printed before the labels of each row.")
    ] = None
    format: Annotated[PredictFormat, in_data(help=f"{AUTO}.")] = "auto"
    delimiter: Delimiter = None


# ---- Training


@dataclass(frozen=True)
class PreparedFile(TrainingFile):
    """Options for a file to train on, and for making rows from it."""

    normalize: Normalize = None
    min_df: MinDf = "1"


@dataclass(frozen=True)
class MemoryOptions(Parameters):
    """Options for training from a store."""

    memory: Annotated[
        Any,
        in_disk(parser=parse_size, metavar="SIZE", help="Memory to use when training from a store. [default: 1GB]"),
    ] = None

    def engine(self, store: BlockStore | None) -> DiskEngine | None:
        """Return the engine for a store; without one, reject the options."""
        given = given_in(self)
        if store is not None:
            return DiskEngine(**given)
        for option in (f"--{name.replace('_', '-')}" for name in given):
            raise typer.BadParameter("it applies only to training from a store", param_hint=option)
        return None
