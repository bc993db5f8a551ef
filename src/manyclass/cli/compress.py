"""The command `manyclass compress`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..model import load_model, save_model
from ..model.shards import stored_bytes
from . import output, ranks
from .options import AsJson, ForceOutput, ModelFile
from .output import InputError
from .replacing import check_model_file

LINES: tuple[output.Line, ...] = (
    ("model", "model", str),
    ("replaced", "replaced", str),
    ("file size", lambda it: f"{output.size(it['file_bytes'])}, was {output.size(it['file_bytes_before'])}", str),
    ("density", lambda it: f"{output.percent(it['density'])}, was {output.percent(it['density_before'])}", str),
)


@output.answers_errors
@ranks.alone
def compress(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--output", "-o", help="File for the smaller model.")],
    dtype: Annotated[
        Literal["float16", "int8"] | None,
        typer.Option(help="Store weights in half precision, or in 8 bits with one scale per class."),
    ] = None,
    prune: Annotated[float, typer.Option(min=0, help="Drop weights smaller than this in absolute value.")] = 0.0,
    keep: Annotated[
        int | None, typer.Option(min=1, help="Keep at most this many weights per class, the largest ones.")
    ] = None,
    force: ForceOutput = False,
    as_json: AsJson = False,
) -> None:
    """Make a model smaller. Drop small weights, and store the others in fewer bits.

    \b
    Examples:
      manyclass compress news.manyclass -o small.manyclass --dtype int8
      manyclass compress news.manyclass -o small.manyclass --keep 1000
      manyclass evaluate small.manyclass test.csv        # compare
    """
    if dtype is None and prune == 0 and keep is None:
        raise InputError("nothing to do; pass --dtype, --prune or --keep")
    replaced = check_model_file(out, force=force)
    if out.exists() and out.samefile(model):
        replaced = None
    before, size_before = load_model(model), stored_bytes(model)
    after = before.compress(dtype, prune=prune, keep=keep)
    save_model(after, out)
    report = {
        "model": str(out),
        "replaced": replaced,
        "file_bytes_before": size_before,
        "file_bytes": stored_bytes(out),
        "density_before": before.density,
        "density": after.density,
    }
    output.show_report(report, LINES, as_json=as_json)
