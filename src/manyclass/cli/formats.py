"""What a data file holds: told by --format, by its name, by the options that were given, or by its first lines."""

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import Literal

from ..data.streams import SUFFIXES, stream_name
from ..data.tables import DELIMITERS, FORMATS, format_by_name
from ..data.xmc import HEADER, looks_like_xmc
from .output import InputError

ROWS_OF_FEATURES = ("svmlight", "xmc")
FEATURE_SUFFIXES = (".svm", ".svmlight", ".libsvm", ".xmc")
# A row of svmlight text: a label, several or none, and at least one feature.
NUMBER = rb"[-+]?[\d.]+([eE][-+]?\d+)?"
ROW = re.compile(rb"(%b(,%b)*)?(\s+\d+:%b)+\s*(#.*)?" % (NUMBER, NUMBER, NUMBER))


class DataFormat(str, Enum):
    """How a data file is to be read."""

    auto = "auto"
    svmlight = "svmlight"
    xmc = "xmc"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"


class PredictFormat(str, Enum):
    """How a file of rows to predict is to be read: labels are not needed."""

    auto = "auto"
    svmlight = "svmlight"
    xmc = "xmc"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"
    lines = "lines"


@dataclass(frozen=True)
class TableOptions:
    """What was said of a table.

    Attributes
    ----------
    text, label : str or None
        Columns; None for those that the model was trained on, or `text` and `label`.
    id : str or None
        The column that is carried through to predictions.
    delimiter : str or None
        What separates the fields of delimited text; None for what its format has.
    skip_unlabelled : bool
        Whether to leave out rows without a label.
    """

    text: str | None = None
    label: str | None = None
    id: str | None = None
    delimiter: str | None = None
    skip_unlabelled: bool = False

    @property
    def unlabelled(self) -> Literal["error", "skip"]:
        """What to do with rows that have no label."""
        return "skip" if self.skip_unlabelled else "error"

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        options = {
            "--text-column": self.text,
            "--label-column": self.label,
            "--id-column": self.id,
            "--delimiter": self.delimiter,
            "--skip-unlabelled": self.skip_unlabelled or None,
        }
        return [name for name, value in options.items() if value is not None]


def kind_of(path: str, format: str, table: TableOptions, *, otherwise: Literal["svmlight", "lines"]) -> str:
    """Tell what a file holds, and refuse options that this kind of file does not have.

    Parameters
    ----------
    path : str
        A file, or `-` for standard input.
    format : str
        As the user has it; `auto` takes tables by the name of the file or, where the name does not tell, by options
        for tables (delimited text then), and XMC text by its first line.
    table : TableOptions
    otherwise : "svmlight" or "lines"
        What a file holds that nothing is known of.

    Returns
    -------
    str
        A value of `PredictFormat`, and not `auto`.
    """
    kind = format if format != "auto" else _told(path, table, otherwise)
    others = [name for name in table.given if kind not in FORMATS.values() or name == "--delimiter"]
    if others and kind not in DELIMITERS:
        raise InputError(f"{stream_name(path)}: {others[0]} has no meaning with {kind}")
    return kind


def _told(path: str, table: TableOptions, otherwise: str) -> str:
    if by_name := format_by_name(path):
        return by_name
    if not _named_as_features(path):
        if table.given:
            return "csv"
        if otherwise == "lines":
            return "lines"
    return "xmc" if looks_like_xmc(path) else "svmlight"


def _without_compression(path: str) -> PurePath:
    name = PurePath(path)
    return name.with_suffix("") if name.suffix.lower() in SUFFIXES else name


def _named_as_features(path: str) -> bool:
    return _without_compression(path).suffix.lower() in FEATURE_SUFFIXES


def stem(path: str) -> str:
    """Give the name of a data file without folder, compression, format and the place for a rank."""
    name = _without_compression(re.sub(r"[-_.]?\{rank\}", "", path))
    known = {*FORMATS, *FEATURE_SUFFIXES, ".txt"}
    return name.stem if name.suffix.lower() in known else name.name


def look_like_features(lines: list[bytes]) -> bool:
    """Whether all of these lines are rows of svmlight text, or the first one is the header of XMC text."""
    stripped = [line.rstrip(b"\r\n") for line in lines]
    filled = [line for line in stripped if line.strip()]
    if filled and HEADER.fullmatch(filled[0]) and all(map(ROW.fullmatch, filled[1:])):
        return len(filled) > 1
    return bool(filled) and all(map(ROW.fullmatch, filled))


def look_like_table(line: bytes, column: str) -> str | None:
    """The format of the table whose first line this might be: the line names the column, as a field; or None."""
    text = line.decode(errors="replace").strip().removeprefix("\ufeff")
    if text.startswith("{") and f'"{column}":' in text.replace('" :', '":'):
        return "jsonl"
    for kind, mark in DELIMITERS.items():
        fields = [field.strip('"') for field in text.split(mark)]
        if len(fields) > 1 and column in fields:
            return kind
    return None
