"""`manyclass convert`: from text to a store of blocks, for data that does not fit into memory."""

import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.block_store import BlockStore
from ..data.conversion import Conversion
from ..data.row_parts import TextRows
from ..data.sizes import parse_size, show_size
from . import output, ranks
from .fitting import Dtype
from .output import InputError

# What a non-zero takes in memory: an index, a value, and where they are.
BYTES_A_NONZERO = 12


class TextFormat(str, Enum):
    """How the files are to be read."""

    svmlight = "svmlight"
    xmc = "xmc"


class Compression(str, Enum):
    """Of the blocks."""

    zstd = "zstd"
    zlib = "zlib"
    none = "none"


@output.answers_errors
@ranks.alone
def convert(
    files: Annotated[list[str], typer.Argument(help="Text, plain or compressed; - for stdin.")],
    store: Annotated[Path, typer.Argument(help="The folder to make.")],
    memory: Annotated[
        Any, typer.Option(parser=parse_size, metavar="SIZE", help="What conversion and training may use.")
    ] = "512MB",
    blocks: Annotated[int | None, typer.Option(min=1, help="How many. [default: as the memory asks for]")] = None,
    format: Annotated[
        TextFormat, typer.Option(help="xmc has a first line `rows features labels`.")
    ] = TextFormat.svmlight,
    dtype: Annotated[Dtype, typer.Option(help="Of the values.")] = Dtype.float32,
    seed: Annotated[int, typer.Option(help="Of the dealing of rows to blocks.")] = 0,
    compression: Annotated[Compression, typer.Option(help="Of the blocks.")] = Compression.zstd,
    level: Annotated[int | None, typer.Option(help="Of compression. [default: 1]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Convert text to a store of blocks, in one pass and with little memory.

    \b
    Examples:
      manyclass convert big.svm.gz store/ --memory 512MB
      manyclass convert part-*.svm store/
      generate | manyclass convert - store/

    Stopped, it goes on when the command is repeated; from a pipe it has to begin anew. The folder is a store when the
    conversion is over, and not before.
    """
    output.log_to_stderr(quiet=True)
    begin = time.perf_counter()
    for file in files:
        if file != "-" and Path(file).is_dir():
            raise InputError(f"{file}: a folder; pass files")
    made = Conversion(
        TextRows(files, xmc=format is TextFormat.xmc, dtype=dtype.value),
        store,
        memory=memory,
        blocks=blocks,
        seed=seed,
        compression=compression.value,
        level=level,
    ).run()
    report = describe_store(made) | {"seconds": time.perf_counter() - begin}
    if as_json:
        typer.echo(output.to_json(report))
    else:
        show_store(report)


def describe_store(store: BlockStore) -> dict[str, Any]:
    """What there is to say of a store."""
    size = sum(entry.size for entry in store.manifest.blocks)
    return {
        "store": str(store.path),
        "rows": store.n_rows,
        "features": store.n_features,
        "classes": int(store.classes.size),
        "multilabel": store.manifest.multilabel,
        "nonzeros": store.nnz,
        "blocks": store.n_blocks,
        "bytes": size,
        "bytes_a_nonzero": size / max(1, store.nnz),
    }


def show_store(report: dict[str, Any]) -> None:
    """Print it."""
    share = report["bytes_a_nonzero"] / BYTES_A_NONZERO
    pairs = [
        ("store", report["store"]),
        ("rows", f"{report['rows']:,}"),
        ("features", f"{report['features']:,}"),
        ("classes", f"{report['classes']:,}{', several a row' if report['multilabel'] else ''}"),
        ("non-zeros", f"{report['nonzeros']:,}"),
        ("blocks", f"{report['blocks']:,}"),
        ("on disk", f"{show_size(report['bytes'])}, {share:.2f} of what it takes in memory"),
    ]
    if "seconds" in report:
        pairs.append(("seconds", f"{report['seconds']:.1f}"))
    output.show_pairs(pairs)
