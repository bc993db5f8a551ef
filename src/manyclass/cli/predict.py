"""The command `manyclass predict`."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, starmap
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from ..data.streams import open_output
from ..model import LinearModel, load_model
from ..model.label_sets import scores_above
from ..model.probability import probabilities as rule_of_scores
from . import output, ranks
from .inputs import naming
from .model_inputs import ModelInput
from .options import Beam, JobsOfRank, ModelFile, Strict, UnlabelledFile, search_for
from .output import InputError
from .panels import in_output, option_in, takes_groups
from .replacing import refuse_inputs

in_prediction = option_in("Prediction")


@dataclass(frozen=True)
class Wanted:
    """Which labels to predict."""

    k: Annotated[
        int | None,
        in_prediction(
            "-k", min=1, help="Number of labels per row, most likely first. [default: 1; with sets: by --threshold]"
        ),
    ] = None
    threshold: Annotated[
        float | None,
        in_prediction(help="Predict all labels with a score above this (models for sets of labels). [default: 0]"),
    ] = None
    beam: Beam = None
    jobs: JobsOfRank = None


@dataclass(frozen=True)
class Lines:
    """What to write, and where."""

    out: Annotated[
        Path | None,
        in_output("--output", "-o", help="File to write instead of stdout; a suffix such as .gz compresses it."),
    ] = None
    scores: Annotated[bool, in_output("--scores", help="Print the score after each label.")] = False
    probabilities: Annotated[bool, in_output("--probabilities", help="Print the probability after each label.")] = (
        False
    )
    as_json: Annotated[bool, in_output("--json", help="Print one JSON object per row.")] = False


@output.answers_errors
@ranks.as_one
@takes_groups
def predict(
    model: ModelFile,
    data: Annotated[str, typer.Argument(help="Rows, texts or a store; - reads stdin.")],
    wanted: Wanted,
    lines: Lines,
    file: UnlabelledFile,
    strict: Strict = False,
) -> None:
    """Predict the labels of rows or texts, one line per row.

    A model trained on svmlight or XMC text reads either, and ignores the labels in it. A model trained on a table
    reads tables with the same text column, recognised by the file name, and otherwise plain text, one text per line;
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

    Labels and scores are separated by tabs. A backslash, tab or line break in a label is written as
    \\\\, \\t, \\n or \\r.

    Under mpirun, the ranks share the rows, or each rank reads its own file (part-{rank}.svm). The first rank writes.
    """
    if lines.out is not None:
        refuse_inputs(lines.out, [model, data], "--output")
    loaded = load_model(model)
    _check(loaded, model, wanted, lines)
    rows = ModelInput(loaded, data, file, strict=strict)
    with naming(str(model)):
        predictor = _Predictor(loaded, wanted, lines)
    peers = ranks.peers()
    with _writing(lines.out if peers.rank == 0 else None) as write:
        for piece in _pieces(predictor, rows, data):
            for part in peers.gather(piece):
                for line in part:
                    write(line + "\n")
    rows.ignored()


def _check(model: LinearModel, path: Path, wanted: Wanted, lines: Lines) -> None:
    by_threshold = model.multilabel and wanted.k is None
    if wanted.threshold is not None and not by_threshold:
        why = "omit -k" if model.multilabel else f"{path} has one label per row"
        raise InputError(f"--threshold selects sets of labels; {why}")
    if wanted.beam is not None and (by_threshold or lines.probabilities):
        why = "probabilities" if lines.probabilities else "sets of labels; pass -k for the number of labels per row"
        raise InputError(f"--beam scores only some of the labels, which is not enough for {why}")
    if wanted.k is not None and wanted.k > model.n_classes:
        raise InputError(f"-k {wanted.k} is more than the {output.count(model.n_classes)} classes of {path}")
    if lines.probabilities and lines.scores:
        raise InputError("pass either --scores or --probabilities, not both")
    if lines.probabilities and model.settings.get("probability") is None:
        raise InputError(
            f"{path} has no probabilities; train with --loss maxent or logistic, or with --calibrate sigmoid"
        )


class _Predictor:
    """Predicts labels and writes them, one line per row.

    `find` returns the codes and values of the k best labels, or a matrix of all scores above the threshold.
    """

    find: Callable[[Any], tuple[Any, ...]]

    def __init__(self, model: LinearModel, wanted: Wanted, lines: Lines):
        self._model, self._lines = model, lines
        self._by_threshold = model.multilabel and wanted.k is None
        jobs = ranks.threads(wanted.jobs)
        if self._by_threshold:
            self.find = lambda X: (scores_above(model, X, wanted.threshold or 0.0, jobs),)
        else:
            search = search_for(model, wanted.beam, jobs, probabilities=lines.probabilities)
            self.find = lambda X: search(X, wanted.k or 1)

    def write(self, found: tuple[Any, ...], ids: list[Any] | None = None) -> list[str]:
        """Return one line per row for what `find` has returned."""
        lines = self._lines
        if self._by_threshold:
            predicted = [*_of_matrix(self._model, *found, as_probabilities=lines.probabilities)]
        else:
            predicted = [*zip(self._model.classes[found[0]].tolist(), found[1], strict=True)]
        own: list[dict[str, Any]] = [{}] * len(predicted) if ids is None else [{"id": id} for id in ids]
        name = "probabilities" if lines.probabilities else "scores" if lines.scores else None
        write_line = _json_line if lines.as_json else _tab_line
        return [write_line(one, labels, values, name) for one, (labels, values) in zip(own, predicted, strict=True)]


def _pieces(predictor: _Predictor, rows: ModelInput, data: str) -> Iterable[list[str]]:
    """Return the lines of this rank, some at a time."""
    peers = ranks.peers()

    def lines(X: Any, ids: list[Any] | None) -> list[str]:
        mine = slice(*((0, X.shape[0]) if rows.divided else peers.own_range(X.shape[0])))
        return predictor.write(predictor.find(X[mine]), ids and ids[mine])

    if rows.store is not None:
        with naming(data):
            found = rows.for_blocks(predictor.find)
        mine = slice(*peers.own_range(rows.store.n_rows))
        return [predictor.write(tuple(column[mine] for column in found))]
    pieces = starmap(lines, rows.unlabelled())
    # With a file per rank, the rows are printed in the order of the ranks.
    return [[line for piece in pieces for line in piece]] if rows.divided else pieces


@contextlib.contextmanager
def _writing(path: Path | None) -> Iterator[Callable[[str], object]]:
    if path is None:
        yield sys.stdout.write
        return
    with open_output(path) as stream:
        yield lambda text: stream.write(text.encode())


# ---- Lines


def _of_matrix(
    model: LinearModel, scores: sp.csr_matrix, *, as_probabilities: bool
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
