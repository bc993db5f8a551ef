"""`manyclass predict`: the most likely classes of new rows or texts."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, starmap
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from ..data.streams import open_output
from ..model import LabelTree, LinearModel, load_model
from ..model.label_sets import scores_above
from ..model.probability import probabilities as rule_of_scores
from ..solvers import share
from . import output, ranks
from .formats import PredictFormat, TableOptions
from .inputs import naming
from .model_inputs import ModelInput
from .options import Delimiter, SameTextColumn
from .output import InputError
from .replacing import refuse_inputs


@output.answers_errors
@ranks.as_one
def predict(
    model: Annotated[Path, typer.Argument(help="A model written by train.")],
    data: Annotated[str, typer.Argument(help="Rows or texts, or a store; - for stdin.")],
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here and not to stdout; .gz etc. compress.")
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, help="So many classes a row, the most likely first. [default: 1, or --threshold]"),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Of a model for sets of labels: all with larger scores. [default: 0]")
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Search the tree that `index` has built, keeping so many nodes a level.")
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Print the score after each label.")] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Print the probability after each label.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse features that the model was not trained on.")
    ] = False,
    text_column: SameTextColumn = None,
    id_column: Annotated[
        str | None, typer.Option(help="Of a table: print what it holds before the labels of each row.")
    ] = None,
    delimiter: Delimiter = None,
    format: Annotated[PredictFormat, typer.Option(help="auto: by the name of the file.")] = PredictFormat.auto,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads. [default: all cores]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row.")] = False,
) -> None:
    """Predict the classes of rows or texts, one line a row.

    A model trained on svmlight or XMC text takes either; labels in it are ignored. A model trained on a
    table takes tables with the same text column (labels are not needed), told by their names, and else plain text,
    one text per line. Of a pipe say with --format, --text-column or --id-column that it is a table. The rows of a
    store are read block by block, and come in the order in which they were added to it. Features that the model
    was not trained on are ignored and counted on standard error; --strict refuses them.

    \b
    Examples:
      manyclass predict big.manyclass test.svm -o labels.txt
      echo "parliament votes on the budget" | manyclass predict news.manyclass - -k 5 --scores
      manyclass predict news.manyclass new.csv --json | head
      manyclass predict news.manyclass news.parquet --id-column id -o topics.tsv
      cat new.csv | manyclass predict news.manyclass - --format csv

    A model for sets of labels gives those with scores above 0, or above --threshold, the largest first, which may be
    none: an empty line. With -k it gives so many for each row.

    With --id-column each line begins with the value in that column; with --json it is called "id".

    Labels and scores are separated by tabs. Backslash, tab and line end in a label are written \\\\, \\t
    and \\n.

    Under mpirun the ranks share the rows, or read a file each (part-{rank}.svm); one of them writes.
    """
    output.log_to_stderr(quiet=True)
    jobs = ranks.threads(jobs)
    if out is not None:
        refuse_inputs(out, [model, data], "--output")
    loaded = load_model(model)
    by_threshold = loaded.multilabel and k is None
    if threshold is not None and not by_threshold:
        why = "leave out -k" if loaded.multilabel else f"{model} has one label a row"
        raise InputError(f"--threshold chooses sets of labels; {why}")
    if beam is not None and (by_threshold or probabilities):
        why = "probabilities" if probabilities else "sets by a threshold; say how many labels a row with -k"
        raise InputError(f"--beam looks at some labels only, which is not enough for {why}")
    k = k or 1
    if k > loaded.n_classes:
        raise InputError(f"-k {k} asks for more classes than the {output.count(loaded.n_classes)} that {model} has")
    if probabilities and scores:
        raise InputError("choose one of --scores and --probabilities")
    if probabilities and loaded.settings.get("probability") is None:
        raise InputError(
            f"{model} has no probabilities; train with --loss maxent or logistic, or with --calibrate sigmoid"
        )
    name = "probabilities" if probabilities else "scores" if scores else None
    peers = ranks.peers()
    rows = ModelInput(
        loaded, data, format, TableOptions(text_column, id=id_column, delimiter=delimiter), strict=strict
    )
    with naming(str(model)):
        tree = None if beam is None else LabelTree(loaded, n_jobs=jobs)

    def find(X: Any) -> tuple[Any, ...]:
        if tree is not None and beam is not None:
            return tree.topk(X, k, beam=beam, n_jobs=jobs)
        if by_threshold:
            return (scores_above(loaded, X, threshold or 0.0, jobs),)
        return (loaded.topk_probabilities if probabilities else loaded.topk)(X, k, n_jobs=jobs)

    def as_lines(found: tuple[Any, ...], ids: list[Any] | None = None) -> list[str]:
        predicted = [*(_of_matrix(loaded, found[0], probabilities) if by_threshold else _of_arrays(loaded, *found))]
        own: list[dict[str, Any]] = [{}] * len(predicted) if ids is None else [{"id": id} for id in ids]
        write_line = _json_line if as_json else _tab_line
        return [write_line(one, labels, values, name) for one, (labels, values) in zip(own, predicted, strict=True)]

    def lines(X: Any, ids: list[Any] | None) -> list[str]:
        mine = slice(*((0, X.shape[0]) if rows.divided else share(X.shape[0], peers)))
        return as_lines(find(X[mine]), ids and ids[mine])

    pieces: Iterable[list[str]]
    if rows.store is not None:
        with naming(data):
            found = rows.for_blocks(find)
        mine = slice(*share(rows.store.n_rows, peers))
        pieces = [as_lines(tuple(column[mine] for column in found))]
    else:
        pieces = starmap(lines, rows.unlabelled())
    if rows.divided:  # the rows of the first rank come first
        pieces = [[line for piece in pieces for line in piece]]
    with _writing(out if peers.rank == 0 else None) as write:
        for piece in pieces:
            for part in peers.gather(piece):
                for line in part:
                    write(line + "\n")
    rows.ignored()


@contextlib.contextmanager
def _writing(path: Path | None) -> Iterator[Callable[[str], object]]:
    if path is None:
        yield sys.stdout.write
        return
    with open_output(path) as stream:
        yield lambda text: stream.write(text.encode())


# ---- Labels of each row and their values, best first


def _of_arrays(model: LinearModel, codes: np.ndarray, values: np.ndarray) -> Iterator[tuple[list[Any], np.ndarray]]:
    return zip(model.classes[codes].tolist(), values, strict=True)


def _of_matrix(
    model: LinearModel, scores: sp.csr_matrix, as_probabilities: bool
) -> Iterator[tuple[list[Any], np.ndarray]]:
    values = scores.data
    if as_probabilities:  # of each label alone
        values = rule_of_scores(model.settings["probability"], values[:, None])[:, 0]
    for begin, end in pairwise(scores.indptr):
        order = begin + np.argsort(-scores.data[begin:end], kind="stable")
        yield model.classes[scores.indices[order]].tolist(), values[order]


def _tab_line(own: dict[str, Any], labels: list[Any], values: np.ndarray, name: str | None) -> str:
    fields = [output.one_line(label) for label in labels]
    if name is not None:
        fields = [text for pair in zip(fields, map(str, values), strict=True) for text in pair]
    return "\t".join([*("" if one is None else output.one_line(one) for one in own.values()), *fields])


def _json_line(own: dict[str, Any], labels: list[Any], values: np.ndarray, name: str | None) -> str:
    return output.to_json(own | {"labels": labels} | ({} if name is None else {name: values.tolist()}))
