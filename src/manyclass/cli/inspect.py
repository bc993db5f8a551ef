"""The command `manyclass inspect`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..data import check_matrix, encode_labels
from ..data.block_store import BlockStore
from ..data.manifest import JOURNAL, MANIFEST
from ..engines import StoredRows, least_memory
from ..model import LinearModel, load_model
from ..model.file import looks_like_model, verify_model
from ..model.shards import INDEX, stored_bytes
from ..model.threads import thread_count
from ..model.weights import WideWeights, column_of, value_type
from ..problems import LOSSES, PROBLEMS
from ..solvers import estimate_memory
from . import output, ranks
from .convert import STORE, describe_store
from .fitting import USUAL
from .inputs import LabelledRows, class_sizes, naming, read_labelled
from .options import AsJson, Jobs, Loss, MinDf, TrainingFile, WeightType
from .output import InputError
from .panels import option_in, takes_groups

MODEL_SUFFIXES = (".manyclass", ".safetensors")

MODEL: tuple[output.Line, ...] = (
    ("model", "model", str),
    ("file size", "file_bytes", output.size),
    ("verified", lambda it: "all checksums match" if it.get("verified") else "", str),
    ("shards", lambda it: output.count(it["shards"]) if it["shards"] > 1 else "", str),
    ("classes", lambda it: f"{output.count(it['classes'])} ({_examples(it)})", str),
    ("features", lambda it: f"{output.count(it['features'])} ({'words' if it['takes_text'] else 'numbers'})", str),
    ("weights", lambda it: f"{it['layout']} {it['dtype']}, {output.size(it['weight_bytes'])}", str),
    ("density", "density", output.percent),
    ("step {}", lambda it: dict(enumerate(it["steps"], 1)), str),
    ("sketches for prediction", lambda it: _sketches(it) if it["frequent_features"] else "", str),
    ("classes never trained", lambda it: it["classes_never_trained"] or None, output.count),
    ("{}", lambda it: _texts(dict(sorted(it["settings"].items()))), str),
    ("certificate: {}", lambda it: _texts(it["certificate"]), str),
)
ROWS: tuple[output.Line, ...] = (
    ("rows", lambda it: f"{output.count(it['rows'])} ({output.count(it['empty_rows'])} empty)", str),
    ("words", lambda it: _features(it) if it["holds_text"] else "", str),
    ("features", lambda it: "" if it["holds_text"] else _features(it), str),
    ("classes", lambda it: f"{output.count(it['classes'])} ({_examples(it)})", str),
    ("non-zeros", lambda it: f"{output.count(it['nonzeros'])} ({output.size(it['bytes'])} in memory)", str),
    ("non-zeros per row", "nonzeros_a_row", output.spread),
    ("rows per class", "rows_a_class", lambda n: f"{output.spread(n)}, {n['with_one_row']:,} classes with one row"),
    ("labels per row", lambda it: _labels(it) if it["multilabel"] else "", str),
    ("fit, besides the rows: {}", lambda it: output.in_words(it.get("estimate", {})), output.size),
)

in_inspection = option_in("Inspection")
in_estimate = option_in("Memory estimate")


@dataclass(frozen=True)
class Questions:
    """What to report besides the description."""

    class_name: Annotated[
        str | None,
        in_inspection("--class", metavar="NAME", help="Show the features with the largest weights for this class."),
    ] = None
    top: Annotated[int, in_inspection(min=1, help="Number of features to show with --class.")] = 10
    verify: Annotated[
        bool, in_inspection("--verify", help="Check everything in a model or store against its checksums.")
    ] = False


@dataclass(frozen=True)
class PlannedFit:
    """The fit whose memory is to be estimated."""

    estimate: Annotated[
        bool, in_estimate("--estimate", help="Estimate the memory of a fit on a data file or store.")
    ] = False
    loss: Annotated[
        Loss, in_estimate("--loss", "-l", metavar="LOSS", help="Loss of the fit; train --help lists them.")
    ] = "ww"
    dtype: WeightType = "float32"
    intercept: Annotated[bool, in_estimate(help="Include a constant feature.")] = USUAL["fit_intercept"]
    jobs: Jobs = None


@output.answers_errors
@ranks.alone
@takes_groups
def inspect(
    file: Annotated[str, typer.Argument(help="A model, a data file (- reads stdin) or a store.")],
    questions: Questions,
    plan: PlannedFit,
    options: TrainingFile,
    min_df: MinDf = "1",
    as_json: AsJson = False,
) -> None:
    """Describe a model, a data file or a store.

    \b
    Examples:
      manyclass inspect news.manyclass
      manyclass inspect news.manyclass --class politics --top 20
      manyclass inspect big.svm
      manyclass inspect big.svm --estimate --loss cs    # memory of a fit
      manyclass inspect store/ --estimate --loss cs     # smallest --memory
      manyclass inspect store/ --verify                 # compare checksums
    """
    if any((Path(file) / name).is_file() for name in (MANIFEST, JOURNAL)):
        output.show_report(_inspect_store(file, questions, plan), STORE, as_json=as_json)
    elif _is_model(file):
        report = _inspect_model(Path(file), questions, plan)
        output.show_report(report, _show_largest if "largest" in report else MODEL, as_json=as_json)
    else:
        output.show_report(_inspect_rows(file, questions, plan, options, min_df), ROWS, as_json=as_json)


def _is_model(file: str) -> bool:
    if (Path(file) / INDEX).is_file():
        return True
    if not Path(file).is_file():  # standard input and pipes can be read only once
        return False
    return Path(file).suffix in MODEL_SUFFIXES or looks_like_model(file)


# ---- Stores


def _inspect_store(path: str, questions: Questions, plan: PlannedFit) -> dict[str, Any]:
    store = BlockStore(path)
    report = describe_store(store)
    if questions.verify:
        problems = list(store.verify())
        if problems:
            raise InputError("; ".join(problems))
        report["verified"] = True
    if plan.estimate:
        problem = PROBLEMS[plan.loss]
        if not LOSSES[plan.loss].from_store:
            raise InputError(f"{path}: --loss {plan.loss} cannot be trained from a store")
        data = StoredRows(store, 1.0, constant=float(plan.intercept))
        report["least_memory"] = least_memory(problem, data, np.dtype(plan.dtype))
    return report


# ---- Models


def _inspect_model(path: Path, questions: Questions, plan: PlannedFit) -> dict[str, Any]:
    if plan.estimate:
        raise InputError(f"{path} is a model; --estimate needs data to train on")
    if questions.verify:
        verify_model(path)
    model = load_model(path)
    report = _describe_model(model, path) | ({"verified": True} if questions.verify else {})
    if questions.class_name is not None:
        largest = largest_features(model, questions.class_name, questions.top)
        report |= {"class": questions.class_name, "largest": largest}
    return report


def _describe_model(model: LinearModel, path: Path) -> dict[str, Any]:
    return {
        "model": str(path),
        "file_bytes": stored_bytes(path),
        "classes": model.n_classes,
        "class_names": model.classes[:10],
        "features": model.n_features,
        "takes_text": model.chain.takes_text,
        "steps": model.chain.describe(),
        "layout": "sparse" if model.is_sparse else "dense",
        "shards": model.n_parts,
        "dtype": value_type(model.weights).name,
        "density": model.density,
        "weight_bytes": model.nbytes,
        "frequent_features": model.scorer.frequent_features,
        "sketch_bytes": model.scorer.sketch_bytes,
        "classes_never_trained": int(np.isneginf(model.intercept).sum()),
        "settings": model.settings,
        "certificate": model.certificate,
    }


def largest_features(model: LinearModel, class_name: str, count: int) -> list[tuple[str, float]]:
    """Return a class's features with the largest positive weights, as words or as indices of the training file."""
    if model.pairs:
        raise InputError("a one-vs-one model has weights per pair of classes, not per class; --class does not apply")
    found = [code for code, label in enumerate(model.classes.tolist()) if str(label) == class_name]
    if not found:
        near = [str(label) for label in model.classes.tolist() if class_name.lower() in str(label).lower()][:5]
        hint = f"; did you mean {', '.join(near)}?" if near else f"; the first is {model.classes.tolist()[0]!r}"
        raise InputError(
            f"none of the model's {output.count(model.n_classes)} classes is called {class_name!r}{hint}"
        )
    weights, numbers = model.weights, None
    if isinstance(weights, WideWeights):
        weights, numbers = weights.part, weights.features
    column = column_of(weights, found[0])
    best = np.argsort(-column, kind="stable")[:count]
    best = best[column[best] > 0]
    names = model.chain.feature_names
    base = model.settings.get("index_base", 0)
    features = best if numbers is None else numbers[best]
    return [
        (names[feature] if names is not None else str(feature + base), float(column[j]))
        for feature, j in zip(features, best, strict=True)
    ]


def _show_largest(report: dict[str, Any]) -> None:
    rows = [[feature, output.number(weight)] for feature, weight in report["largest"]]
    output.show_table(f"largest weights for {report['class']}", ("feature", "weight"), rows)


def _examples(report: dict[str, Any]) -> str:
    names = report["class_names"].tolist()
    return ", ".join(map(str, names)) + ", ..." * (report["classes"] > len(names))


def _sketches(report: dict[str, Any]) -> str:
    return f"{output.counted(report['frequent_features'], 'frequent feature')}, {output.size(report['sketch_bytes'])}"


def _texts(values: dict[str, Any]) -> dict[str, str]:
    def text(name: str, value: Any) -> str:
        plain = isinstance(value, bool) or not isinstance(value, int | float) or name == "random_state"
        return str(value) if plain else output.number(value)

    return {name: text(name, value) for name, value in values.items()}


# ---- Data


def _inspect_rows(
    path: str, questions: Questions, plan: PlannedFit, options: TrainingFile, min_df: int | float
) -> dict[str, Any]:
    if questions.verify:
        raise InputError(f"{path} is neither a store nor a model; --verify applies only to these")
    if questions.class_name is not None:
        raise InputError(f"{path} is not a model; --class applies only to models")
    rows = read_labelled(path, options, min_df=min_df, dtype=plan.dtype, several=True)
    with naming(path):
        report = _describe_rows(rows)
    if plan.estimate:
        report["estimate"] = estimate_memory(
            check_matrix(rows.X),
            report["classes"],
            loss=plan.loss,
            dtype=np.dtype(plan.dtype),
            fit_intercept=plan.intercept,
            threads=thread_count(plan.jobs),
        )
    return report


def _describe_rows(rows: LabelledRows) -> dict[str, Any]:
    lengths = np.diff(rows.X.indptr)
    if rows.classes is None:
        classes, codes = encode_labels(rows.labels)
        about: dict[str, Any] = {"rows_a_class": class_sizes(np.bincount(codes))}
    else:
        classes, labels = rows.classes, np.diff(rows.labels.indptr)
        about = {
            "rows_a_class": class_sizes(np.bincount(rows.labels.indices, minlength=classes.size)),
            "labels_a_row": _spread(labels),
            "rows_without_labels": int((labels == 0).sum()),
        }
    return {
        "rows": rows.X.shape[0],
        "features": rows.X.shape[1],
        "holds_text": rows.chain.takes_text,
        "features_used": int(np.unique(rows.X.indices).size),
        "classes": classes.size,
        "class_names": classes[:10],
        "nonzeros": rows.X.nnz,
        "bytes": rows.X.data.nbytes + rows.X.indices.nbytes + rows.X.indptr.nbytes,
        "nonzeros_a_row": _spread(lengths),
        "empty_rows": int((lengths == 0).sum()),
        "multilabel": rows.classes is not None,
        **about,
    }


def _spread(counts: np.ndarray) -> dict[str, float]:
    return {"smallest": int(counts.min()), "mean": float(counts.mean()), "largest": int(counts.max())}


def _features(report: dict[str, Any]) -> str:
    return f"{output.count(report['features'])} ({output.count(report['features_used'])} occur)"


def _labels(report: dict[str, Any]) -> str:
    without = output.counted(report["rows_without_labels"], "row")
    return f"{output.spread(report['labels_a_row'])}, {without} without"
