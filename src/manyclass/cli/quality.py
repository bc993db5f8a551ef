"""The report of `manyclass evaluate`: the quality of predictions, and the size and speed of the model."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..metrics import error_rate, f1_scores, label_f1_scores, propensities, ranking_metrics, topk_error
from ..model import LinearModel
from ..model.label_tree import recall_of
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


def of_beam(exact: np.ndarray, found: np.ndarray, wanted: list[int], beam: int) -> dict[str, Any]:
    """Measure how many of the exact best labels a search in the tree found."""
    return {"beam": beam, "tree_recall_at": {k: recall_of(exact[:, :k], found[:, :k]) for k in wanted}}


def of_model(model: LinearModel, path: Path, seconds_a_row: float) -> dict[str, Any]:
    """Describe the size and speed of the model."""
    return {
        "seconds_a_row": seconds_a_row,
        "model_bytes": model.nbytes,
        "file_bytes": stored_bytes(path),
        "density": model.density,
    }


def show(report: dict[str, Any]) -> None:
    """Print a report as pairs of names and values."""
    f1 = [(f"{name}-F1", report.get(f"{name}_f1")) for name in ("micro", "macro")]
    output.show_pairs(
        [
            ("rows", output.count(report["rows"])),
            *(_label_set_pairs(report) if "precision_at" in report else _class_pairs(report)),
            *((name, f"{value:.4f}") for name, value in f1 if value is not None),
            *(
                (f"exact top-{k} found", output.percent(share))
                for k, share in report.get("tree_recall_at", {}).items()
            ),
            ("time per row", f"{1e3 * report['seconds_a_row']:.4f} ms"),
            ("model file", output.size(report["file_bytes"])),
            ("model in memory", output.size(report["model_bytes"])),
            ("density", output.percent(report["density"])),
        ]
    )


def _class_pairs(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("rows of unknown classes", output.count(report["rows_of_unknown_classes"])),
        ("error", output.percent(report["error"])),
        *((f"top-{k} error", output.percent(share)) for k, share in report["topk_error"].items() if k > 1),
    ]


def _label_set_pairs(report: dict[str, Any]) -> list[tuple[str, str]]:
    pairs = [
        ("labels per row", f"{report['labels_a_row']:.2f}"),
        ("rows without labels", output.count(report["rows_without_labels"])),
        ("unknown labels", output.count(report["labels_unknown"])),
    ]
    for measure, title in MEASURES.items():
        values = report[f"{measure}_at"]
        shown = [max(values)] if measure in ONCE else values
        pairs += [(f"{title}@{k}", output.percent(values[k])) for k in shown]
    source = "the training rows" if report["propensities"] == "training" else "these rows (the model has no counts)"
    return [*pairs, ("propensities from", source)]
