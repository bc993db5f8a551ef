"""`manyclass remove`: rows or blocks that a store should have no more."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ..data.block_store import BlockStore
from ..data.streams import open_input, stream_name
from . import output, ranks
from .convert import describe_store, show_store
from .output import InputError


@output.answers_errors
@ranks.alone
def remove(
    store: Annotated[Path, typer.Argument(help="The folder.")],
    rows: Annotated[str | None, typer.Option(metavar="LIST", help="Ids of rows, such as 3,17-20.")] = None,
    rows_from: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of such ids, one or a range a line; - for stdin.")
    ] = None,
    blocks: Annotated[str | None, typer.Option(metavar="LIST", help="Numbers of blocks, such as 0,4-6.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Remove rows or whole blocks from a store.

    \b
    Examples:
      manyclass remove store/ --rows 3,17-20
      manyclass remove store/ --rows-from spam.txt
      manyclass remove store/ --blocks 4

    Rows are numbered from 0 in the order in which they were converted and appended, and keep their numbers.
    Blocks are numbered from 0, and later ones move up. If one row or block is not there, nothing is removed.
    """
    output.log_to_stderr(quiet=True)
    if rows is None and rows_from is None and blocks is None:
        raise InputError("say what to remove: --rows, --rows-from or --blocks")
    opened = BlockStore(store)
    wanted = numbers(rows, "--rows", opened.manifest.next_id) if rows is not None else []
    if rows_from is not None:
        with open_input(rows_from) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    where = f"{stream_name(rows_from)}:{number}"
                    wanted += numbers(line.decode("utf-8", "replace"), where, opened.manifest.next_id)
    chosen = numbers(blocks, "--blocks", opened.n_blocks) if blocks is not None else []
    before = opened.n_rows
    opened.remove(wanted, blocks=chosen)
    report = describe_store(opened) | {"removed": before - opened.n_rows}
    if as_json:
        typer.echo(output.to_json(report))
    else:
        show_store(report)


def numbers(text: str, where: str, limit: int) -> list[int]:
    """The numbers of a text such as 3,17-20, all below a limit."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if match is None:
            raise InputError(f"{where}: {part.strip()!r} is no number from 0 up, nor a range such as 17-20")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise InputError(f"{where}: the range {part.strip()} ends before it begins")
        if last >= limit:
            raise InputError(f"{where}: there is no number {last}; the last one is {limit - 1}")
        found += range(first, last + 1)
    return found
