"""Options that several commands share, the choices they offer, and parsers for their values."""

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.tables import check_delimiter
from ..estimators import MaxEnt
from ..problems import LOSSES
from .fitting import USUAL
from .panels import in_data, in_output


def delimiter(text: str) -> Any:
    """Parse a single character; `\\t` and `tab` stand for a tab."""
    try:
        return check_delimiter("\t" if text in (r"\t", "tab") else text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


class _Name(str, Enum):
    """A choice whose value is its name."""

    __str__ = str.__str__


if TYPE_CHECKING:
    Loss = str
else:
    Loss = _Name("Loss", {name: name for name in LOSSES})


def document_frequency(text: str) -> Any:
    """Parse a number of texts (5) or a fraction of them (0.001)."""
    try:
        value: int | float = int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number of texts nor a fraction of them") from None
    if not value > 0 or (isinstance(value, float) and value > 1):
        raise typer.BadParameter(f"{text} is neither a number of texts (1 or more) nor a fraction between 0 and 1")
    return value


TextColumn = Annotated[str | None, in_data("--text-column", help="Table column with the texts. [default: text]")]
LabelColumn = Annotated[str | None, in_data("--label-column", help="Table column with the labels. [default: label]")]
# For commands that read data for a trained model.
SameTextColumn = Annotated[
    str | None, in_data("--text-column", help="Table column with the texts. [default: as in training]")
]
SameLabelColumn = Annotated[
    str | None, in_data("--label-column", help="Table column with the labels. [default: as in training]")
]
Delimiter = Annotated[
    Any, in_data(parser=delimiter, metavar="CHAR", help="Field separator of CSV, such as ';' or '\\t'. [default: ,]")
]
SkipUnlabelled = Annotated[bool, in_data("--skip-unlabelled", help="Skip table rows that have no label.")]
MinDf = Annotated[
    Any,
    in_data(
        parser=document_frequency,
        metavar="N",
        help="Drop words that occur in fewer than N texts, or than a fraction of them.",
    ),
]
Strict = Annotated[bool, in_data("--strict", help="Reject features that the model was not trained on.")]
Quiet = Annotated[bool, in_output("--quiet", "-q", help="Do not show progress.")]
AsJson = Annotated[bool, in_output("--json", help="Print the report as JSON.")]


class Stop(str, Enum):
    """What `--tol` limits."""

    gap = "gap"
    kkt = "kkt"


class Solver(str, Enum):
    """Training algorithm."""

    auto = "auto"
    dual = "dual"
    newton = "newton"
    leagues = "leagues"


class Method(str, Enum):
    """Training algorithm for a store."""

    dual = "dual"
    pegasos = "pegasos"
    streamsvm = "streamsvm"


class Update(str, Enum):
    """Whether Pegasos updates the weights per row or per block."""

    row = "row"
    block = "block"


class Calibrate(str, Enum):
    """How scores are turned into probabilities."""

    none = "none"
    temperature = "temperature"
    sigmoid = "sigmoid"


class ClassWeight(str, Enum):
    """Weights of the classes in the loss."""

    none = "none"
    balanced = "balanced"


def positive(value: float | None) -> float | None:
    """Reject zero and negative numbers before any data is read."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value} is not positive")
    return value


def number_of_rounds(text: str) -> Any:
    """Parse a number, `tol` or `auto`."""
    if text in ("tol", "auto"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither a positive integer nor tol or auto")
    return int(text)


def usual(parameter: str) -> str:
    """Describe the default of a parameter of the estimators."""
    return f"[default: {USUAL[parameter]}]"


def usual_C() -> str:
    """Describe the default C, which depends on the loss."""
    return f"[default: {USUAL['C']:g}; logistic losses: {MaxEnt().C:g}]"
