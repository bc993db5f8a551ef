"""The command `manyclass remove`."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ..data.block_store import BlockStore
from ..data.streams import open_input, stream_name
from . import output, ranks
from .convert import STORE, describe_store
from .options import AsJson
from .output import InputError


@output.answers_errors
@ranks.alone
def remove(
    store: Annotated[Path, typer.Argument(help="Store written by convert.")],
    rows: Annotated[str | None, typer.Option(metavar="LIST", help="Ids of rows to remove, such as 3,17-20.")] = None,
    rows_from: Annotated[
        str | None, typer.Option(metavar="FILE", help="File with such ids, one or a range per line; - reads stdin.")
    ] = None,
    blocks: Annotated[
        str | None, typer.Option(metavar="LIST", help="Numbers of blocks to remove, such as 0,4-6.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove rows or whole blocks from a store.

    \b
    Examples:
      manyclass remove store/ --rows 3,17-20
      manyclass remove store/ --rows-from spam.txt
      manyclass remove store/ --blocks 4

    Rows are numbered from 0 in the order in which they were converted and appended, and keep their numbers. Blocks
    are numbered from 0; when one is removed, those after it are renumbered. If a row or block does not exist,
    nothing is removed.
    """
    if rows is None and rows_from is None and blocks is None:
        raise InputError("nothing to remove; pass --rows, --rows-from or --blocks")
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
    output.show_report(report, STORE, as_json=as_json)


def numbers(text: str, where: str, limit: int) -> list[int]:
    """Parse numbers such as 3,17-20, all below a limit."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if match is None:
            raise InputError(f"{where}: {part.strip()!r} is neither a number (0 or more) nor a range such as 17-20")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise InputError(f"{where}: the range {part.strip()} ends before it starts")
        if last >= limit:
            raise InputError(f"{where}: {last} does not exist; the last number is {limit - 1}")
        found += range(first, last + 1)
    return found
