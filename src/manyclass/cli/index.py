"""`manyclass index`: a tree over the labels of a model, for fast prediction with very many of them."""

import time
from pathlib import Path
from typing import Annotated

import typer

from ..model import LabelTree, load_model, save_model
from ..model.label_tree import BRANCHING
from . import output, ranks
from .inputs import naming
from .output import InputError
from .replacing import check_model_file, replaced_pair


@output.answers_errors
@ranks.alone
def index(
    model: Annotated[Path, typer.Argument(help="A model written by train.")],
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here, and leave MODEL as it is. [default: MODEL]")
    ] = None,
    branching: Annotated[int, typer.Option(min=2, help="Children of a node at the most.")] = BRANCHING,
    seed: Annotated[int, typer.Option(help="Of the clustering of labels.")] = 0,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads. [default: all cores]")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is at --output, whatever it is.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Build a tree over the labels of a model, which predict and evaluate search with --beam.

    \b
    Examples:
      manyclass index train.manyclass
      manyclass evaluate train.manyclass test.txt --beam 20
      manyclass predict train.manyclass test.txt -k 5 --beam 20

    The file grows by 4 bytes a label. Scores found in the tree are those of the model; which labels have the largest
    ones is a guess, better with a wider beam. evaluate tells how good.
    """
    output.log_to_stderr(quiet=True)
    if model.is_dir() and out is None:
        raise InputError(f"{model} is a model in shards; name a file to write with --output")
    replaced = None if out is None else check_model_file(out, force=force)
    loaded = load_model(model)
    begin = time.perf_counter()
    with naming(str(model)):
        tree = LabelTree.build(loaded, branching=branching, seed=seed, n_jobs=jobs)
    seconds = time.perf_counter() - begin
    loaded.tree = tree.order
    save_model(loaded, out or model)
    report = {
        "model": str(out or model),
        "replaced": replaced and replaced.report(),
        "classes": loaded.n_classes,
        "levels": tree.levels,
        "seconds": seconds,
        "tree_bytes": tree.nbytes,
    }
    if as_json:
        typer.echo(output.to_json(report))
        return
    output.show_pairs(
        [
            ("model", str(report["model"])),
            *replaced_pair(replaced),
            ("classes", output.count(loaded.n_classes)),
            ("levels", output.count(tree.levels)),
            ("clustering", output.seconds(seconds)),
            ("memory of the tree when it is used", output.size(tree.nbytes)),
        ]
    )
