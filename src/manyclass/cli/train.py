"""`manyclass train`: from a data file to a model file."""

import logging
import os
import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..data import encode_label_sets, encode_labels
from ..data.class_names import class_tensors
from ..data.sizes import parse_size
from ..engines import DiskEngine, holds_checkpoint
from ..estimators.calibration import fit_rule
from ..metrics import error_rate, precisions_at_k
from ..model import LinearModel, save_model
from ..model.shards import stored_bytes
from . import output, ranks
from .fitting import SPARSE, TAKE_SETS, TITLES, USUAL, Dtype, Fit, Loss, fit, milestones
from .inputs import Columns, DataFormat, LabelledRows, naming, open_store, read_labelled, stem
from .output import ExitCode, InputError
from .ranks import Engine

logger = logging.getLogger("manyclass.cli")


class Stop(str, Enum):
    """What the tolerance is about."""

    gap = "gap"
    kkt = "kkt"


class Solver(str, Enum):
    """How it is trained."""

    auto = "auto"
    dual = "dual"
    newton = "newton"
    leagues = "leagues"


class Method(str, Enum):
    """How it is trained from a store."""

    dual = "dual"
    pegasos = "pegasos"
    streamsvm = "streamsvm"


class Update(str, Enum):
    """With how many rows Pegasos changes the weights at a time."""

    row = "row"
    block = "block"


class Calibrate(str, Enum):
    """How scores become probabilities."""

    none = "none"
    temperature = "temperature"
    sigmoid = "sigmoid"


class ClassWeight(str, Enum):
    """Factors of C by class."""

    none = "none"
    balanced = "balanced"


def positive(value: float | None) -> float | None:
    """Refuse zero and less before any data are read."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value} is not above 0")
    return value


def number_of_rounds(text: str) -> Any:
    """Read a number, tol or auto."""
    if text in ("tol", "auto"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither a positive number nor tol or auto")
    return int(text)


def document_frequency(text: str) -> Any:
    """Read a number of texts (5) or a share of them (0.001)."""
    try:
        value: int | float = int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number of texts nor a share of them") from None
    if not value > 0 or (isinstance(value, float) and value > 1):
        raise typer.BadParameter(f"{text} is neither a number of texts from 1 nor a share between 0 and 1")
    return value


def usual(parameter: str) -> str:
    """Say what the estimators take if nothing is given."""
    return f"[default: {USUAL[parameter]}]"


@output.answers_errors
@ranks.as_one
def train(
    data: Annotated[
        str | None, typer.Argument(help="svmlight or XMC text, a CSV, TSV or JSONL table, or a store; - for stdin.")
    ] = None,
    named_data: Annotated[str | None, typer.Option("--data", help="The same, by name.")] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="Model to write. [default: DATA's name + .manyclass]")
    ] = None,
    loss: Annotated[
        Loss, typer.Option("--loss", "-l", help="hinge, squared_hinge, logistic, ppd_*: one-vs-rest.")
    ] = Loss.ww,
    gamma: Annotated[
        float | None, typer.Option(min=0, max=1, help=f"Weight of the own class in --loss rm. {usual('gamma')}")
    ] = None,
    lam: Annotated[
        float | None,
        typer.Option("--lambda", min=0, help=f"l1 penalty of ppd_* and max_margin. {usual('lam')}"),
    ] = None,
    tau: Annotated[
        float | None,
        typer.Option(callback=positive, help=f"l2 penalty of ppd_* and max_margin. {usual('tau')}"),
    ] = None,
    drop: Annotated[
        float | None, typer.Option(min=0, help="Of squared_hinge: leave out smaller weights (DiSMEC).")
    ] = None,
    solver: Annotated[
        Solver, typer.Option(help="newton: one-vs-rest squared_hinge and logistic; leagues: ww and llw.")
    ] = Solver.auto,
    leagues: Annotated[
        int | None, typer.Option(min=1, help="Their number, of --solver leagues with ww. [default: by the classes]")
    ] = None,
    feature_reduction: Annotated[
        bool, typer.Option("--feature-reduction", help="Weights only for features of the class's own rows.")
    ] = False,
    calibrate: Annotated[
        Calibrate, typer.Option(help="Fit probabilities to held-out rows, five times the work.")
    ] = Calibrate.none,
    C: Annotated[float, typer.Option("-C", callback=positive, help="Larger fits the rows more closely.")] = 1.0,
    tol: Annotated[float | None, typer.Option(callback=positive, help=f"Target of --stop. {usual('tol')}")] = None,
    stop: Annotated[Stop, typer.Option(help="Relative duality gap, or largest violation.")] = Stop.gap,
    max_iter: Annotated[int | None, typer.Option(min=1, help=f"Passes at the most. {usual('max_iter')}")] = None,
    time_limit: Annotated[float | None, typer.Option(callback=positive, help="Seconds at the most.")] = None,
    intercept: Annotated[bool, typer.Option(help="Add a constant feature.")] = USUAL["fit_intercept"],
    intercept_scaling: Annotated[float, typer.Option(callback=positive, help="Its value.")] = USUAL[
        "intercept_scaling"
    ],
    class_weight: Annotated[
        ClassWeight, typer.Option(help="balanced: rows of small classes count more.")
    ] = ClassWeight.none,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for what is needed to go on after a stop.")
    ] = None,
    every: Annotated[float | None, typer.Option(min=0, help=f"Seconds between checkpoints. {usual('every')}")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, if there is one.")] = False,
    memory: Annotated[
        Any,
        typer.Option(parser=parse_size, metavar="SIZE", help="From a store: what it may use. [default: 1GB]"),
    ] = None,
    rounds: Annotated[
        Any, typer.Option(parser=number_of_rounds, metavar="N", help="From a store: visits a block; tol, auto.")
    ] = None,
    together: Annotated[
        int | None, typer.Option(min=1, help="From a store: blocks visited together. [default: as many as fit]")
    ] = None,
    method: Annotated[
        Method | None, typer.Option(help="From a store: others than dual are to compare with. [default: dual]")
    ] = None,
    update: Annotated[
        Update | None, typer.Option(help="Of --method pegasos: by rows, or by all of a block. [default: row]")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="auto: all ranks under mpirun, else memory; joblib: one-vs-rest, one-vs-one.")
    ] = Engine.auto,
    shards: Annotated[
        bool, typer.Option("--shards", help="Under mpirun: the model as a folder, with a file by each rank.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Threads. [default: all cores; under mpirun a rank's part]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the order in which rows are visited.")] = 0,
    dtype: Annotated[Dtype, typer.Option(help="Type of the weights.")] = Dtype.float32,
    text_column: Annotated[str | None, typer.Option(help="Of a table. [default: text]")] = None,
    label_column: Annotated[str | None, typer.Option(help="Of a table. [default: label]")] = None,
    min_df: Annotated[
        Any, typer.Option(parser=document_frequency, metavar="N", help="Drop words of fewer texts.")
    ] = "1",
    format: Annotated[
        DataFormat, typer.Option(help="auto: by the name of the file; xmc by its first line.")
    ] = DataFormat.auto,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Train a model and certify it.

    The data are LIBSVM/svmlight text (plain or compressed), or a table with a column of texts, which become
    TF-IDF features; the vocabulary is saved with the model, so that predict takes raw text.

    \b
    Examples:
      manyclass train news20.gz                            writes news20.manyclass
      manyclass train news.csv --text-column body -m news.manyclass
      manyclass train big.svm.zst --loss cs --tol 0.1      a rougher and faster fit
      zcat rows.gz | manyclass train - -m rows.manyclass --time-limit 60
      manyclass train big.svm --checkpoint big.ckpt --resume    begins, or goes on after a stop
      mpirun -n 4 manyclass train big.svm --solver leagues      four ranks, the same model
      manyclass train store/ --memory 512MB -m big.manyclass    from a store that convert has made
      manyclass train big.txt --loss ppd_squared_hinge --lambda 0.01    very many labels, sparse weights

    Where rows have several labels or none (3,7 1:0.5, or XMC text) the loss must be one-vs-rest (hinge,
    squared_hinge, logistic or ppd_*) or max_margin.

    The fit ends when the relative duality gap (how far at most the model is from the optimum) or, with
    --stop kkt, the largest violation is at most --tol. Ctrl-C ends it early. A fit that ends early still
    writes its model, and the exit code is 3 (out of passes or time) or 130 (Ctrl-C).

    With --checkpoint, a fit that was stopped, by whatever, goes on when the same command is given with
    --resume, and ends with the same model to the last bit.

    Under mpirun one rank of each host reads the data, or all a file each (part-{rank}.svm), and the first one
    writes the model.
    """
    output.log_to_stderr(quiet=quiet)
    if gamma is not None and loss is not Loss.rm:
        raise typer.BadParameter(f"only --loss rm has it, not {loss.value}", param_hint="--gamma")
    for name, value in (("--lambda", lam), ("--tau", tau)):
        if value is not None and loss not in SPARSE:
            names = ", ".join(one.value for one in SPARSE)
            raise typer.BadParameter(f"it is for --loss {names}, not {loss.value}", param_hint=name)
    if drop is not None and loss is not Loss.squared_hinge:
        raise typer.BadParameter(f"it is for --loss squared_hinge, not {loss.value}", param_hint="--drop")
    if leagues is not None and (loss, solver) != (Loss.ww, Solver.leagues):
        raise typer.BadParameter(
            f"only --loss ww with --solver leagues has them, not {loss.value} with {solver.value}",
            param_hint="--leagues",
        )
    if (data is None) == (named_data is None):
        raise typer.BadParameter("name the data once", param_hint="DATA or --data")
    data = data or named_data
    assert data is not None
    target = model or Path(f"{'model' if data == '-' else stem(data)}.manyclass")
    first = ranks.peers().rank == 0
    if first:
        _check_target(target, shards)
    jobs = ranks.threads(jobs)
    _check_checkpoint(checkpoint, every, resume)
    begin = time.perf_counter()
    store = open_store(data)
    rows, codes = None, np.empty(0)
    if store is None:
        _refuse_without_store(memory=memory, rounds=rounds, together=together, method=method, update=update)
        rows = read_labelled(
            data,
            format,
            Columns(text_column, label_column),
            min_df=min_df,
            dtype=dtype.value,
            several=loss in TAKE_SETS,
        )
        codes = _check_labels(data, rows, calibrate)
    elif calibrate is not Calibrate.none:
        raise InputError(f"{data}: --calibrate wants rows in memory; pass the text that the store was made from")
    X: Any = rows.X if rows else store
    times: dict[str, Any] = {"reading": time.perf_counter() - begin}
    n_rows, n_features = (store.n_rows, store.n_features) if store else X.shape
    logger.info("training %s on %d rows with %d features%s", TITLES[loss], n_rows, n_features, _by_whom(jobs))
    done = fit(
        loss,
        X,
        rows.labels if rows else None,
        progress=not quiet,
        gamma=gamma,
        lam=lam,
        tau=tau,
        threshold=drop,
        solver=solver.value,
        leagues=leagues,
        feature_reduction=feature_reduction,
        C=C,
        tol=tol,
        stop=stop.value,
        max_iter=max_iter,
        time_limit=time_limit,
        fit_intercept=intercept,
        intercept_scaling=intercept_scaling,
        class_weight=None if class_weight is ClassWeight.none else class_weight.value,
        checkpoint=checkpoint,
        every=every,
        resume=resume,
        engine=_disk_engine(
            engine,
            memory=memory,
            rounds=rounds,
            together=together,
            method=method and method.value,
            update=update and update.value,
        )
        if store
        else _engine(engine),
        n_jobs=jobs,
        random_state=seed,
        dtype=dtype.value,
    )
    trained: LinearModel = done.estimator.model_
    if rows:
        trained.text = rows.text
        trained.settings |= rows.reading
        if rows.classes is not None:  # the fit knows the columns by their numbers
            done.estimator.classes_ = trained.classes = rows.classes
    # Written before anything else: a second Ctrl-C must not cost the model.
    begin = time.perf_counter()
    _save(trained, target, shards)
    if rows and calibrate is not Calibrate.none and trained.certificate["exit_reason"] != "interrupted":
        logger.info("fitting probabilities to held-out rows")
        trained.settings["probability"] = fit_rule(done.estimator, rows.X, codes, calibrate.value)
        _save(trained, target, shards)
    times |= {"fit": done.estimator.times_, "writing": time.perf_counter() - begin}
    error = precision = None
    if trained.certificate["exit_reason"] != "interrupted":  # whoever pressed Ctrl-C does not want to wait
        if rows:
            best = ranks.topk(trained, rows.X, 1, jobs=jobs)
            if trained.multilabel:
                (precision,) = precisions_at_k(rows.labels, best, [1])
            else:
                error = error_rate(codes, best[:, 0])
        elif store and not store.manifest.multilabel:
            error = 1 - done.estimator.score(store)
    if first:
        report = _report(done, n_rows, target, times, error, precision)
        if as_json:
            typer.echo(output.to_json(report))
        else:
            _show(report)
    _leave(done, target)


def _save(model: LinearModel, target: Path, shards: bool) -> None:
    together = shards and ranks.peers().size > 1
    if together or ranks.peers().rank == 0:
        save_model(model, target, engine="mpi" if together else "memory")


def _refuse_without_store(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise typer.BadParameter("it is for training from a store", param_hint=f"--{name}")


def _disk_engine(chosen: Engine, **given: Any) -> DiskEngine:
    if chosen not in (Engine.auto, Engine.disk) or ranks.peers().size > 1:
        raise InputError("a store is trained by one process, from disk: leave out --engine and mpirun")
    return DiskEngine(**{name: value for name, value in given.items() if value is not None})


def _engine(chosen: Engine) -> str:
    if chosen is Engine.auto:
        return "mpi" if ranks.peers().size > 1 else "memory"
    return chosen.value


def _by_whom(jobs: int | None) -> str:
    peers = ranks.peers()
    return f", {peers.size} ranks with {jobs} thread{'s' * (jobs != 1)} each" if peers.size > 1 else ""


def _check_target(target: Path, shards: bool) -> None:
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"{target}: there is no folder {folder}; make it first")
    if (target.is_dir() and not shards) or not os.access(folder, os.W_OK):
        raise InputError(f"{target}: cannot be written; choose another place with --model")


def _check_checkpoint(folder: Path | None, every: float | None, resume: bool) -> None:
    if folder is None:
        for given, name in ((every is not None, "--every"), (resume, "--resume")):
            if given:
                raise typer.BadParameter("it needs the folder of --checkpoint", param_hint=name)
        return
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder with --checkpoint")
    there = holds_checkpoint(folder)
    if there and not resume:
        raise InputError(f"{folder} holds a checkpoint; go on from it with --resume, or remove it to start again")
    if resume:
        logger.info("going on from %s" if there else "%s holds no checkpoint yet; starting at the beginning", folder)


def _check_labels(data: str, rows: LabelledRows, calibrate: Calibrate) -> Any:
    """Number the labels, and make sure before the fit that the model can be saved after it."""
    if rows.classes is not None and calibrate is not Calibrate.none:
        raise InputError(f"{data}: rows have sets of labels; --calibrate is for one label a row")
    with naming(data):
        if rows.classes is not None:
            return encode_label_sets(rows.labels)[1]
        classes, codes = encode_labels(rows.labels)
        try:
            class_tensors(classes)
        except TypeError as error:
            raise ValueError(str(error)) from error
    return codes


def _report(
    done: Fit, n_rows: int, target: Path, times: dict[str, Any], error: float | None, precision: float | None
) -> dict[str, Any]:
    estimator, model = done.estimator, done.estimator.model_
    return {
        "model": str(target),
        "model_bytes": stored_bytes(target),
        "rows": n_rows,
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


def _show(report: dict[str, Any]) -> None:
    certificate, times, memory = report["certificate"], report["times"], report["memory"]
    error, precision = report["training_error"], report["training_precision_at_1"]
    output.show_pairs(
        [
            ("model", f"{report['model']} ({output.size(report['model_bytes'])})"),
            ("rows", str(report["rows"])),
            ("features", str(report["features"])),
            ("classes", str(report["classes"])),
            ("loss", report["settings"]["loss"]),
            ("exit reason", certificate["exit_reason"]),
            ("epochs", output.number(certificate["epochs"])),
            ("primal", output.number(certificate["primal"])),
            ("dual", output.number(certificate["dual"])),
            ("relative gap", output.number(certificate["gap"])),
            ("largest violation", output.number(certificate["violation"])),
            ("training error", "not measured" if error is None else output.percent(error))
            if precision is None
            else ("training precision at 1", output.percent(precision)),
            ("density", output.percent(report["density"])),
            ("reading", output.seconds(times["reading"])),
            *((f"fit: {name}", output.seconds(value)) for name, value in times["fit"].items()),
            ("writing", output.seconds(times["writing"])),
            *((f"memory: {name.replace('_', ' ')}", output.size(value)) for name, value in memory.items()),
        ]
    )
    measure = "gap" if report["settings"]["stop"] == "gap" else "violation"
    columns = ("seconds", "epochs", "primal", "dual", "gap", "violation")
    rows = [[output.number(row[name]) for name in columns] for row in milestones(report["history"], measure)]
    output.show_table("how it got there", columns, rows)


def _leave(done: Fit, target: Path) -> None:
    certificate, estimator = done.estimator.certificate_, done.estimator
    reason = certificate.exit_reason
    if reason == "converged":
        return
    name, reached = (
        ("relative duality gap", certificate.gap)
        if estimator.stop == "gap"
        else ("largest violation", certificate.violation)
    )
    go_on = ""
    if estimator.checkpoint is not None and holds_checkpoint(estimator.checkpoint):
        go_on = ", and go on from there with --resume"
    what, advice = {
        "max_iter": (f"stopped after {estimator.max_iter} passes", "raise --max-iter"),
        "time_limit": (f"stopped after {estimator.time_limit} seconds", "raise --time-limit"),
        "one_pass": ("stopped after one pass, as StreamSVM does,", "leave out --method"),
        "interrupted": ("interrupted", "let it run longer"),
    }[reason]
    output.fail(
        f"{what} with a {name} of {reached:.3g}, target {estimator.tol:.3g}; {target} holds the model "
        f"so far. To get closer {advice}{go_on}, or ask for less: a larger --tol or a smaller -C",
        ExitCode.INTERRUPTED if reason == "interrupted" else ExitCode.NOT_CONVERGED,
    )
