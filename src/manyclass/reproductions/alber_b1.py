"""Alber et al., Table B.1: test error and density of WW and LLW."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..estimators import estimator_for
from .data_sets import load, scale
from .reproduction import Reproduction, panels, paper_table

# Name in the paper: folder, scaling, and how our rows differ from the paper's.
DATA_SETS = {
    "iris": (
        "iris_xcsvm",
        "none",
        "the split of the authors' own tests, one row short, with rows of unit length; a test row is 6.7 points",
    ),
    "glass": ("glass_xcsvm", "none", "the split of the authors' own tests, one row short; a test row is 4.8 points"),
    "letter": ("letter", "unit variance", "LIBSVM's split"),
    "satimage": ("satimage", "unit variance", "LIBSVM's split"),
    "splice": ("splice_xcsvm", "none", "the split of the authors' own tests"),
    "usps": ("usps", "none", "LIBSVM's split"),
    "news20": (
        "news20_bydate",
        "unit norm",
        "the by-date split under TF-IDF, other texts and features than LIBSVM's news20",
    ),
}
# Why our figures differ by more than one point, where we know.
WHY_FAR = {
    "glass": "That is one of the 21 test rows.",
    "iris": "That is one of the 15 test rows.",
    "letter": "At C = 10 the paper's distributed LLW had not converged: its reference solver gives 87.24 there.",
    "news20": "Other texts and features; the TF-IDF weights set the scale of C.",
    "usps": "The rows come from another copy of the data, not compared with LIBSVM's. Scaling "
    "rows to unit length, features to unit variance or values to 0..1 does not bring them closer.",
}
LOSSES = ("ww", "llw")
TOLERANCE = 1e-2
MOST_PASSES = 5000
COLUMNS = (
    "data set",
    "log10 C",
    "loss",
    "error %",
    "paper's error %",
    "difference",
    "density %",
    "paper's density %",
    "gap",
    "seconds",
    "note",
)


def alber_b1(report: Callable[[str], None], n_jobs: int | None = None) -> Reproduction:
    """Train WW and LLW for log10 C = -1, 0, 1 on the available data sets."""
    out = Reproduction("Alber et al., Table B.1: WW and LLW", COLUMNS, draw=lambda figure: _draw(figure, out.rows))
    paper = paper_table("alber_b1")
    for name in dict.fromkeys(row["dataset"] for row in paper):
        if (path := out.folder_of(name, DATA_SETS)) is None:
            continue
        _, scaling, split = DATA_SETS[name]
        data = scale(load(path, test_share=0.1), scaling)
        note = out.add_note(f"{name}: {split}; scaling: {scaling}.")
        for printed in (row for row in paper if row["dataset"] == name):
            for loss in LOSSES:
                report(f"{name}, {loss}, log10 C = {printed['log10_C']}")
                out.rows.append(_row(data, printed, loss, n_jobs) | {"note": note})
    out.footnotes.append(
        f"C multiplies the sum of the losses; no intercept; trained to a relative duality gap of {TOLERANCE}, or "
        f"for {MOST_PASSES} passes. "
        "The paper stops when no variable violates by more than its tolerance, and averages 10 runs."
    )
    out.footnotes += _explain(out.rows)
    return out


def _row(data: Any, printed: dict[str, str], loss: str, n_jobs: int | None) -> dict[str, Any]:
    begin = time.perf_counter()
    model = estimator_for(
        loss,
        C=10.0 ** int(printed["log10_C"]),
        tol=TOLERANCE,
        max_iter=MOST_PASSES,
        fit_intercept=False,
        dtype="float64",
        n_jobs=n_jobs,
    ).fit(data.X, data.y)
    seconds = time.perf_counter() - begin
    error = 100 * float(np.mean(model.predict(data.X_test) != data.y_test))
    theirs = printed[f"d_{loss}_err"]
    return {
        "data set": printed["dataset"],
        "log10 C": int(printed["log10_C"]),
        "loss": loss,
        "error %": round(error, 2),
        "paper's error %": float(theirs) if theirs else None,
        "difference": round(error - float(theirs), 2) if theirs else None,
        "density %": round(100 * model.model_.density, 2),
        "paper's density %": float(printed[f"d_{loss}_density"]) if printed[f"d_{loss}_density"] else None,
        "gap": float(f"{model.certificate_.gap:.1e}"),
        "seconds": round(seconds, 2),
    }


def _explain(rows: list[dict[str, Any]]) -> list[str]:
    """Name the data sets with differences above one point, and say why if we know."""
    far: dict[str, float] = {}
    for row in rows:
        if row["difference"] is not None and abs(row["difference"]) > 1:
            far[row["data set"]] = max(far.get(row["data set"], 0.0), abs(row["difference"]))
    return [
        f"{name}: differences of up to {size:.2f} points. {WHY_FAR.get(name, 'We do not know why.')}"
        for name, size in far.items()
    ]


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    for panel, of_data_set in panels(figure, rows, ncols=4, sharex=True):
        for loss, colour in zip(LOSSES, ("tab:blue", "tab:orange"), strict=True):
            mine = [row for row in of_data_set if row["loss"] == loss]
            x = [row["log10 C"] for row in mine]
            panel.plot(x, [row["error %"] for row in mine], "o-", color=colour, label=f"{loss.upper()}, ours")
            theirs = [np.nan if row["paper's error %"] is None else row["paper's error %"] for row in mine]
            panel.plot(x, theirs, "x--", color=colour, alpha=0.6, label=f"{loss.upper()}, paper")
        panel.set_xticks([-1, 0, 1])
        panel.set_ylim(bottom=0)
    figure.supxlabel("log10 C")
    figure.supylabel("test error, %")
