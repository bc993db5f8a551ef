"""What commands print: tables on a terminal, tabs in a pipe, JSON; errors and exit codes."""

import functools
import json
import logging
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from ..peers import started_by_mpirun
from .wording import told

UNLIMITED = 10_000
# Optionally followed by a unit.
NUMBER = re.compile(r"-?[\d.,]+(e[-+]\d+)?( (%|s|ms|B|kB|MB|GB))?")
Command = TypeVar("Command", bound=Callable[..., None])


class ExitCode(IntEnum):
    """Exit codes of the commands."""

    DONE = 0
    DEFECT = 1
    BAD_INPUT = 2
    NOT_CONVERGED = 3
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class InputError(ValueError):
    """Arguments or data are wrong; the message is all that the user sees."""


def fail(message: str, code: ExitCode = ExitCode.BAD_INPUT) -> NoReturn:
    """Print one line to standard error and exit."""
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def answers_errors(command: Command) -> Command:
    """Turn errors that users can cause into one line and an exit code; defects keep their traceback."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of our output has left; Python would report that again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.PIPE_CLOSED) from None
        except EXPECTED as error:
            fail(*explained(error))

    return guarded  # type: ignore[return-value]


EXPECTED = (KeyboardInterrupt, OSError, MemoryError, ValueError, ImportError)


def explained(error: BaseException) -> tuple[str, ExitCode]:
    """Return the message and the exit code for an error; for a defect, the whole traceback."""
    match error:
        case KeyboardInterrupt():
            return "interrupted; nothing is left half-written", ExitCode.INTERRUPTED
        case BrokenPipeError():
            return "the reader of the output closed the pipe", ExitCode.PIPE_CLOSED
        case OSError(filename=None):
            return str(error), ExitCode.BAD_INPUT
        case OSError():
            return f"{error.filename}: {error.strerror}", ExitCode.BAD_INPUT
        case MemoryError():
            advice = "`manyclass inspect DATA --estimate` estimates what a fit needs"
            return f"not enough memory; {advice}", ExitCode.DEFECT
        case InputError():
            return str(error), ExitCode.BAD_INPUT
        case ValueError() | ImportError():
            return told(error), ExitCode.BAD_INPUT
    return "".join(traceback.format_exception(error)).rstrip(), ExitCode.DEFECT


def log_to_stderr(*, quiet: bool) -> None:
    """Log what the commands do to standard error; from the library, only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    library = logging.getLogger("manyclass")
    library.handlers[:] = [handler]
    library.propagate = False
    # The library's other messages give advice in terms of Python.
    library.setLevel(logging.WARNING)
    logging.getLogger("manyclass.cli").setLevel(logging.WARNING if quiet else logging.INFO)


# ---- Reports


Line = tuple[str, str | Callable[[dict[str, Any]], Any], Callable[[Any], str]]


def show_report(
    report: dict[str, Any], show: Sequence[Line] | Callable[[dict[str, Any]], None], *, as_json: bool
) -> None:
    """Print a report as JSON, or as these lines or this function say."""
    if as_json:
        typer.echo(to_json(report))
    elif callable(show):
        show(report)
    else:
        show_lines(report, show)


def show_lines(report: dict[str, Any], lines: Iterable[Line]) -> None:
    """Print a report, one line per value: its name, how to find it, and how to format it.

    A value is found by its key (`times.fit` in a nested dict) or by a function of the report, and left out if it is
    missing or empty. A name with {} stands for one line per entry of a dict.
    """
    pairs: list[tuple[str, str]] = []
    for name, key, form in lines:
        value = key(report) if callable(key) else _find(report, key)
        if "{}" in name:
            pairs += [(name.format(entry), form(one)) for entry, one in (value or {}).items()]
        elif value is not None and not (isinstance(value, str | list) and not value):
            pairs.append((name, form(value)))
    show_table(None, ("", ""), pairs)


def _find(report: dict[str, Any], key: str) -> Any:
    found: Any = report
    for name in key.split("."):
        found = (found or {}).get(name)
    return found


def in_words(values: dict[str, Any]) -> dict[str, Any]:
    """Return the same values under names without underscores."""
    return {name.replace("_", " "): value for name, value in values.items()}


def show_table(title: str | None, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, transposed if it is too wide; otherwise tab-separated."""
    # mpirun gives each rank a terminal, wherever its own output goes.
    if not sys.stdout.isatty() or started_by_mpirun():
        for line in [columns, *rows] if any(columns) else rows:
            typer.echo("\t".join(one_line(field) for field in line))
        return
    console = Console(markup=False, highlight=False)
    table = _draw(title, columns, rows)
    natural = console.measure(table, options=console.options.update(width=UNLIMITED)).maximum
    if natural > console.width and len(rows) + 1 < len(columns):
        first, *others = zip(columns, *rows, strict=True)
        table = _draw(title, first, others)
    console.print(table)


def _draw(title: str | None, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left", show_header=any(columns))
    for place, name in enumerate(columns):
        cells = [row[place] for row in rows]
        justify: Literal["left", "right"] = "right" if place and all(map(NUMBER.fullmatch, cells)) else "left"
        table.add_column(name, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def one_line(label: Any) -> str:
    """Escape a label so that it fits on one line and into one tab-separated field."""
    text = str(label)
    for character, name in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(character, name)
    return text


# ---- JSON


def to_json(value: Any) -> str:
    """Return strict JSON: arrays become lists, NaN and infinity null, and other types their `report()` or strings."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "report"):
        value = value.report()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


# ---- Numbers


def size(n_bytes: float) -> str:
    """Format a number of bytes: 12.3 MB."""
    for unit in ("B", "kB", "MB"):
        if abs(n_bytes) < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.2f} GB"


def percent(share: float) -> str:
    """Format a fraction: 12.34 %."""
    return f"{100 * share:.2f} %"


def seconds(duration: float) -> str:
    """Format a duration: 1.23 s."""
    return f"{duration:.2f} s"


def count(value: int) -> str:
    """Format an integer: 12,345."""
    return f"{value:,}"


def counted(value: int, noun: str) -> str:
    """Format a number of things: 1 row, 12,345 rows."""
    return f"{count(value)} {noun}{'s' * (value != 1)}"


def spread(values: dict[str, float]) -> str:
    """Format a range: 1 to 1,234, mean 5.6."""
    middle = "mean" if "mean" in values else "median"
    return f"{values['smallest']:,} to {values['largest']:,}, {middle} {values[middle]:,.1f}"


def number(value: float) -> str:
    """Format a number with six significant digits, or an integer in full."""
    return count(value) if isinstance(value, int) else f"{value:.6g}"
