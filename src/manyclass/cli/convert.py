"""The command `manyclass convert`."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..data.block_store import BlockStore
from ..data.conversion import Conversion
from ..data.hashed_text import HASH_BITS
from ..data.row_parts import RowSource, TextRows
from ..data.sizes import parse_size
from ..data.store_changes import more_of
from ..data.table_rows import TableRows
from . import normalizing, output, ranks
from .formats import ROWS_OF_FEATURES, FileOptions, kind_of
from .options import AsJson, Dtype, TrainingFile
from .output import InputError
from .panels import given_in, in_data, option_in, takes_groups

# Memory per non-zero in a CSR matrix.
BYTES_A_NONZERO = 12

in_store = option_in("Store")
# The report of a store, of commands that read, write or change it.
STORE: tuple[output.Line, ...] = (
    ("store", "store", str),
    ("rows", "rows", output.count),
    ("prepared by", "steps", ", then ".join),
    ("features", "features", output.count),
    ("classes", lambda it: f"{output.count(it['classes'])}{', several per row' * it['multilabel']}", str),
    ("non-zeros", "nonzeros", output.count),
    ("blocks", "blocks", output.count),
    ("on disk", lambda it: f"{output.size(it['bytes'])}, {_share(it):.2f} of its size in memory", str),
    ("verified", lambda it: it.get("verified") and f"{_all_blocks(it['blocks'])} intact", str),
    ("minimum memory for a fit", "least_memory", output.size),
    ("removed", "removed", output.count),
    ("time", "seconds", output.seconds),
)


@dataclass(frozen=True)
class RawFiles(TrainingFile):
    """Options for the files to convert, and for making rows from them."""

    normalize: Annotated[
        bool | None,
        in_data(
            "--normalize/--no-normalize", help="Scale rows to length 1; rows made from texts always have length 1."
        ),
    ] = None
    hash_bits: Annotated[
        int | None, in_data(min=1, max=30, help=f"Hash the words of texts to 2^N features. [default: {HASH_BITS}]")
    ] = None
    dtype: Annotated[Dtype | None, in_data(help="Type of the feature values. [default: float32]")] = None


@dataclass(frozen=True)
class StoreOptions:
    """How to write the store. Fields are named after the parameters of `Conversion`."""

    append: Annotated[bool, in_store("--append", help="Add rows to an existing store.")] = False
    memory: Annotated[
        Any, in_store(parser=parse_size, metavar="SIZE", help="Memory that the conversion may use.")
    ] = "512MB"
    blocks: Annotated[int | None, in_store(min=1, help="Number of blocks. [default: depends on --memory]")] = None
    seed: Annotated[int, in_store(help="Seed for assigning rows to blocks.")] = 0
    compression: Annotated[Literal["zstd", "zlib", "none"], in_store(help="Compression of the blocks.")] = "zstd"
    level: Annotated[int | None, in_store(help="Compression level. [default: 1]")] = None


@output.answers_errors
@ranks.alone
@takes_groups
def convert(
    files: Annotated[list[str], typer.Argument(help="Text files or tables, plain or compressed; - reads stdin.")],
    store: Annotated[Path, typer.Argument(help="Folder to write.")],
    raw: RawFiles,
    options: StoreOptions,
    as_json: AsJson = False,
) -> None:
    """Convert files to a store on disk. This takes one pass and little memory.

    Train from a store when the data do not fit in memory. The files are svmlight (LIBSVM) or XMC text, or tables
    with a column of texts, whose words are hashed to features.

    \b
    Examples:
      manyclass convert big.svm.gz store/ --memory 512MB
      manyclass convert part-*.svm parts/
      manyclass convert news.parquet news/ --text-column body --label-column topic
      manyclass convert more.svm store/ --append
      zcat big.svm.gz | manyclass convert - piped/

    To resume a conversion that was stopped, repeat the command; one that reads from a pipe starts again. The folder
    becomes a store only when the conversion is complete. --append adds all rows or none.
    """
    begin = time.perf_counter()
    for file in files:
        if file != "-" and Path(file).is_dir():
            raise InputError(f"{file} is a folder; pass files")
    source = _more(BlockStore(store), files, raw) if options.append else _source(files, raw)
    made = Conversion(source, store, **given_in(options)).run()
    report = describe_store(made) | {"seconds": time.perf_counter() - begin}
    output.show_report(report, STORE, as_json=as_json)


def _kind(files: list[str], options: FileOptions) -> str:
    """Return the format that all files have."""
    kinds = {kind_of(file, options, otherwise="svmlight") for file in files}
    if len(kinds) > 1:
        raise InputError(
            f"the files have different formats ({', '.join(sorted(kinds))}); convert those of one format"
        )
    return kinds.pop()


def _source(files: list[str], raw: RawFiles) -> RowSource:
    kind = _kind(files, raw)
    if kind in ROWS_OF_FEATURES:
        _refuse(kind, hash_bits=raw.hash_bits)
        return TextRows(files, xmc=kind == "xmc", dtype=raw.dtype or "float32", normalize=bool(raw.normalize))
    _refuse(kind, dtype=raw.dtype)
    normalizing.refuse_for_texts(kind, raw.normalize)
    return TableRows(files, hash_bits=raw.hash_bits or HASH_BITS, **raw.table(kind))


def _more(store: BlockStore, files: list[str], raw: RawFiles) -> RowSource:
    _refuse("--append", dtype=raw.dtype, hash_bits=raw.hash_bits)
    normalizing.check_store(store, raw.normalize)
    kind = _kind(files, raw)
    numeric = kind in ROWS_OF_FEATURES
    if numeric == store.chain.takes_text:
        raise InputError(
            f"{store.path} holds {'texts' if numeric else 'rows of features'}; {kind} files cannot be appended to it"
        )
    return more_of(store, files, **({"xmc": kind == "xmc"} if numeric else raw.table(kind)))


def _refuse(kind: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} does not apply to {kind}")


def describe_store(store: BlockStore) -> dict[str, Any]:
    """Describe a store in plain values."""
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


def _share(report: dict[str, Any]) -> float:
    return report["bytes_a_nonzero"] / BYTES_A_NONZERO


def _all_blocks(count: int) -> str:
    return f"all {output.count(count)} blocks are" if count > 1 else "the block is"
