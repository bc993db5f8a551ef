"""The format of a data file, given by --format or guessed from its name, the options and its first lines."""

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from ..data.streams import SUFFIXES, stream_name
from ..data.tables import DELIMITERS, FORMATS, format_by_name
from ..data.xmc import HEADER, looks_like_xmc
from .output import InputError

ROWS_OF_FEATURES = ("svmlight", "xmc")
FEATURE_SUFFIXES = (".svm", ".svmlight", ".libsvm", ".xmc")
# A row of svmlight text: any number of labels, and at least one feature.
NUMBER = rb"[-+]?[\d.]+([eE][-+]?\d+)?"
ROW = re.compile(rb"(%b(,%b)*)?(\s+\d+:%b)+\s*(#.*)?" % (NUMBER, NUMBER, NUMBER))


DataFormat = Literal["auto", "svmlight", "xmc", "csv", "tsv", "jsonl", "parquet"]
PredictFormat = Literal[DataFormat, "lines"]


@dataclass(frozen=True)
class FileOptions:
    """What the options say about a data file."""

    text: str | None = None  # column of a table; None for that of the training data, or `text`
    label: str | None = None  # the same for the labels
    id: str | None = None  # column that is copied to the predictions
    format: PredictFormat = "auto"
    delimiter: Any = None  # field separator of delimited text; None for that of its format
    skip_unlabelled: bool = False

    @property
    def given(self) -> list[str]:
        """The options for tables that were given."""
        options = {
            "--text-column": self.text,
            "--label-column": self.label,
            "--id-column": self.id,
            "--delimiter": self.delimiter,
            "--skip-unlabelled": self.skip_unlabelled or None,
        }
        return [name for name, value in options.items() if value is not None]

    def table(self, kind: str) -> dict[str, Any]:
        """Return the arguments for reading a labelled table of this kind."""
        return {
            "text": self.text,
            "label": self.label,
            "format": kind,
            "delimiter": self.delimiter,
            "unlabelled": "skip" if self.skip_unlabelled else "error",
        }


def kind_of(path: str, file: FileOptions, *, otherwise: Literal["svmlight", "lines"]) -> str:
    """Determine the format of a file, and reject options that do not apply to it.

    The format `auto` recognises tables by the file name or else, as delimited text, by the options for tables; XMC
    text by its first line; anything else is `otherwise`.
    """
    kind = _guess(path, file, otherwise) if file.format == "auto" else file.format
    others = [name for name in file.given if kind not in FORMATS.values() or name == "--delimiter"]
    if others and kind not in DELIMITERS:
        raise InputError(f"{stream_name(path)}: {others[0]} does not apply to {kind}")
    return kind


def _guess(path: str, file: FileOptions, otherwise: str) -> str:
    if by_name := format_by_name(path):
        return by_name
    if _without_compression(path).suffix.lower() not in FEATURE_SUFFIXES:
        if file.given:
            return "csv"
        if otherwise == "lines":
            return "lines"
    return "xmc" if looks_like_xmc(path) else "svmlight"


def _without_compression(path: str) -> PurePath:
    name = PurePath(path)
    return name.with_suffix("") if name.suffix.lower() in SUFFIXES else name


def stem(path: str) -> str:
    """Return the name of a data file without folder, suffixes and the placeholder for the rank."""
    name = _without_compression(re.sub(r"[-_.]?\{rank\}", "", path))
    known = {*FORMATS, *FEATURE_SUFFIXES, ".txt"}
    return name.stem if name.suffix.lower() in known else name.name


def look_like_features(lines: list[bytes]) -> bool:
    """Whether all of these lines are rows of svmlight or XMC text."""
    stripped = [line.rstrip(b"\r\n") for line in lines]
    filled = [line for line in stripped if line.strip()]
    if filled and HEADER.fullmatch(filled[0]) and all(map(ROW.fullmatch, filled[1:])):
        return len(filled) > 1
    return bool(filled) and all(map(ROW.fullmatch, filled))


def look_like_table(line: bytes, column: str) -> str | None:
    """Return the format of a table if this may be its first line, with `column` as one of its fields; else None."""
    text = line.decode(errors="replace").strip().removeprefix("\ufeff")
    if text.startswith("{") and f'"{column}":' in text.replace('" :', '":'):
        return "jsonl"
    for kind, mark in DELIMITERS.items():
        fields = [field.strip('"') for field in text.split(mark)]
        if len(fields) > 1 and column in fields:
            return kind
    return None
