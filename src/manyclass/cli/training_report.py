"""What train prints about a fit: the report, its history, and why it stopped early."""

import logging
from pathlib import Path
from typing import Any, NoReturn

from ..engines import holds_checkpoint
from ..estimators import UnfinishedFitError
from ..model.shards import stored_bytes
from . import output
from .destination import Destination
from .fitting import Fit, milestones
from .output import ExitCode

logger = logging.getLogger("manyclass.cli")
LINES: tuple[output.Line, ...] = (
    ("model", lambda report: f"{report['model']} ({output.size(report['model_bytes'])})", str),
    ("replaced", "replaced", str),
    ("rows", "rows", output.count),
    ("prepared by", "steps", ", then ".join),
    ("features", "features", output.count),
    ("classes", "classes", output.count),
    ("loss", "settings.loss", str),
    ("exit reason", "certificate.exit_reason", str),
    ("passes", "certificate.epochs", output.number),
    ("primal", "certificate.primal", output.number),
    ("dual", "certificate.dual", output.number),
    ("relative gap", "certificate.gap", output.number),
    ("largest violation", "certificate.violation", output.number),
    ("training error", lambda report: _training_error(report), str),
    ("training precision at 1", "training_precision_at_1", output.percent),
    ("density", "density", output.percent),
    ("reading", "times.reading", output.seconds),
    ("fit: {}", "times.fit", output.seconds),
    ("writing", "times.writing", output.seconds),
    ("memory: {}", lambda report: output.in_words(report["memory"]), output.size),
)


def report_of(
    done: Fit,
    n_rows: int,
    destination: Destination,
    times: dict[str, Any],
    error: float | None,
    precision: float | None,
) -> dict[str, Any]:
    """Return the report as plain values."""
    estimator, model = done.estimator, done.estimator.model_
    return {
        "model": str(destination.path),
        "model_bytes": stored_bytes(destination.path),
        "replaced": destination.replaced,
        "rows": n_rows,
        "steps": model.chain.describe(),
        "features": model.n_features,
        "classes": model.n_classes,
        "density": model.density,
        "training_error": error,
        "training_precision_at_1": precision,
        "certificate": model.certificate,
        "settings": model.settings,
        "times": times,
        "memory": estimator.memory_ | {"peak": done.peak_memory},
        "history": estimator.history_,
    }


def _training_error(report: dict[str, Any]) -> str | None:
    if report["training_precision_at_1"] is not None:
        return None
    return "not measured" if report["training_error"] is None else output.percent(report["training_error"])


def show(report: dict[str, Any]) -> None:
    """Print the report."""
    output.show_lines(report, LINES)
    measure = "gap" if report["settings"]["stop"] == "gap" else "violation"
    columns = ("seconds", "epochs", "primal", "dual", "gap", "violation")
    rows = [
        [*(output.number(line[name]) for name in columns), "certificate" if line["certified"] else "estimate"]
        for line in milestones(report["history"], measure)
    ]
    output.show_table("history", ("seconds", "passes", *columns[2:], "kind"), rows)


def leave(done: Fit, destination: Destination) -> None:
    """If the fit stopped before its target, say why and exit with the code for that."""
    certificate, estimator = done.estimator.certificate_, done.estimator
    reason, kept = certificate.exit_reason, destination.kept
    if reason == "converged":
        if kept is not None:  # something else was written there during the fit
            logger.warning("%s is kept, since it is not a model; the new model is %s", kept.path, destination.path)
        return
    name, reached = (
        ("relative duality gap", certificate.gap)
        if estimator.stop == "gap"
        else ("largest violation", certificate.violation)
    )
    go_on = ""
    if estimator.checkpoint is not None and holds_checkpoint(estimator.checkpoint):
        go_on = ", and resume from there with --resume"
    what, advice = {
        "max_iter": (
            f"stopped after {output.count(estimator.max_iter)} pass{'es' * (estimator.max_iter != 1)}",
            "raise --max-iter",
        ),
        "time_limit": (f"stopped after {estimator.time_limit} seconds", "raise --time-limit"),
        "one_pass": ("stopped after one pass, as StreamSVM does,", "omit --method"),
        "interrupted": ("interrupted", "let it run longer"),
    }[reason]
    output.fail(
        f"{what} with a {name} of {reached:.3g}, target {estimator.tol:.3g}; {destination.path} holds the model "
        f"so far{f', and {kept.path} is kept (--force replaces it)' if kept else ''}. "
        f"To get closer, {advice}{go_on}; or settle for less with a larger --tol, or lower -C",
        ExitCode.INTERRUPTED if reason == "interrupted" else ExitCode.NOT_CONVERGED,
    )


def leave_unfinished(stopped: UnfinishedFitError, target: Path, time_limit: float | None) -> NoReturn:
    """Say how many labels a stopped fit has written, and exit with the code for that."""
    interrupted = stopped.exit_reason == "interrupted"
    what = "interrupted" if interrupted else f"stopped after {time_limit} seconds"
    output.fail(
        f"{what} with {stopped.done} of {stopped.labels} labels in {target}, which becomes a model once all are "
        "there; continue with --resume",
        ExitCode.INTERRUPTED if interrupted else ExitCode.NOT_CONVERGED,
    )
