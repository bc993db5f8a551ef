"""What options take: their choices, and how text becomes a value."""

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.tables import check_delimiter
from ..estimators import MaxEnt
from ..problems import LOSSES
from .fitting import USUAL


def delimiter(text: str) -> Any:
    """Read one character; a tab may be spelled out."""
    try:
        return check_delimiter("\t" if text in (r"\t", "tab") else text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


class _Name(str, Enum):
    """A choice that is its own name."""

    __str__ = str.__str__


if TYPE_CHECKING:
    Loss = str
else:
    Loss = _Name("Loss", {name: name for name in LOSSES})

TextColumn = Annotated[str | None, typer.Option("--text-column", help="Of a table. [default: text]")]
LabelColumn = Annotated[str | None, typer.Option("--label-column", help="Of a table. [default: label]")]
# Of files that are read for a model.
SameTextColumn = Annotated[str | None, typer.Option("--text-column", help="Of a table. [default: as in training]")]
SameLabelColumn = Annotated[str | None, typer.Option("--label-column", help="Of a table. [default: as in training]")]
Delimiter = Annotated[
    Any,
    typer.Option(
        parser=delimiter, metavar="CHAR", help="Between the fields of CSV, such as ';' or '\\t'. [default: ,]"
    ),
]
SkipUnlabelled = Annotated[
    bool, typer.Option("--skip-unlabelled", help="Leave out rows of a table that have no label.")
]


class Stop(str, Enum):
    """What the tolerance is about."""

    gap = "gap"
    kkt = "kkt"


class Solver(str, Enum):
    """How it is trained."""

    auto = "auto"
    dual = "dual"
    newton = "newton"
    leagues = "leagues"


class Method(str, Enum):
    """How it is trained from a store."""

    dual = "dual"
    pegasos = "pegasos"
    streamsvm = "streamsvm"


class Update(str, Enum):
    """With how many rows Pegasos changes the weights at a time."""

    row = "row"
    block = "block"


class Calibrate(str, Enum):
    """How scores become probabilities."""

    none = "none"
    temperature = "temperature"
    sigmoid = "sigmoid"


class ClassWeight(str, Enum):
    """Factors of C by class."""

    none = "none"
    balanced = "balanced"


def positive(value: float | None) -> float | None:
    """Refuse zero and less before any data are read."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value} is not above 0")
    return value


def number_of_rounds(text: str) -> Any:
    """Read a number, tol or auto."""
    if text in ("tol", "auto"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither a positive number nor tol or auto")
    return int(text)


def document_frequency(text: str) -> Any:
    """Read a number of texts (5) or a share of them (0.001)."""
    try:
        value: int | float = int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number of texts nor a share of them") from None
    if not value > 0 or (isinstance(value, float) and value > 1):
        raise typer.BadParameter(f"{text} is neither a number of texts from 1 nor a share between 0 and 1")
    return value


def usual(parameter: str) -> str:
    """Say what the estimators take if nothing is given."""
    return f"[default: {USUAL[parameter]}]"


def usual_C() -> str:
    """Say which C the estimators take if none is given, which depends on the loss."""
    return f"[default: {USUAL['C']:g}; of logistic losses {MaxEnt().C:g}]"
