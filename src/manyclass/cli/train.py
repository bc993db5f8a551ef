"""The command `manyclass train`."""

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
    AsJson,
    Calibrate,
    ClassWeight,
    Delimiter,
    LabelColumn,
    Loss,
    Method,
    MinDf,
    Quiet,
    SkipUnlabelled,
    Solver,
    Stop,
    TextColumn,
    Update,
    number_of_rounds,
    positive,
    usual,
    usual_C,
)
from .output import InputError
from .panels import in_cluster, in_data, in_disk, in_model, in_output, in_training
from .ranks import Engine
from .training_report import leave, leave_unfinished, report_of, show

logger = logging.getLogger("manyclass.cli")


@output.answers_errors
@ranks.as_one
def train(
    data: Annotated[
        str | None,
        typer.Argument(help="svmlight or XMC text; a CSV, TSV, JSONL or Parquet table; or a store. - reads stdin."),
    ] = None,
    named_data: Annotated[str | None, in_data("--data", help="The same as DATA, given as an option.")] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Annotated[
        DataFormat, in_data(help="Data format; auto goes by the file name, and finds XMC text by its first line.")
    ] = DataFormat.auto,
    delimiter: Delimiter = None,
    skip_unlabelled: SkipUnlabelled = False,
    normalize: normalizing.Normalize = None,
    min_df: MinDf = "1",
    loss: Annotated[
        Loss,
        in_model(
            "--loss",
            "-l",
            metavar="LOSS",
            help=f"Loss to minimize: {', '.join(LOSSES)}. hinge, squared_hinge, logistic and ppd_* train "
            "one-vs-rest, ovo_* one-vs-one.",
        ),
    ] = "ww",
    C: Annotated[
        float | None,
        in_model("-C", callback=positive, help=f"Weight of the loss; larger values fit more closely. {usual_C()}"),
    ] = None,
    intercept: Annotated[bool, in_model(help="Add a constant feature to every row.")] = USUAL["fit_intercept"],
    intercept_scaling: Annotated[float, in_model(callback=positive, help="Value of the constant feature.")] = USUAL[
        "intercept_scaling"
    ],
    class_weight: Annotated[
        ClassWeight, in_model(help="balanced gives the rows of small classes more weight.")
    ] = ClassWeight.none,
    calibrate: Annotated[
        Calibrate, in_model(help="Fit probabilities on held-out rows; takes five times as long.")
    ] = Calibrate.none,
    dtype: Annotated[Dtype, in_model(help="Type of the weights.")] = Dtype.float32,
    lam: Annotated[
        float | None, in_model("--lambda", min=0, help=f"l1 penalty (ppd_* and max_margin only). {usual('lam')}")
    ] = None,
    tau: Annotated[
        float | None, in_model(callback=positive, help=f"l2 penalty (ppd_* and max_margin only). {usual('tau')}")
    ] = None,
    drop: Annotated[
        float | None, in_model(min=0, help="Drop weights smaller than this (DiSMEC; squared_hinge only).")
    ] = None,
    gamma: Annotated[
        float | None, in_model(min=0, max=1, help=f"Weight of a row's own class (rm only). {usual('gamma')}")
    ] = None,
    feature_reduction: Annotated[
        bool,
        in_model("--feature-reduction", help="Give each class weights only for features that occur in its own rows."),
    ] = False,
    tol: Annotated[
        float | None, in_training(callback=positive, help=f"Stop when --stop is at most this. {usual('tol')}")
    ] = None,
    stop: Annotated[
        Stop, in_training(help="Measure for --tol: the relative duality gap, or the largest violation (kkt).")
    ] = Stop.gap,
    max_iter: Annotated[
        int | None, in_training(min=1, help=f"Stop after this many passes over the rows. {usual('max_iter')}")
    ] = None,
    time_limit: Annotated[float | None, in_training(callback=positive, help="Stop after this many seconds.")] = None,
    jobs: Annotated[
        int | None,
        in_training("--jobs", "-j", help="Number of threads. [default: all cores; under mpirun, each rank's share]"),
    ] = None,
    seed: Annotated[int, in_training(min=0, help="Seed for the order in which rows are visited.")] = 0,
    solver: Annotated[
        Solver, in_training(help="newton trains one-vs-rest squared_hinge and logistic; leagues trains ww and llw.")
    ] = Solver.auto,
    leagues: Annotated[
        int | None,
        in_training(min=1, help="Number of leagues (only with --solver leagues and ww). [default: by classes]"),
    ] = None,
    checkpoint: Annotated[
        Path | None, in_training(metavar="DIR", help="Save checkpoints in this folder, to resume a stopped fit.")
    ] = None,
    every: Annotated[float | None, in_training(min=0, help=f"Seconds between checkpoints. {usual('every')}")] = None,
    resume: Annotated[
        bool, in_training("--resume", help="Resume from the checkpoint or the shards, if there are any.")
    ] = False,
    memory: Annotated[
        Any,
        in_disk(parser=parse_size, metavar="SIZE", help="Memory to use when training from a store. [default: 1GB]"),
    ] = None,
    rounds: Annotated[
        Any,
        in_disk(
            parser=number_of_rounds,
            metavar="N",
            help="Passes over a block of a store before the next: a number, tol (until they gain little) or auto "
            "(until the next block is read).",
        ),
    ] = None,
    together: Annotated[
        int | None, in_disk(min=1, help="Blocks of a store to train on at a time. [default: as many as fit]")
    ] = None,
    method: Annotated[
        Method | None,
        in_disk(help="Algorithm for a store; pegasos and streamsvm are for comparison. [default: dual]"),
    ] = None,
    update: Annotated[
        Update | None,
        in_disk(help="Update the weights after each row or each block (--method pegasos only). [default: row]"),
    ] = None,
    engine: Annotated[
        Engine,
        in_cluster(
            help="auto uses all ranks under mpirun, and else memory; joblib trains one-vs-rest and one-vs-one losses."
        ),
    ] = Engine.auto,
    shards: Annotated[
        bool,
        in_cluster(
            "--shards", help="Write the model as a folder of shards, during training (ppd_*, --drop) or by MPI rank."
        ),
    ] = False,
    model: Annotated[
        Path | None, in_output("--model", "-m", help="Model file to write. [default: name of DATA + .manyclass]")
    ] = None,
    force: Annotated[
        bool, in_output("--force", help="Replace what is at --model, even by a fit that stopped early.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model and certify how close it is to the optimum.

    DATA is svmlight (LIBSVM) or XMC text, plain or compressed; a table (CSV, TSV, JSONL or Parquet) with a column of
    texts; or a store written by convert. Texts become TF-IDF features, and the vocabulary is saved with the model, so
    predict takes raw text.

    \b
    Examples:
      manyclass train big.svm.gz                                # big.manyclass
      manyclass train news.csv --text-column body --label-column topic
      manyclass train big.svm --loss cs --tol 0.1               # rough but fast
      zcat big.svm.gz | manyclass train - -m rows.manyclass --time-limit 60
      manyclass train big.svm --checkpoint big.ckpt --resume    # start or resume
      mpirun -n 2 manyclass train big.svm --solver leagues      # on two ranks
      manyclass train store/ --memory 512MB -m big.manyclass    # from disk
      manyclass train train.txt --loss ppd_squared_hinge --lambda 0.01
      manyclass train train.txt -l ppd_squared_hinge --shards -m labels.manyclass

    Rows with several labels or none (3,7 1:0.5, or XMC text) need a one-vs-rest loss (hinge, squared_hinge, logistic
    or ppd_*) or max_margin.

    The fit stops when the relative duality gap, an upper bound on the distance from the optimum, is at most --tol;
    with --stop kkt, when the largest violation is. A fit that stops early (--max-iter, --time-limit or Ctrl-C) still
    writes its model, or with --shards the labels trained so far. The exit code is then 3, or 130 after Ctrl-C.

    A converged fit replaces the model at --model. If the fit stops early, the old model is kept and the new one is
    written next to it, as news.unfinished.manyclass, unless --force is given. Without --force, a file that is not a
    model is rejected before the fit starts.

    To resume a fit with --checkpoint after any kind of stop, repeat the command with --resume; the final model is the
    same to the last bit. The same holds for --shards with ppd_* or --drop, where labels are trained and written in
    batches: the model is a folder, complete once it holds all labels.

    Under mpirun, one rank per host reads the data, or each rank reads its own file (part-{rank}.svm). The first rank
    writes the model.
    """
    output.log_to_stderr(quiet=quiet)
    _check_of_loss(loss, gamma=gamma, lam=lam, tau=tau, drop=drop, solver=solver, leagues=leagues)
    if (data is None) == (named_data is None):
        raise typer.BadParameter("name the data exactly once", param_hint="DATA or --data")
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
            f"{data}: {what} cannot train from a store; pass the file that the store was converted from, or train "
            "with --loss squared_hinge"
        )
    elif calibrate is not Calibrate.none:
        raise InputError(f"{data}: --calibrate cannot be used with a store; pass the file it was converted from")
    X: Any = rows.X if rows else store
    if normalize is None and rows and any(isinstance(step, UnitRows) for step in rows.chain):
        logger.info("scaling rows to length 1, which works best with this loss; use --no-normalize to turn it off")
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
    # Save first, so that a second Ctrl-C cannot lose the model.
    begin = time.perf_counter()
    destination.save(trained)
    if rows and calibrate is not Calibrate.none and trained.certificate["exit_reason"] != "interrupted":
        logger.info("fitting probabilities on held-out rows")
        trained.settings["probability"] = fit_rule(done.estimator, rows.X, codes, calibrate.value)
        destination.save(trained)
    times |= {"fit": done.estimator.times_, "writing": time.perf_counter() - begin}
    error, precision = None, None
    if trained.certificate["exit_reason"] != "interrupted":  # do not make the user wait after Ctrl-C
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
    """Reject options that do not apply to the loss."""
    if gamma is not None and loss != "rm":
        raise typer.BadParameter(f"it applies only to --loss rm, not {loss}", param_hint="--gamma")
    for name, value in (("--lambda", lam), ("--tau", tau)):
        if value is not None and not isinstance(PROBLEMS[loss], ElasticNet):
            names = ", ".join(one for one, problem in PROBLEMS.items() if isinstance(problem, ElasticNet))
            raise typer.BadParameter(f"it applies only to --loss {names}, not {loss}", param_hint=name)
    if drop is not None and loss != "squared_hinge":
        raise typer.BadParameter(f"it applies only to --loss squared_hinge, not {loss}", param_hint="--drop")
    if leagues is not None and (loss, solver) != ("ww", Solver.leagues):
        raise typer.BadParameter(
            f"it applies only to --loss ww with --solver leagues, not {loss} with {solver.value}",
            param_hint="--leagues",
        )


def _refuse_without_store(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise typer.BadParameter("it applies only to training from a store", param_hint=f"--{name}")


def _disk_engine(chosen: Engine, **given: Any) -> DiskEngine:
    if chosen not in (Engine.auto, Engine.disk) or ranks.peers().size > 1:
        raise InputError("a store is trained from disk by a single process; omit --engine and mpirun")
    return DiskEngine(**{name: value for name, value in given.items() if value is not None})


def _engine(chosen: Engine) -> str:
    if chosen is Engine.auto:
        return "mpi" if ranks.peers().size > 1 else "memory"
    return chosen.value


def _by_whom(jobs: int | None) -> str:
    peers = ranks.peers()
    return f", {peers.size} ranks with {jobs} thread{'s' * (jobs != 1)} each" if peers.size > 1 else ""


def _check_labels(data: str, rows: LabelledRows, calibrate: Calibrate) -> Any:
    """Encode the labels, and check before the fit that the model can be saved after it."""
    if rows.classes is not None and calibrate is not Calibrate.none:
        raise InputError(f"{data}: rows have sets of labels, but --calibrate needs one label per row")
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
    """Return the training error and, for sets of labels, the precision at 1; None for what was not measured."""
    model = done.estimator.model_
    if rows:
        best = ranks.topk(model, check_matrix(rows.X), 1, jobs=jobs)
        if model.multilabel:
            return None, precisions_at_k(rows.labels, best, [1])[0]
        return error_rate(codes, best[:, 0]), None
    if store and not store.manifest.multilabel:
        return 1 - done.estimator.score(store), None
    return None, None
