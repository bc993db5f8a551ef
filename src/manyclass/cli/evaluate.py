"""The command `manyclass evaluate`."""

import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import scipy.sparse as sp
import typer

from ..data import encode_known
from ..data.label_sets import keep_known
from ..model import LinearModel, load_model
from ..model.label_tree import recall_of
from . import output, quality, ranks
from .inputs import naming
from .model_inputs import ModelInput
from .options import AsJson, Beam, JobsOfRank, LabelledFile, ModelFile, Strict, search_for
from .output import InputError
from .panels import option_in, takes_groups

NAMED_AT_MOST = 10
USUAL_K = (1, 3, 5)

in_evaluation = option_in("Evaluation")


# What to do with labels that the model was not trained on.
Unknown = Literal["error", "wrong"]


def list_of_k(text: str) -> Any:
    """Parse a list such as 1,3,5."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise typer.BadParameter(f"{text!r} is not a list of positive integers such as 1,3,5")
    return sorted({int(part) for part in parts})


def shape_of_propensities(text: str) -> Any:
    """Parse A,B."""
    try:
        A, B = map(float, text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a pair of numbers such as 0.55,1.5") from None
    if not (A >= 0 and B > 0):
        raise typer.BadParameter(f"{text!r}: A must be at least 0 and B positive")
    return A, B


@dataclass(frozen=True)
class Measures:
    """What to measure."""

    k: Annotated[
        Any,
        in_evaluation("-k", parser=list_of_k, metavar="K,K", help="Values of k for top-k metrics. [default: 1,3,5]"),
    ] = None
    unknown: Annotated[
        Unknown, in_evaluation(help="Reject labels that the model was not trained on, or count them as wrong.")
    ] = "error"
    propensity: Annotated[
        Any,
        in_evaluation(
            parser=shape_of_propensities, metavar="A,B", help="Parameters of the propensities for PSP@k and PSnDCG@k."
        ),
    ] = "0.55,1.5"
    beam: Beam = None
    jobs: JobsOfRank = None


@output.answers_errors
@ranks.as_one
@takes_groups
def evaluate(
    model: ModelFile,
    data: Annotated[str, typer.Argument(help="Rows or texts with labels, or a store; - reads stdin.")],
    measures: Measures,
    file: LabelledFile,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Measure the quality of a model on labelled rows.

    \b
    Examples:
      manyclass evaluate big.manyclass test.svm
      manyclass evaluate news.manyclass test.csv -k 1,3,5 --json
      manyclass evaluate news.manyclass test.csv --unknown wrong

    The top-k error is the fraction of rows whose class is not among the k largest scores. Micro-F1 is computed over
    all rows; macro-F1 is the mean over the classes that occur in the data or in the predictions.

    For rows with sets of labels the report has P@k, nDCG@k, recall@k and coverage@k, the propensity-weighted PSP@k
    and PSnDCG@k, and F1 of the labels with a score above 0. docs/metrics.md has the formulas.

    Features that the model was not trained on are ignored, with a count on standard error and in the report;
    --strict rejects them.

    With --beam, the labels are found by searching the tree, and the report says how many of the exact top k it found.

    Under mpirun, the ranks share the rows, or each rank reads its own file (part-{rank}.svm).
    """
    jobs = ranks.threads(measures.jobs)
    loaded = load_model(model)
    wanted = measures.k or [value for value in USUAL_K if value <= loaded.n_classes]
    if wanted[-1] > loaded.n_classes:
        raise InputError(f"-k {wanted[-1]} is more than the {output.count(loaded.n_classes)} classes of {model}")
    with naming(str(model)):
        ask = _Questions(loaded, wanted[-1], measures.beam, jobs)
    rows = ModelInput(loaded, data, file, strict=strict)
    if loaded.multilabel or (rows.store is not None and rows.store.manifest.multilabel):
        labels, others, found = _sets_of(ask, data, rows)
        with naming(data):
            _check_known(others, measures.unknown)
            report = quality.of_label_sets(loaded, labels, others, found[0], wanted, measures.propensity, jobs)
            if ask.sets:
                report |= quality.f1_of_label_sets(labels, found[-1], others, jobs)
    else:
        codes, found = _codes_of(ask, data, rows, measures.unknown)
        with naming(data):
            report = quality.of_classes(loaded, codes, found[0], wanted)
    if measures.beam is not None:
        recall = {k: recall_of(found[1][:, :k], found[0][:, :k]) for k in wanted}
        report |= {"beam": measures.beam, "tree_recall_at": recall}
    report |= rows.ignored()
    report |= quality.of_model(loaded, model, ask.seconds / max(1, ask.rows))
    output.show_report(report, quality.LINES, as_json=as_json)


class _Questions:
    """Predict for rows, and measure how long it takes.

    A call returns the codes of the k best labels; with `beam` also those of the exact k best; and otherwise, for a
    model for sets of labels, also the sets that it predicts.
    """

    def __init__(self, model: LinearModel, k: int, beam: int | None, jobs: int | None):
        self.model, self.k, self.beam, self.jobs = model, k, beam, jobs
        self.best = search_for(model, beam, jobs)
        self.sets = model.multilabel and beam is None
        self.seconds, self.rows = 0.0, 0

    def __call__(self, X: Any) -> tuple[Any, ...]:
        begin = time.perf_counter()
        best, _ = self.best(X, self.k)
        self.seconds += time.perf_counter() - begin
        self.rows += X.shape[0]
        if self.beam is not None:
            return best, self.model.topk(X, self.k, n_jobs=self.jobs)[0]
        return (best, self.model.predict(X, n_jobs=self.jobs)) if self.sets else (best,)


def _sets_of(ask: _Questions, data: str, rows: ModelInput) -> tuple[sp.csr_matrix, np.ndarray, tuple[Any, ...]]:
    """Return the labels as a matrix over the model's classes, how many other labels each row has, and the answers."""
    if (store := rows.store) is not None:
        with naming(data):
            every = store.label_matrix(np.arange(store.classes.size), store.classes.size)
            labels, others = keep_known(every, store.classes, ask.model.classes, unknown="count")
            return labels, others, rows.for_blocks(ask)
    X, labels, others = rows.label_sets()
    with naming(data):
        if rows.divided:
            labels, others, *found = ranks.gathered((labels, others, *ask(X)))
            return labels, others, tuple(found)
        return labels, others, ranks.in_shares(ask, X)


def _codes_of(ask: _Questions, data: str, rows: ModelInput, unknown: Unknown) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return the codes of the rows' classes, and the answers."""
    if rows.store is not None:
        with naming(data):
            return _known_codes(ask.model, rows.store.labels(), unknown), rows.for_blocks(ask)
    X, labels = rows.labelled()
    with naming(data):
        codes = _known_codes(ask.model, labels, unknown)
        if rows.divided:
            codes, *found = ranks.gathered((codes, *ask(X)))
            return codes, tuple(found)
        return codes, ranks.in_shares(ask, X)


def _check_known(others: np.ndarray, unknown: Unknown) -> None:
    if others.any() and unknown == "error":
        raise InputError(
            f"{output.count(int(others.sum()))} labels in {output.count(int(np.count_nonzero(others)))} of "
            f"{output.counted(others.size, 'row')} are unknown: "
            "the model was not trained on them; remove them, or pass --unknown wrong to count them as missed"
        )


def _known_codes(model: LinearModel, labels: Any, unknown: Unknown) -> np.ndarray:
    codes = encode_known(labels, model.classes, unknown="-1")
    missing = np.flatnonzero(codes < 0)
    if missing.size and unknown == "error":
        names = list(dict.fromkeys(map(repr, np.asarray(labels, dtype=object)[missing].tolist())))
        more = f" and {len(names) - NAMED_AT_MOST} others" if len(names) > NAMED_AT_MOST else ""
        raise InputError(
            f"{output.count(missing.size)} of {output.counted(codes.size, 'row')} have labels that the model was not "
            f"trained on: "
            f"{', '.join(names[:NAMED_AT_MOST])}{more}; remove these rows, or pass --unknown wrong to count "
            "them as errors"
        )
    return codes
