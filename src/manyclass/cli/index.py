"""The command `manyclass index`."""

import time
from pathlib import Path
from typing import Annotated

import typer

from ..model import LabelTree, load_model, save_model
from ..model.label_tree import BRANCHING
from . import output, ranks
from .inputs import naming
from .options import AsJson, ForceOutput, Jobs, ModelFile
from .output import InputError
from .replacing import check_model_file

LINES: tuple[output.Line, ...] = (
    ("model", "model", str),
    ("replaced", "replaced", str),
    ("classes", "classes", output.count),
    ("levels", "levels", output.count),
    ("clustering", "seconds", output.seconds),
    ("memory of the tree in use", "tree_bytes", output.size),
)


@output.answers_errors
@ranks.alone
def index(
    model: ModelFile,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write instead of changing MODEL. [default: MODEL]")
    ] = None,
    branching: Annotated[int, typer.Option(min=2, help="Maximum number of children per node.")] = BRANCHING,
    seed: Annotated[int, typer.Option(help="Seed for clustering the labels.")] = 0,
    jobs: Jobs = None,
    force: ForceOutput = False,
    as_json: AsJson = False,
) -> None:
    """Build a label tree for faster prediction. It is used by predict and evaluate with --beam.

    \b
    Examples:
      manyclass index train.manyclass
      manyclass evaluate train.manyclass test.txt --beam 20
      manyclass predict train.manyclass test.txt -k 5 --beam 20

    The file grows by 4 bytes per label. The scores found are exactly those of the model, but the search may miss some
    of the best labels. A wider beam misses fewer; evaluate reports how many it finds.
    """
    if model.is_dir() and out is None:
        raise InputError(f"{model} is a model in shards; pass a file to write with --output")
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
        "replaced": replaced,
        "classes": loaded.n_classes,
        "levels": tree.levels,
        "seconds": seconds,
        "tree_bytes": tree.nbytes,
    }
    output.show_report(report, LINES, as_json=as_json)
