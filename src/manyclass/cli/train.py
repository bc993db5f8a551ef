"""`manyclass train`: from a data file to a model file."""

import logging
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..data import BlockStore, UnitRows, check_matrix, encode_label_sets, encode_labels
from ..data.class_names import class_tensors
from ..data.sizes import parse_size
from ..engines import DiskEngine
from ..estimators import UnfinishedFitError
from ..estimators.calibration import fit_rule
from ..estimators.provenance import Provenance
from ..metrics import error_rate, precisions_at_k
from ..model import LinearModel
from ..problems import LOSSES, PROBLEMS, ElasticNet
from . import normalizing, output, ranks
from .destination import Destination, Writing, check_checkpoint, check_shards, way_of_writing
from .fitting import USUAL, Dtype, Fit, fit
from .formats import DataFormat, TableOptions, stem
from .inputs import LabelledRows, naming, open_store, read_labelled
from .options import (
    Calibrate,
    ClassWeight,
    Delimiter,
    LabelColumn,
    Loss,
    Method,
    SkipUnlabelled,
    Solver,
    Stop,
    TextColumn,
    Update,
    document_frequency,
    number_of_rounds,
    positive,
    usual,
    usual_C,
)
from .output import InputError
from .ranks import Engine
from .training_report import leave, leave_unfinished, report_of, show

logger = logging.getLogger("manyclass.cli")


@output.answers_errors
@ranks.as_one
def train(
    data: Annotated[
        str | None,
        typer.Argument(help="svmlight or XMC text, a CSV, TSV, JSONL or Parquet table, or a store; - for stdin."),
    ] = None,
    named_data: Annotated[str | None, typer.Option("--data", help="The same, by name.")] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="Model to write. [default: DATA's name + .manyclass]")
    ] = None,
    loss: Annotated[
        Loss, typer.Option("--loss", "-l", help="hinge, squared_hinge, logistic, ppd_*: one-vs-rest.")
    ] = "ww",
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
    C: Annotated[
        float | None, typer.Option("-C", callback=positive, help=f"Larger fits the rows more closely. {usual_C()}")
    ] = None,
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
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume from the checkpoint or the shards, if there are any.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what is at --model, even by a fit that was stopped.")
    ] = False,
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
        bool,
        typer.Option("--shards", help="A folder, written while it is trained (ppd_*, --drop) or by ranks of mpirun."),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Threads. [default: all cores; under mpirun a rank's part]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the order in which rows are visited.")] = 0,
    dtype: Annotated[Dtype, typer.Option(help="Type of the weights.")] = Dtype.float32,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    delimiter: Delimiter = None,
    skip_unlabelled: SkipUnlabelled = False,
    normalize: normalizing.Normalize = None,
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

    The data are LIBSVM/svmlight text (plain or compressed), or a table (CSV, TSV, JSONL or Parquet) with a column of
    texts, which become TF-IDF features; the vocabulary is saved with the model, so that predict takes raw text.

    \b
    Examples:
      manyclass train big.svm.gz                                   # writes big.manyclass
      manyclass train news.csv --text-column body --label-column topic
      manyclass train big.svm --loss cs --tol 0.1                  # a rougher and faster fit
      zcat big.svm.gz | manyclass train - -m rows.manyclass --time-limit 60
      manyclass train big.svm --checkpoint big.ckpt --resume       # begins, or resumes after a stop
      mpirun -n 2 manyclass train big.svm --solver leagues         # two ranks, the same model
      manyclass train store/ --memory 512MB -m big.manyclass       # from a store that convert has made
      manyclass train train.txt --loss ppd_squared_hinge --lambda 0.01    # very many labels, sparse weights
      manyclass train train.txt --loss ppd_squared_hinge --shards --resume -m labels.manyclass    # written as trained

    Where rows have several labels or none (3,7 1:0.5, or XMC text) the loss must be one-vs-rest (hinge,
    squared_hinge, logistic or ppd_*) or max_margin.

    The fit ends when the relative duality gap (how far at most the model is from the optimum) or, with
    --stop kkt, the largest violation is at most --tol. Ctrl-C ends it early. A fit that ends early still
    writes its model, or with --shards the labels so far, and the exit code is 3 (out of passes or time) or
    130 (Ctrl-C).

    A model that is already at --model is replaced by a fit that has converged. One that ended early is written
    beside it, as news.unfinished.manyclass, unless --force is given. Anything but a model is refused before the fit.

    With --checkpoint, a fit that was stopped, by whatever, goes on when the same command is given with
    --resume, and ends with the same model to the last bit. So does one with --shards, where labels are
    trained and written some at a time (ppd_* and --drop): its model is a folder, whole when all are there.

    Under mpirun one rank of each host reads the data, or all a file each (part-{rank}.svm), and the first one
    writes the model.
    """
    output.log_to_stderr(quiet=quiet)
    _check_of_loss(loss, gamma=gamma, lam=lam, tau=tau, drop=drop, solver=solver, leagues=leagues)
    if (data is None) == (named_data is None):
        raise typer.BadParameter("name the data once", param_hint="DATA or --data")
    data = data or named_data
    assert data is not None
    target = model or Path(f"{'model' if data == '-' else stem(data)}.manyclass")
    first = ranks.peers().rank == 0
    writing = way_of_writing(shards, loss, drop, checkpoint=checkpoint, calibrate=calibrate, engine=engine)
    resumed = check_checkpoint(checkpoint, every, resume, writing)
    destination = Destination(target, writing, data, resumed=resumed, force=force)
    if first and writing is Writing.WHILE_TRAINED:
        check_shards(target, resume=resume, force=force)
    jobs = ranks.threads(jobs)
    begin = time.perf_counter()
    table = TableOptions(text_column, label_column, None, delimiter, skip_unlabelled)
    store = open_store(data, table)
    rows, codes = None, np.empty(0)
    if store is not None:
        normalizing.check_store(store, normalize)
    if store is None:
        _refuse_without_store(memory=memory, rounds=rounds, together=together, method=method, update=update)
        rows = read_labelled(
            data,
            format,
            table,
            min_df=min_df,
            dtype=dtype.value,
            several=LOSSES[loss].takes_sets,
            normalize=normalizing.chosen(normalize, loss, drop),
        )
        codes = _check_labels(data, rows, calibrate)
    elif isinstance(PROBLEMS[loss], ElasticNet) or drop is not None:
        what = f"--loss {loss}" if drop is None else "--drop"
        raise InputError(
            f"{data}: {what} wants rows in memory; pass the text that the store was made from, or train it with "
            "--loss squared_hinge"
        )
    elif calibrate is not Calibrate.none:
        raise InputError(f"{data}: --calibrate wants rows in memory; pass the text that the store was made from")
    X: Any = rows.X if rows else store
    if normalize is None and rows and any(isinstance(step, UnitRows) for step in rows.chain):
        logger.info("rows are scaled to length 1, as is best with this loss; --no-normalize leaves them as they are")
    times: dict[str, Any] = {"reading": time.perf_counter() - begin}
    n_rows, n_features = (store.n_rows, store.n_features) if store else X.shape
    about = f"{output.counted(n_rows, 'row')} with {output.counted(n_features, 'feature')}"
    logger.info("training %s on %s%s", LOSSES[loss].title, about, _by_whom(jobs))
    try:
        done = fit(
            loss,
            X,
            rows.labels if rows else None,
            Provenance(rows.chain, rows.reading, rows.classes) if rows else None,
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
            shards=target if writing is Writing.WHILE_TRAINED else None,
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
    except UnfinishedFitError as stopped:
        leave_unfinished(stopped, target, time_limit)
    trained: LinearModel = done.estimator.model_
    # Written before anything else: a second Ctrl-C must not cost the model.
    begin = time.perf_counter()
    destination.save(trained)
    if rows and calibrate is not Calibrate.none and trained.certificate["exit_reason"] != "interrupted":
        logger.info("fitting probabilities to held-out rows")
        trained.settings["probability"] = fit_rule(done.estimator, rows.X, codes, calibrate.value)
        destination.save(trained)
    times |= {"fit": done.estimator.times_, "writing": time.perf_counter() - begin}
    error, precision = None, None
    if trained.certificate["exit_reason"] != "interrupted":  # whoever pressed Ctrl-C does not want to wait
        error, precision = _on_training_rows(done, rows, codes, store, jobs)
    if first:
        report = report_of(done, n_rows, destination, times, error, precision)
        if as_json:
            typer.echo(output.to_json(report))
        else:
            show(report, destination.replaced)
    leave(done, destination)


def _check_of_loss(
    loss: str,
    *,
    gamma: float | None,
    lam: float | None,
    tau: float | None,
    drop: float | None,
    solver: Solver,
    leagues: int | None,
) -> None:
    """Refuse options that the loss does not have."""
    if gamma is not None and loss != "rm":
        raise typer.BadParameter(f"only --loss rm has it, not {loss}", param_hint="--gamma")
    for name, value in (("--lambda", lam), ("--tau", tau)):
        if value is not None and not isinstance(PROBLEMS[loss], ElasticNet):
            names = ", ".join(one for one, problem in PROBLEMS.items() if isinstance(problem, ElasticNet))
            raise typer.BadParameter(f"it is for --loss {names}, not {loss}", param_hint=name)
    if drop is not None and loss != "squared_hinge":
        raise typer.BadParameter(f"it is for --loss squared_hinge, not {loss}", param_hint="--drop")
    if leagues is not None and (loss, solver) != ("ww", Solver.leagues):
        raise typer.BadParameter(
            f"only --loss ww with --solver leagues has them, not {loss} with {solver.value}",
            param_hint="--leagues",
        )


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


def _on_training_rows(
    done: Fit, rows: LabelledRows | None, codes: Any, store: BlockStore | None, jobs: int | None
) -> tuple[float | None, float | None]:
    """The error, or of sets of labels the precision of the best one; None for what was not measured."""
    model = done.estimator.model_
    if rows:
        best = ranks.topk(model, check_matrix(rows.X), 1, jobs=jobs)
        if model.multilabel:
            return None, precisions_at_k(rows.labels, best, [1])[0]
        return error_rate(codes, best[:, 0]), None
    if store and not store.manifest.multilabel:
        return 1 - done.estimator.score(store), None
    return None, None
