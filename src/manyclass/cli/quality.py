"""The report of `manyclass evaluate`: the quality of predictions, and the size and speed of the model."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..metrics import error_rate, f1_scores, label_f1_scores, propensities, ranking_metrics, topk_error
from ..model import LinearModel
from ..model.shards import stored_bytes
from . import output

MEASURES = {
    "precision": "P",
    "ndcg": "nDCG",
    "recall": "recall",
    "ps_precision": "PSP",
    "ps_ndcg": "PSnDCG",
    "coverage": "coverage",
}
# Shown only for the largest k.
ONCE = ("recall", "coverage")


def _shown(measure: str) -> Any:
    """Return the key of a measure at each k, or a function that finds the largest k."""
    key = f"{measure}_at"
    return key if measure not in ONCE else lambda it: {k: it[key][k] for k in [max(it[key])]} if key in it else {}


SOURCES = {"training": "the training rows", "evaluation": "these rows (the model has no counts)"}
LINES: tuple[output.Line, ...] = (
    ("rows", "rows", output.count),
    # One class per row
    ("rows of unknown classes", "rows_of_unknown_classes", output.count),
    ("error", "error", output.percent),
    ("top-{} error", lambda it: {k: it["topk_error"][k] for k in it.get("topk_error", ()) if k > 1}, output.percent),
    # Sets of labels
    ("labels per row", "labels_a_row", "{:.2f}".format),
    ("rows without labels", "rows_without_labels", output.count),
    ("unknown labels", "labels_unknown", output.count),
    *((f"{title}@{{}}", _shown(measure), output.percent) for measure, title in MEASURES.items()),
    ("propensities from", "propensities", SOURCES.__getitem__),
    # Both
    ("micro-F1", "micro_f1", "{:.4f}".format),
    ("macro-F1", "macro_f1", "{:.4f}".format),
    ("exact top-{} found", "tree_recall_at", output.percent),
    ("time per row", "seconds_a_row", lambda seconds: f"{1e3 * seconds:.4f} ms"),
    ("model file", "file_bytes", output.size),
    ("model in memory", "model_bytes", output.size),
    ("density", "density", output.percent),
)


def of_classes(model: LinearModel, codes: np.ndarray, best: np.ndarray, wanted: list[int]) -> dict[str, Any]:
    """Measure predictions for rows with one class each; a code of -1 is a class unknown to the model."""
    micro, macro = f1_scores(codes, best[:, 0], model.n_classes)
    return {
        "rows": codes.size,
        "rows_of_unknown_classes": int((codes < 0).sum()),
        "error": error_rate(codes, best[:, 0]),
        "topk_error": {k: topk_error(codes, best[:, :k]) for k in wanted},
        "micro_f1": micro,
        "macro_f1": macro,
    }


def of_label_sets(
    model: LinearModel,
    labels: sp.csr_matrix,
    unknown: np.ndarray,
    best: np.ndarray,
    wanted: list[int],
    shape: tuple[float, float],
    jobs: int | None,
) -> dict[str, Any]:
    """Measure predictions for rows with sets of labels.

    Propensities are computed from the label counts of the training rows. If the model does not have these, the counts
    of the evaluated rows are used, and the report says so.
    """
    counts, n = model.label_counts, model.settings.get("n_rows")
    if not (counted := counts is not None and n is not None):
        counts, n = np.bincount(labels.indices, minlength=model.n_classes), labels.shape[0]
    assert counts is not None and n is not None
    p = propensities(counts, n, *shape)
    found = ranking_metrics(labels, best, wanted, propensity=p, unknown=unknown, n_jobs=jobs)
    return {
        "rows": labels.shape[0],
        "labels_a_row": (labels.nnz + int(unknown.sum())) / max(1, labels.shape[0]),
        "labels_unknown": int(unknown.sum()),
        "rows_without_labels": int((labels.getnnz(axis=1) + unknown == 0).sum()),
        **{f"{name}_at": values for name, values in asdict(found).items()},
        "propensities": "training" if counted else "evaluation",
    }


def f1_of_label_sets(
    labels: sp.csr_matrix, predicted: sp.csr_matrix, unknown: np.ndarray, jobs: int | None
) -> dict[str, Any]:
    """Measure the F1 of the labels with scores above the threshold."""
    micro, macro = label_f1_scores(labels, predicted, unknown=unknown, n_jobs=jobs)
    return {"micro_f1": micro, "macro_f1": macro}


def of_model(model: LinearModel, path: Path, seconds_a_row: float) -> dict[str, Any]:
    """Describe the size and speed of the model."""
    return {
        "seconds_a_row": seconds_a_row,
        "model_bytes": model.nbytes,
        "file_bytes": stored_bytes(path),
        "density": model.density,
    }
