"""`manyclass compress`: a smaller model that predicts nearly the same."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ..model import load_model, save_model
from ..model.shards import stored_bytes
from . import output, ranks
from .output import InputError
from .replacing import check_model_file, replaced_pair


class Narrow(str, Enum):
    """What weights can be stored as."""

    float16 = "float16"
    int8 = "int8"


@output.answers_errors
@ranks.alone
def compress(
    model: Annotated[Path, typer.Argument(help="A model written by train.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="Where the smaller one goes.")],
    dtype: Annotated[
        Narrow | None, typer.Option(help="Weights in half precision, or in 8 bits with a scale a class.")
    ] = None,
    prune: Annotated[float, typer.Option(min=0, help="Drop weights that are smaller in size.")] = 0.0,
    keep: Annotated[
        int | None, typer.Option(min=1, help="Keep the largest weights of a class only, so many at the most.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is at --output, whatever it is.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Make a model smaller: drop small weights, store the others in fewer bits.

    \b
    Examples:
      manyclass compress news.manyclass -o small.manyclass --dtype int8
      manyclass compress news.manyclass -o small.manyclass --dtype int8 --prune 0.01
      manyclass evaluate small.manyclass test.csv        # what it has cost
    """
    output.log_to_stderr(quiet=True)
    if dtype is None and prune == 0 and keep is None:
        raise InputError("say how: --dtype, --prune or --keep")
    replaced = check_model_file(out, force=force)
    if out.exists() and out.samefile(model):
        replaced = None
    before, size_before = load_model(model), stored_bytes(model)
    after = before.compress(dtype.value if dtype else None, prune=prune, keep=keep)
    save_model(after, out)
    report = {
        "model": str(out),
        "replaced": replaced and replaced.report(),
        "file_bytes_before": size_before,
        "file_bytes": stored_bytes(out),
        "density_before": before.density,
        "density": after.density,
    }
    if as_json:
        typer.echo(output.to_json(report))
        return
    output.show_pairs(
        [
            ("model", str(out)),
            *replaced_pair(replaced),
            ("size of the file", f"{output.size(stored_bytes(out))}, was {output.size(size_before)}"),
            ("density", f"{output.percent(after.density)}, was {output.percent(before.density)}"),
        ]
    )
