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
from ..metrics import error_rate, f1_scores, precisions_at_k, topk_error
from ..model import LinearModel, load_model
from . import output, ranks
from .inputs import Columns, DataFormat, naming, open_store, read_for_evaluation, read_sets_for_evaluation
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


@output.answers_errors
@ranks.as_one
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model written by train.")],
    data: Annotated[str, typer.Argument(help="Rows or texts with labels; - for stdin.")],
    k: Annotated[
        Any, typer.Option("-k", parser=list_of_k, metavar="K,K", help="For top-k errors. [default: 1,3,5]")
    ] = None,
    unknown: Annotated[
        Unknown, typer.Option(help="Labels that the model does not know: refuse, or count as wrong.")
    ] = Unknown.error,
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
            report = _of_store(loaded, store, wanted, unknown, jobs)
        output_report(report, as_json)
        return
    if loaded.multilabel:
        output_report(_of_sets(loaded, data, format, wanted, unknown, jobs), as_json)
        return
    X, labels = read_for_evaluation(loaded, data, format, Columns(text_column, label_column))
    with naming(data):
        codes = _known_codes(loaded, labels, unknown)
        begin = time.perf_counter()
        if ranks.one_each(data):
            found = ranks.peers().gather((codes, loaded.topk(X, wanted[-1], n_jobs=jobs)[0]))
            codes, best = (np.concatenate(parts) for parts in zip(*found, strict=True))
        else:
            best = ranks.topk(loaded, X, wanted[-1], jobs=jobs)
        duration = time.perf_counter() - begin
        report = _report(loaded, codes, best, wanted, duration)
    output_report(report, as_json)


def output_report(report: dict[str, Any], as_json: bool) -> None:
    """Print it."""
    if as_json:
        typer.echo(output.to_json(report))
    else:
        _show(report)


def _of_store(
    model: LinearModel, store: BlockStore, wanted: list[int], unknown: Unknown, jobs: int | None
) -> dict[str, Any]:
    """Read block by block; of rows with several labels precisions are reported."""
    begin = time.perf_counter()
    (best,) = by_blocks(store, model.n_features, lambda X: model.topk(X, wanted[-1], n_jobs=jobs)[:1])
    duration = time.perf_counter() - begin
    if not store.manifest.multilabel:
        return _report(model, _known_codes(model, store.labels(), unknown), best, wanted, duration)
    code_of = encode_known(store.classes, model.classes, unknown="-1")
    precisions = precisions_at_k(store.label_matrix(code_of, model.n_classes), best, wanted)
    return {
        "rows": store.n_rows,
        "precision_at": dict(zip(wanted, precisions, strict=True)),
        "seconds_a_row": duration / max(1, store.n_rows),
        "model_bytes": model.nbytes,
        "density": model.density,
    }


def _of_sets(
    model: LinearModel, data: str, format: DataFormat, wanted: list[int], unknown: Unknown, jobs: int | None
) -> dict[str, Any]:
    X, Y, others = read_sets_for_evaluation(model, data, format)
    begin = time.perf_counter()
    if ranks.one_each(data):
        found = ranks.peers().gather((Y, others, model.topk(X, wanted[-1], n_jobs=jobs)[0]))
        Y = sp.vstack([part[0] for part in found], "csr")
        others, best = (np.concatenate([part[place] for part in found]) for place in (1, 2))
    else:
        best = ranks.topk(model, X, wanted[-1], jobs=jobs)
    duration = time.perf_counter() - begin
    if others.any() and unknown is Unknown.error:
        raise InputError(
            f"{data}: {others.sum()} labels in {np.count_nonzero(others)} of {others.size} rows are none that the "
            "model was trained on; remove them, or pass --unknown wrong to count them as labels that it misses"
        )
    return {
        "rows": Y.shape[0],
        "labels_unknown": int(others.sum()),
        "precision_at": dict(zip(wanted, precisions_at_k(Y, best, wanted), strict=True)),
        "seconds_a_row": duration / max(1, Y.shape[0]),
        "model_bytes": model.nbytes,
        "density": model.density,
    }


def _known_codes(model: LinearModel, labels: Any, unknown: Unknown) -> np.ndarray:
    codes = encode_known(labels, model.classes, unknown="-1")
    missing = np.flatnonzero(codes < 0)
    if missing.size and unknown is Unknown.error:
        names = list(dict.fromkeys(map(repr, np.asarray(labels, dtype=object)[missing].tolist())))
        more = f" and {len(names) - NAMED_AT_MOST} others" if len(names) > NAMED_AT_MOST else ""
        raise InputError(
            f"{missing.size} of {codes.size} rows have labels that the model was not trained on: "
            f"{', '.join(names[:NAMED_AT_MOST])}{more}; remove these rows, or pass --unknown wrong to count "
            "them as errors"
        )
    return codes


def _report(
    model: LinearModel, codes: np.ndarray, best: np.ndarray, wanted: list[int], duration: float
) -> dict[str, Any]:
    micro, macro = f1_scores(codes, best[:, 0], model.n_classes)
    return {
        "rows": codes.size,
        "rows_of_unknown_classes": int((codes < 0).sum()),
        "error": error_rate(codes, best[:, 0]),
        "topk_error": {value: topk_error(codes, best[:, :value]) for value in wanted},
        "micro_f1": micro,
        "macro_f1": macro,
        "seconds_a_row": duration / codes.size,
        "model_bytes": model.nbytes,
        "density": model.density,
    }


def _show(report: dict[str, Any]) -> None:
    if "precision_at" in report:
        quality = [(f"precision at {k}", output.percent(share)) for k, share in report["precision_at"].items()]
    else:
        quality = [
            ("rows of unknown classes", str(report["rows_of_unknown_classes"])),
            ("error", output.percent(report["error"])),
            *((f"top-{k} error", output.percent(share)) for k, share in report["topk_error"].items() if k > 1),
            ("micro-F1", f"{report['micro_f1']:.4f}"),
            ("macro-F1", f"{report['macro_f1']:.4f}"),
        ]
    output.show_pairs(
        [
            ("rows", str(report["rows"])),
            *quality,
            ("time a row", f"{1e6 * report['seconds_a_row']:.1f} µs"),
            ("model in memory", output.size(report["model_bytes"])),
            ("density", output.percent(report["density"])),
        ]
    )
