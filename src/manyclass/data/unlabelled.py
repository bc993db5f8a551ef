"""Reject, skip or keep table rows that have no label."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

from .labels import is_missing
from .streams import StreamError
from .svmlight import ParseError

logger = logging.getLogger("manyclass")

Unlabelled = Literal["error", "skip", "keep"]


def labelled(
    rows: Iterator[tuple[int, str, Any]], name: str, column: str, unlabelled: Unlabelled
) -> Iterator[tuple[str, Any]]:
    """Yield the texts and labels of rows, handling those without a label.

    Parameters
    ----------
    rows : iterator of line number, text and label
        The rows.
    name, column : str
        Name of the file and of its label column, for messages.
    unlabelled : "error", "skip" or "keep"
        How to treat rows whose label is empty, null or NaN: raise an error, skip them and log a warning with their
        number, or keep them unchanged.

    Raises
    ------
    ParseError
        At the first row without a label; the message says how many there are.
    """
    skipped = first = 0
    for line, text, label in rows:
        if unlabelled == "keep" or not _is_empty(label):
            yield text, label
        elif unlabelled == "skip":
            skipped, first = skipped + 1, first or line
        else:
            count = 1 + _count_empty(rows)
            found = "1 row has" if count == 1 else f"{count:,} rows have"
            raise ParseError(
                name,
                line,
                1,
                f"no label in {column!r}; {found} no label",
                "unlabelled",
            )
    if skipped:
        rows_without = "1 row without a label was" if skipped == 1 else f"{skipped:,} rows without a label were"
        logger.warning("%s: %s skipped, the first in line %d", name, rows_without, first)


def _is_empty(label: Any) -> bool:
    return not label.strip() if isinstance(label, str) else is_missing(label)


def _count_empty(rows: Iterator[tuple[int, str, Any]]) -> int:
    count = 0
    # Ignore other errors for now; they are reported once the labels are filled in.
    with suppress(ParseError, UnicodeDecodeError, StreamError):
        for _, _, label in rows:
            count += _is_empty(label)
    return count
