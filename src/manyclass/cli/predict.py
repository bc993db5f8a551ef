"""`manyclass predict`: the most likely classes of new rows or texts."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..data.streams import open_output
from ..estimators.predictor import by_blocks
from ..model import load_model
from ..solvers import share
from . import output, ranks
from .inputs import Columns, PredictFormat, open_store, read_for_prediction
from .output import InputError


@output.answers_errors
@ranks.as_one
def predict(
    model: Annotated[Path, typer.Argument(help="A model written by train.")],
    data: Annotated[str, typer.Argument(help="Rows or texts, or a store; - for stdin.")],
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here and not to stdout; .gz etc. compress.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="So many classes a row, the most likely first.")] = 1,
    scores: Annotated[bool, typer.Option("--scores", help="Print the score after each label.")] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Print the probability after each label.")
    ] = False,
    text_column: Annotated[str | None, typer.Option(help="Of a table. [default: as in training]")] = None,
    format: Annotated[PredictFormat, typer.Option(help="auto: by the name of the file.")] = PredictFormat.auto,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads. [default: all cores]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row.")] = False,
) -> None:
    """Predict the classes of rows or texts, one line a row.

    A model trained on svmlight text takes svmlight text; labels in it are ignored. A model trained on a
    table takes tables with the same text column (labels are not needed), or plain text, one text a line. The rows
    of a store are read block by block, and come in the order in which they were added to it.

    \b
    Examples:
      manyclass predict news20.manyclass news20.t.gz -o labels.txt
      echo "parliament votes on the budget" | manyclass predict news.manyclass - -k 5 --scores
      manyclass predict news.manyclass new.csv --json | head

    Labels and scores are separated by tabs. Backslash, tab and line end in a label are written \\\\, \\t
    and \\n.

    Under mpirun the ranks share the rows, or read a file each (part-{rank}.svm); one of them writes.
    """
    output.log_to_stderr(quiet=True)
    jobs = ranks.threads(jobs)
    loaded = load_model(model)
    if k > loaded.n_classes:
        raise InputError(f"-k {k} asks for more classes than the {loaded.n_classes} that {model} has")
    if probabilities and scores:
        raise InputError("choose one of --scores and --probabilities")
    if probabilities and loaded.settings.get("probability") is None:
        raise InputError(
            f"{model} has no probabilities; train with --loss maxent or logistic, or with --calibrate temperature"
        )
    find = loaded.topk_probabilities if probabilities else loaded.topk
    name = "probabilities" if probabilities else "scores"
    peers, divided = ranks.peers(), ranks.one_each(data)

    def as_lines(codes: np.ndarray, values: np.ndarray) -> list[str]:
        labels, shown = loaded.classes[codes], values if scores or probabilities else None
        return list(_json_lines(labels, shown, name) if as_json else _tab_lines(labels, shown))

    def lines(X: Any) -> list[str]:
        first, last = (0, X.shape[0]) if divided else share(X.shape[0], peers)
        return as_lines(*find(X[first:last], k, n_jobs=jobs))

    pieces: Iterable[list[str]]
    if (store := open_store(data)) is not None:
        found = by_blocks(store, loaded.n_features, lambda X: find(X, k, n_jobs=jobs))
        mine = share(store.n_rows, peers)
        pieces = [as_lines(*(column[slice(*mine)] for column in found))]
    else:
        pieces = map(lines, read_for_prediction(loaded, data, format, Columns(text_column)))
    if divided:  # the rows of the first rank come first
        pieces = [[line for piece in pieces for line in piece]]
    with _writing(out if peers.rank == 0 else None) as write:
        for piece in pieces:
            for part in peers.gather(piece):
                for line in part:
                    write(line + "\n")


@contextlib.contextmanager
def _writing(path: Path | None) -> Iterator[Callable[[str], object]]:
    if path is None:
        yield sys.stdout.write
        return
    with open_output(path) as stream:
        yield lambda text: stream.write(text.encode())


def _tab_lines(labels: np.ndarray, scores: np.ndarray | None) -> Iterator[str]:
    for row, names in enumerate(labels.tolist()):
        fields = [output.one_line(name) for name in names]
        if scores is not None:
            fields = [text for pair in zip(fields, map(str, scores[row]), strict=True) for text in pair]
        yield "\t".join(fields)


def _json_lines(labels: np.ndarray, values: np.ndarray | None, name: str) -> Iterator[str]:
    for row, names in enumerate(labels.tolist()):
        record = {"labels": names}
        if values is not None:
            record[name] = values[row].tolist()
        yield output.to_json(record)
