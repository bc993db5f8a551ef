"""The command `manyclass predict`."""

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
from ..peers import share
from . import output, ranks
from .formats import PredictFormat, TableOptions
from .inputs import naming
from .model_inputs import ModelInput
from .options import Delimiter, SameTextColumn, Strict
from .output import InputError
from .panels import in_data, in_output, option_in
from .replacing import refuse_inputs

in_prediction = option_in("Prediction")


@output.answers_errors
@ranks.as_one
def predict(
    model: Annotated[Path, typer.Argument(help="Model written by train.")],
    data: Annotated[str, typer.Argument(help="Rows, texts or a store; - reads stdin.")],
    text_column: SameTextColumn = None,
    id_column: Annotated[
        str | None, in_data(help="Table column whose value is printed before the labels of each row.")
    ] = None,
    format: Annotated[PredictFormat, in_data(help="Data format; auto goes by the file name.")] = PredictFormat.auto,
    delimiter: Delimiter = None,
    strict: Strict = False,
    k: Annotated[
        int | None,
        in_prediction(
            "-k", min=1, help="Number of labels per row, most likely first. [default: 1; with sets: by --threshold]"
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        in_prediction(help="Predict all labels with a larger score (models for sets of labels only). [default: 0]"),
    ] = None,
    beam: Annotated[
        int | None,
        in_prediction(min=1, help="Search the label tree built by index, keeping this many nodes per level."),
    ] = None,
    jobs: Annotated[int | None, in_prediction("--jobs", "-j", help="Number of threads. [default: all cores]")] = None,
    out: Annotated[
        Path | None,
        in_output("--output", "-o", help="File to write instead of stdout; a suffix such as .gz compresses it."),
    ] = None,
    scores: Annotated[bool, in_output("--scores", help="Print the score after each label.")] = False,
    probabilities: Annotated[
        bool, in_output("--probabilities", help="Print the probability after each label.")
    ] = False,
    as_json: Annotated[bool, in_output("--json", help="Print one JSON object per row.")] = False,
) -> None:
    """Predict the labels of rows or texts, one line per row.

    A model trained on svmlight or XMC text reads either, and ignores the labels in it. A model trained on a table
    reads tables with the same text column, recognized by the file name, and otherwise plain text, one text per line;
    labels are not needed. To read a table from a pipe, pass --format, --text-column or --id-column. A store is read
    block by block, and its rows are printed in the order in which they were added. Features that the model was not
    trained on are ignored, with a count on standard error; --strict rejects them.

    \b
    Examples:
      manyclass predict big.manyclass test.svm -o labels.txt
      echo "a vote on the budget" | manyclass predict news.manyclass - -k 5
      manyclass predict news.manyclass new.csv --scores
      manyclass predict news.manyclass new.csv --json | head
      manyclass predict news.manyclass news.parquet --id-column id -o topics.tsv
      cat new.csv | manyclass predict news.manyclass - --format csv

    A model for sets of labels predicts the labels with scores above --threshold, largest first; a row without any
    gives an empty line. With -k it predicts exactly that many per row.

    With --id-column, each line starts with the value of that column; with --json it is called "id".

    Labels and scores are separated by tabs. A backslash, tab or line break in a label is written as \\\\, \\t
    or \\n.

    Under mpirun, the ranks share the rows, or each rank reads its own file (part-{rank}.svm). The first rank writes.
    """
    output.log_to_stderr(quiet=True)
    jobs = ranks.threads(jobs)
    if out is not None:
        refuse_inputs(out, [model, data], "--output")
    loaded = load_model(model)
    by_threshold = loaded.multilabel and k is None
    if threshold is not None and not by_threshold:
        why = "omit -k" if loaded.multilabel else f"{model} has one label per row"
        raise InputError(f"--threshold selects sets of labels; {why}")
    if beam is not None and (by_threshold or probabilities):
        why = "probabilities" if probabilities else "sets of labels; pass -k for the number of labels per row"
        raise InputError(f"--beam scores only some of the labels, which is not enough for {why}")
    k = k or 1
    if k > loaded.n_classes:
        raise InputError(f"-k {k} is more than the {output.count(loaded.n_classes)} classes of {model}")
    if probabilities and scores:
        raise InputError("pass either --scores or --probabilities, not both")
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
    if rows.divided:  # print the rows in the order of the ranks
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


# ---- Labels and values of each row, best first


def _of_arrays(model: LinearModel, codes: np.ndarray, values: np.ndarray) -> Iterator[tuple[list[Any], np.ndarray]]:
    return zip(model.classes[codes].tolist(), values, strict=True)


def _of_matrix(
    model: LinearModel, scores: sp.csr_matrix, as_probabilities: bool
) -> Iterator[tuple[list[Any], np.ndarray]]:
    values = scores.data
    if as_probabilities:  # each label on its own
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
