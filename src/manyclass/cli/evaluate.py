"""`manyclass evaluate`: how often a model is right on rows with known labels."""

import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from ..data import BlockStore, encode_known
from ..estimators.predictor import by_blocks
from ..model import LinearModel, load_model
from . import output, quality, ranks
from .inputs import Columns, DataFormat, naming, open_store, read_for_evaluation
from .output import InputError

NAMED_AT_MOST = 10
USUAL_K = (1, 3, 5)


class Unknown(str, Enum):
    """What to do with labels that the model was not trained on."""

    error = "error"
    wrong = "wrong"


def list_of_k(text: str) -> Any:
    """Read 1,3,5."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise typer.BadParameter(f"{text!r} is not a list of numbers from 1, such as 1,3,5")
    return sorted({int(part) for part in parts})


def shape_of_propensities(text: str) -> Any:
    """Read A,B."""
    try:
        A, B = map(float, text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not two numbers, such as 0.55,1.5") from None
    if not (A >= 0 and B > 0):
        raise typer.BadParameter(f"{text!r}: A must be at least 0, and B above 0")
    return A, B


@output.answers_errors
@ranks.as_one
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model written by train.")],
    data: Annotated[str, typer.Argument(help="Rows or texts with labels; - for stdin.")],
    k: Annotated[
        Any, typer.Option("-k", parser=list_of_k, metavar="K,K", help="For measures of the k best. [default: 1,3,5]")
    ] = None,
    unknown: Annotated[
        Unknown, typer.Option(help="Labels that the model does not know: refuse, or count as wrong.")
    ] = Unknown.error,
    propensity: Annotated[
        Any, typer.Option(parser=shape_of_propensities, metavar="A,B", help="Of the propensities of labels.")
    ] = "0.55,1.5",
    text_column: Annotated[str | None, typer.Option(help="Of a table. [default: as in training]")] = None,
    label_column: Annotated[str | None, typer.Option(help="Of a table. [default: as in training]")] = None,
    format: Annotated[DataFormat, typer.Option(help="auto: by the name of the file.")] = DataFormat.auto,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads. [default: all cores]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Measure a model on rows with known labels.

    \b
    Examples:
      manyclass evaluate news20.manyclass news20.t.gz
      manyclass evaluate news.manyclass test.csv -k 1,3,5 --json
      manyclass evaluate news.manyclass later.csv --unknown wrong

    The top-k error is the share of rows whose class is not among the k with the largest scores. Micro-F1 is
    over all rows, macro-F1 the mean over the classes that occur in the data or in the predictions.

    Of rows with sets of labels there are P@k, nDCG@k, recall@k and coverage@k, and weighted by propensities PSP@k and
    PSnDCG@k; F1 is of the labels with a score above 0. docs/metrics.md has the formulas.

    Under mpirun the ranks share the rows, or read a file each: part-{rank}.svm.
    """
    output.log_to_stderr(quiet=True)
    jobs = ranks.threads(jobs)
    loaded = load_model(model)
    wanted = k or [value for value in USUAL_K if value <= loaded.n_classes]
    if wanted[-1] > loaded.n_classes:
        raise InputError(f"-k {wanted[-1]} asks for more classes than the {loaded.n_classes} that {model} has")
    if (store := open_store(data)) is not None:
        with naming(data):
            found, duration = _of_store(loaded, store, wanted, unknown, propensity, jobs)
    else:
        X, labels = read_for_evaluation(loaded, data, format, Columns(text_column, label_column))
        with naming(data):
            codes = _known_codes(loaded, labels, unknown)
            begin = time.perf_counter()
            if ranks.one_each(data):
                parts = ranks.peers().gather((codes, loaded.topk(X, wanted[-1], n_jobs=jobs)[0]))
                codes, best = (np.concatenate(part) for part in zip(*parts, strict=True))
            else:
                best = ranks.topk(loaded, X, wanted[-1], jobs=jobs)
            duration = time.perf_counter() - begin
            found = quality.of_classes(loaded, codes, best, wanted)
    report = found | quality.of_model(loaded, model, duration / found["rows"])
    if as_json:
        typer.echo(output.to_json(report))
    else:
        quality.show(report)


def _of_store(
    model: LinearModel,
    store: BlockStore,
    wanted: list[int],
    unknown: Unknown,
    propensity: tuple[float, float],
    jobs: int | None,
) -> tuple[dict[str, Any], float]:
    """Read block by block."""
    begin = time.perf_counter()
    (best,) = by_blocks(store, model.n_features, lambda X: model.topk(X, wanted[-1], n_jobs=jobs)[:1])
    duration = time.perf_counter() - begin
    if not store.manifest.multilabel:
        codes = _known_codes(model, store.labels(), unknown)
        return quality.of_classes(model, codes, best, wanted), duration
    every = store.label_matrix(np.arange(store.classes.size), store.classes.size)
    labels, more = _known_sets(model, store.classes, every, unknown)
    return quality.of_label_sets(model, labels, more, best, wanted, propensity, jobs), duration


def _known_codes(model: LinearModel, labels: Any, unknown: Unknown) -> np.ndarray:
    codes = encode_known(labels, model.classes, unknown="-1")
    missing = np.flatnonzero(codes < 0)
    if missing.size and unknown is Unknown.error:
        _refuse_unknown(np.asarray(labels, dtype=object)[missing].tolist(), missing.size, codes.size)
    return codes


def _known_sets(
    model: LinearModel, classes: np.ndarray, labels: sp.csr_matrix, unknown: Unknown
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Labels as columns of the model, and how many others each row has; given are columns of `classes`."""
    code_of = encode_known(classes, model.classes, unknown="-1")
    codes = code_of[labels.indices]
    known = codes >= 0
    rows = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
    more = np.bincount(rows[~known], minlength=labels.shape[0])
    if not known.all() and unknown is Unknown.error:
        names = classes[np.unique(labels.indices[~known])].tolist()
        _refuse_unknown(names, int(np.count_nonzero(more)), labels.shape[0])
    ones = np.ones(np.count_nonzero(known), np.float32)
    return sp.csr_matrix((ones, (rows[known], codes[known])), (labels.shape[0], model.n_classes)), more


def _refuse_unknown(labels: list[Any], rows: int, of: int) -> None:
    names = list(dict.fromkeys(map(repr, labels)))
    more = f" and {len(names) - NAMED_AT_MOST} others" if len(names) > NAMED_AT_MOST else ""
    raise InputError(
        f"{rows} of {of} rows have labels that the model was not trained on: "
        f"{', '.join(names[:NAMED_AT_MOST])}{more}; remove these rows, or pass --unknown wrong to count "
        "them as errors"
    )
