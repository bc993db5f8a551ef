"""`manyclass convert`: from files to a store of blocks, for data that does not fit into memory."""

import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.block_store import BlockStore
from ..data.conversion import Conversion
from ..data.hashed_text import HASH_BITS
from ..data.row_parts import RowSource, TextRows
from ..data.sizes import parse_size
from ..data.store_changes import more_of
from ..data.table_rows import TableRows
from . import normalizing, output, ranks
from .fitting import Dtype
from .formats import ROWS_OF_FEATURES, DataFormat, TableOptions, kind_of
from .options import Delimiter, LabelColumn, SkipUnlabelled, TextColumn
from .output import InputError

# What a non-zero takes in memory: an index, a value, and where they are.
BYTES_A_NONZERO = 12


class Compression(str, Enum):
    """Of the blocks."""

    zstd = "zstd"
    zlib = "zlib"
    none = "none"


@output.answers_errors
@ranks.alone
def convert(
    files: Annotated[list[str], typer.Argument(help="Text or tables, plain or compressed; - for stdin.")],
    store: Annotated[Path, typer.Argument(help="The folder to make.")],
    append: Annotated[bool, typer.Option("--append", help="Add to the store that the folder is.")] = False,
    memory: Annotated[
        Any, typer.Option(parser=parse_size, metavar="SIZE", help="What the conversion may use.")
    ] = "512MB",
    blocks: Annotated[int | None, typer.Option(min=1, help="How many. [default: as the memory asks for]")] = None,
    format: Annotated[DataFormat, typer.Option(help="auto: by the names; xmc by its first line.")] = DataFormat.auto,
    dtype: Annotated[Dtype | None, typer.Option(help="Of the values. [default: float32]")] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    delimiter: Delimiter = None,
    skip_unlabelled: SkipUnlabelled = False,
    normalize: Annotated[
        bool | None,
        typer.Option("--normalize/--no-normalize", help="Scale rows to length 1; those of texts always are."),
    ] = None,
    hash_bits: Annotated[
        int | None, typer.Option(min=1, max=30, help=f"Texts get 2^N features. [default: {HASH_BITS}]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the dealing of rows to blocks.")] = 0,
    compression: Annotated[Compression, typer.Option(help="Of the blocks.")] = Compression.zstd,
    level: Annotated[int | None, typer.Option(help="Of compression. [default: 1]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Convert files to a store of blocks, in one pass and with little memory.

    The files are LIBSVM/svmlight or XMC text, or tables with a column of texts, whose words are hashed to features.

    \b
    Examples:
      manyclass convert big.svm.gz store/ --memory 512MB
      manyclass convert part-*.svm parts/
      manyclass convert news.parquet texts/ --text-column body --label-column topic
      manyclass convert more.svm store/ --append
      zcat big.svm.gz | manyclass convert - piped/

    Stopped, it goes on when the command is repeated; from a pipe it has to begin anew. The folder is a store when the
    conversion is over, and not before; rows are appended all or not at all.
    """
    output.log_to_stderr(quiet=True)
    begin = time.perf_counter()
    for file in files:
        if file != "-" and Path(file).is_dir():
            raise InputError(f"{file}: a folder; pass files")
    table = TableOptions(text_column, label_column, None, delimiter, skip_unlabelled)
    if append:
        source = _more(BlockStore(store), files, format, table, dtype, hash_bits, normalize)
    else:
        source = _source(files, format, table, dtype, hash_bits, normalize)
    made = Conversion(
        source,
        store,
        append=append,
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


def _kind(files: list[str], format: DataFormat, table: TableOptions) -> str:
    """One format for all files."""
    kinds = {kind_of(file, format.value, table, otherwise="svmlight") for file in files}
    if len(kinds) > 1:
        raise InputError(
            f"the files are of different kinds ({', '.join(sorted(kinds))}); convert one kind, append others"
        )
    return kinds.pop()


def _source(
    files: list[str],
    format: DataFormat,
    table: TableOptions,
    dtype: Dtype | None,
    hash_bits: int | None,
    normalize: bool | None,
) -> RowSource:
    kind = _kind(files, format, table)
    if kind in ROWS_OF_FEATURES:
        _refuse(kind, hash_bits=hash_bits)
        return TextRows(files, xmc=kind == "xmc", dtype=(dtype or Dtype.float32).value, normalize=bool(normalize))
    _refuse(kind, dtype=dtype)
    normalizing.refuse_for_texts(kind, normalize)
    return TableRows(
        files,
        text=table.text,
        label=table.label,
        format=kind,  # type: ignore[arg-type]
        delimiter=table.delimiter,
        hash_bits=hash_bits or HASH_BITS,
        unlabelled=table.unlabelled,
    )


def _more(
    store: BlockStore,
    files: list[str],
    format: DataFormat,
    table: TableOptions,
    dtype: Dtype | None,
    hash_bits: int | None,
    normalize: bool | None,
) -> RowSource:
    _refuse("--append", dtype=dtype, hash_bits=hash_bits)
    normalizing.check_store(store, normalize)
    kind = _kind(files, format, table)
    numeric = kind in ROWS_OF_FEATURES
    if numeric == store.chain.takes_text:
        raise InputError(
            f"{store.path} was made of {'texts' if numeric else 'rows of features'}, which {kind} files do not hold"
        )
    if numeric:
        return more_of(store, files, xmc=kind == "xmc")
    return more_of(
        store,
        files,
        text=table.text,
        label=table.label,
        format=kind,
        delimiter=table.delimiter,
        unlabelled=table.unlabelled,
    )


def _refuse(kind: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} has no meaning with {kind}")


def describe_store(store: BlockStore) -> dict[str, Any]:
    """What there is to say of a store."""
    size = sum(entry.size for entry in store.manifest.blocks)
    return {
        "store": str(store.path),
        "rows": store.n_rows,
        "features": store.n_features,
        "classes": int(store.classes.size),
        "multilabel": store.manifest.multilabel,
        "steps": store.chain.describe(),
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
        ("rows", output.count(report["rows"])),
        *((("prepared by", ", then ".join(report["steps"])),) if report["steps"] else ()),
        ("features", output.count(report["features"])),
        ("classes", f"{output.count(report['classes'])}{', several per row' if report['multilabel'] else ''}"),
        ("non-zeros", output.count(report["nonzeros"])),
        ("blocks", output.count(report["blocks"])),
        ("on disk", f"{output.size(report['bytes'])}, {share:.2f} of what it takes in memory"),
    ]
    if report.get("verified"):
        blocks = f"all {output.count(report['blocks'])} blocks are" if report["blocks"] > 1 else "the block is"
        pairs.append(("verified", f"{blocks} intact"))
    if "least_memory" in report:
        pairs.append(("memory of a fit, at least", output.size(report["least_memory"])))
    if "removed" in report:
        pairs.append(("removed", output.count(report["removed"])))
    if "seconds" in report:
        pairs.append(("time", output.seconds(report["seconds"])))
    output.show_pairs(pairs)
