"""The options of `manyclass train`, in the groups of its help."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..estimators import DiSMEC, MaxEnt
from ..problems import LOSSES, PROBLEMS
from . import ranks
from .fitting import USUAL, trains_in_batches
from .formats import stem
from .options import AsJson, Intercept, JobsOfRank, Loss, MemoryOptions, Quiet, WeightType, positive, usual
from .output import InputError
from .panels import Parameters, given_in, in_cluster, in_data, in_disk, in_model, in_output, in_training

logger = logging.getLogger("manyclass.cli")

if TYPE_CHECKING:
    Solver = str
else:
    Solver = Literal[("auto", "dual", *dict.fromkeys(solver for loss in LOSSES.values() for solver in loss.solvers))]


def with_parameter(name: str) -> list[str]:
    """Return the losses that have this parameter."""
    return [loss for loss, problem in PROBLEMS.items() if name in problem.parameter_names]


def number_of_rounds(text: str) -> Any:
    """Parse a number, `tol` or `auto`."""
    if text in ("tol", "auto"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither a positive integer nor tol or auto")
    return int(text)


@dataclass(frozen=True)
class Source:
    """Where the data are."""

    data: Annotated[
        str | None,
        typer.Argument(help="svmlight or XMC text; a CSV, TSV, JSONL or Parquet table; or a store. - reads stdin."),
    ] = None
    named_data: Annotated[str | None, in_data("--data", help="The same as DATA, given as an option.")] = None

    @property
    def path(self) -> str:
        """The file or store; `-` for standard input."""
        if (self.data is None) == (self.named_data is None):
            raise typer.BadParameter("pass the data once, either as DATA or with --data", param_hint="DATA or --data")
        return self.data or self.named_data or ""


@dataclass(frozen=True)
class Objective(Parameters):
    """What to minimise. Fields besides `calibrate` are named after the parameters of the estimators."""

    loss: Annotated[
        Loss,
        in_model(
            "--loss",
            "-l",
            metavar="LOSS",
            help=f"Loss to minimise: {', '.join(LOSSES)}. hinge, squared_hinge, logistic and ppd_* train "
            "one-vs-rest, ovo_* one-vs-one. docs/losses.md says when to use which.",
        ),
    ] = "ww"
    C: Annotated[
        float | None,
        in_model(
            "-C",
            callback=positive,
            help="Weight of the loss; larger values fit more closely. "
            f"[default: {USUAL['C']:g}; logistic losses: {MaxEnt().C:g}]",
        ),
    ] = None
    fit_intercept: Intercept = USUAL["fit_intercept"]
    intercept_scaling: Annotated[float, in_model(callback=positive, help="Value of the constant feature.")] = USUAL[
        "intercept_scaling"
    ]
    class_weight: Annotated[
        Literal["none", "balanced"], in_model(help="balanced gives the rows of small classes more weight.")
    ] = "none"
    calibrate: Annotated[
        Literal["none", "temperature", "sigmoid"],
        in_model(help="Fit probabilities on held-out rows; takes five times as long."),
    ] = "none"
    dtype: WeightType = "float32"
    lam: Annotated[
        float | None, in_model("--lambda", min=0, help=f"l1 penalty (ppd_* and max_margin only). {usual('lam')}")
    ] = None
    tau: Annotated[
        float | None, in_model(callback=positive, help=f"l2 penalty (ppd_* and max_margin only). {usual('tau')}")
    ] = None
    threshold: Annotated[
        float | None, in_model("--drop", min=0, help="Drop weights smaller than this (DiSMEC; squared_hinge only).")
    ] = None
    gamma: Annotated[
        float | None, in_model(min=0, max=1, help=f"Weight of a row's own class (rm only). {usual('gamma')}")
    ] = None
    feature_reduction: Annotated[
        bool,
        in_model("--feature-reduction", help="Give each class weights only for features that occur in its own rows."),
    ] = False

    def __post_init__(self) -> None:
        """Reject options that do not apply to the loss."""
        for option, value, losses in (
            ("--gamma", self.gamma, with_parameter("gamma")),
            ("--lambda", self.lam, with_parameter("lam")),
            ("--tau", self.tau, with_parameter("tau")),
            ("--drop", self.threshold, [DiSMEC.loss]),
        ):
            if value is not None and self.loss not in losses:
                message = f"it applies only to --loss {', '.join(losses)}, not {self.loss}"
                raise typer.BadParameter(message, param_hint=option)

    def needs_memory(self) -> str | None:
        """Return the option that keeps the loss from being trained from a store, if there is one."""
        if self.threshold is not None:
            return "--drop"
        return None if LOSSES[self.loss].from_store else f"--loss {self.loss}"

    def trains_in_batches(self) -> bool:
        """Whether labels can be written while others are trained."""
        return trains_in_batches(self.loss, self.threshold)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator, and the loss."""
        given = given_in(self)
        return {name: value for name, value in given.items() if name != "calibrate" and value != "none"}


@dataclass(frozen=True)
class Effort(Parameters):
    """How to train, and when to stop. Fields are named after the parameters of the estimators."""

    tol: Annotated[
        float | None,
        in_training(
            callback=positive, help=f"Stop when the figure chosen with --stop is at most this. {usual('tol')}"
        ),
    ] = None
    stop: Annotated[
        Literal["gap", "kkt"],
        in_training(help="What --tol limits: the relative duality gap, or the largest violation (kkt)."),
    ] = "gap"
    max_iter: Annotated[
        int | None, in_training(min=1, help=f"Stop after this many passes over the rows. {usual('max_iter')}")
    ] = None
    time_limit: Annotated[float | None, in_training(callback=positive, help="Stop after this many seconds.")] = None
    n_jobs: JobsOfRank = None
    random_state: Annotated[
        int, in_training("--seed", min=0, help="Seed for the order in which rows are visited.")
    ] = 0
    solver: Annotated[
        Solver,
        in_training(help="newton trains one-vs-rest squared_hinge and logistic; leagues trains ww, alternating llw."),
    ] = "auto"
    leagues: Annotated[
        int | None,
        in_training(
            min=1, help="Number of leagues (only with --solver leagues). [default: depends on the number of classes]"
        ),
    ] = None

    def check(self, loss: str) -> None:
        """Reject options that do not apply to the loss."""
        if self.leagues is not None and (loss, self.solver) != ("ww", "leagues"):
            raise typer.BadParameter(
                f"it applies only to --loss ww with --solver leagues, not {loss} with {self.solver}",
                param_hint="--leagues",
            )


@dataclass(frozen=True)
class Checkpoints(Parameters):
    """How a stopped fit can be resumed. Fields are named after the parameters of the estimators."""

    checkpoint: Annotated[
        Path | None, in_training(metavar="DIR", help="Save checkpoints in this folder, to resume a stopped fit.")
    ] = None
    every: Annotated[float | None, in_training(min=0, help=f"Seconds between checkpoints. {usual('every')}")] = None
    resume: Annotated[
        bool, in_training("--resume", help="Resume from the checkpoint or the shards, if there are any.")
    ] = False


@dataclass(frozen=True)
class Result:
    """Where the model goes, and what is printed."""

    model: Annotated[
        Path | None, in_output("--model", "-m", help="Model file to write. [default: name of DATA + .manyclass]")
    ] = None
    force: Annotated[
        bool, in_output("--force", help="Replace any file or shards at --model, even if the fit stops early.")
    ] = False
    quiet: Quiet = False
    as_json: AsJson = False

    def target(self, data: str) -> Path:
        """The path of the model."""
        return self.model or Path(f"{'model' if data == '-' else stem(data)}.manyclass")


@dataclass(frozen=True)
class DiskOptions(MemoryOptions):
    """How to train from a store."""

    rounds: Annotated[
        Any,
        in_disk(
            parser=number_of_rounds,
            metavar="N",
            help="How often to visit the blocks in memory before turning to the next: a number, tol (until visits "
            "gain little) or auto (until the next blocks have been read).",
        ),
    ] = None
    blocks_per_batch: Annotated[
        int | None, in_disk(min=1, help="Blocks of a store to train on at a time. [default: as many as fit]")
    ] = None
    together: Annotated[int | None, in_disk(min=1, hidden=True)] = None
    method: Annotated[
        Literal["dual", "pegasos", "streamsvm"] | None,
        in_disk(help="Algorithm for a store; pegasos and streamsvm are for comparison. [default: dual]"),
    ] = None
    update: Annotated[
        Literal["row", "block"] | None,
        in_disk(help="Update the weights after each row or each block (--method pegasos only). [default: row]"),
    ] = None

    def __post_init__(self) -> None:
        """Accept the old spelling of an option."""
        if self.together is not None:
            logger.warning(
                "warning: --together is deprecated and will be removed in the next version; use --blocks-per-batch"
            )
            object.__setattr__(self, "blocks_per_batch", self.together)
            object.__setattr__(self, "together", None)


@dataclass(frozen=True)
class Cluster(Parameters):
    """Which processes train, and which of them write the model."""

    engine: Annotated[
        Literal["auto", "memory", "disk", "joblib", "mpi"],
        in_cluster(
            help="auto means mpi under mpirun, and memory otherwise; joblib trains one-vs-rest and one-vs-one losses."
        ),
    ] = "auto"
    shards: Annotated[
        bool,
        in_cluster(
            "--shards",
            help="Write the model as a folder of shards: during training (ppd_*, --drop), or one per rank.",
        ),
    ] = False

    def in_memory(self) -> str:
        """The engine for rows in memory."""
        if self.engine == "auto":
            return "mpi" if ranks.peers().size > 1 else "memory"
        return self.engine

    def check_store(self) -> None:
        """Reject engines that do not train from a store."""
        if self.engine not in ("auto", "disk") or ranks.peers().size > 1:
            raise InputError("a store is trained from disk by a single process; omit --engine and mpirun")
