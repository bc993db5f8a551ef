"""The command `manyclass train`."""

import logging
import time
from dataclasses import replace
from typing import Any

from ..data import BlockStore, UnitRows, check_matrix, encode_label_sets, encode_labels
from ..data.class_names import class_tensors
from ..estimators import UnfinishedFitError
from ..estimators.calibration import fit_rule
from ..estimators.provenance import Provenance
from ..metrics import error_rate, precisions_at_k
from ..problems import LOSSES
from . import normalizing, output, ranks
from .destination import Destination, Writing, check_checkpoint, check_shards, way_of_writing
from .fitting import Fit, fit
from .inputs import LabelledRows, naming, open_store, read_labelled
from .options import PreparedFile
from .output import InputError
from .panels import given_in, takes_groups
from .train_options import Checkpoints, Cluster, DiskOptions, Effort, Objective, Result, Source
from .training_report import leave, leave_unfinished, report_of, show

logger = logging.getLogger("manyclass.cli")


@output.answers_errors
@ranks.as_one
@takes_groups
def train(
    file: PreparedFile,
    source: Source,
    objective: Objective,
    effort: Effort,
    checkpoints: Checkpoints,
    result: Result,
    disk: DiskOptions,
    cluster: Cluster,
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
    with --stop kkt, when no optimality condition is violated by more than --tol. A fit stopped early by --max-iter,
    --time-limit or Ctrl-C still writes its model, or with --shards the labels trained so far. The exit code is then
    3, or 130 after Ctrl-C.

    A converged fit replaces the model at --model. If the fit stops early, the old model is kept and the new one is
    written next to it, as news.unfinished.manyclass, unless --force is given. Without --force, a file that is not a
    model is rejected before the fit starts.

    To resume a fit with --checkpoint after any kind of stop, repeat the command with --resume; the final model is the
    same to the last bit (from a store, it has the same optimum). The same holds for --shards with ppd_* or --drop,
    where labels are trained and written in batches: the model is a folder, complete once it holds all labels.

    Under mpirun, one rank per host reads the data, or each rank reads its own file (part-{rank}.svm). The first rank
    writes the model.
    """
    effort.check(objective.loss)
    data = source.path
    destination = _destination(data, result, way_of_writing(objective, checkpoints, cluster), checkpoints)
    effort = replace(effort, n_jobs=ranks.threads(effort.n_jobs))
    begin = time.perf_counter()
    rows, codes = _read(data, file, objective, cluster)
    engine = disk.engine(rows if isinstance(rows, BlockStore) else None) or cluster.in_memory()
    times: dict[str, Any] = {"reading": time.perf_counter() - begin}
    _announce(rows, objective, effort)
    try:
        done = fit(
            **_examples(rows),
            **objective.parameters() | given_in(effort) | given_in(checkpoints),
            shards=destination.path if destination.writing is Writing.WHILE_TRAINED else None,
            engine=engine,
            progress=not result.quiet,
        )
    except UnfinishedFitError as stopped:
        leave_unfinished(stopped, destination.path, effort.time_limit)
    begin = time.perf_counter()
    _save(done, destination, rows, codes, objective.calibrate)
    times |= {"fit": done.estimator.times_, "writing": time.perf_counter() - begin}
    error, precision = _on_training_rows(done, rows, codes, effort.n_jobs)
    if ranks.peers().rank == 0:
        report = report_of(done, rows.n_rows, destination, times, error, precision)
        output.show_report(report, show, as_json=result.as_json)
    leave(done, destination)


def _destination(data: str, result: Result, writing: Writing, checkpoints: Checkpoints) -> Destination:
    """Check before the fit that its model can be written, and that what it resumes from is there."""
    target = result.target(data)
    resumed = check_checkpoint(checkpoints, writing)
    destination = Destination(target, writing, data, resumed=resumed, force=result.force)
    if ranks.peers().rank == 0 and writing is Writing.WHILE_TRAINED:
        check_shards(target, resume=checkpoints.resume, force=result.force)
    return destination


def _read(
    data: str, file: PreparedFile, objective: Objective, cluster: Cluster
) -> tuple[LabelledRows | BlockStore, Any]:
    """Return the rows to train on, and for rows in memory their encoded labels."""
    store = open_store(data, file)
    if store is not None:
        _check_store(store, data, objective, file.normalize)
        cluster.check_store()
        return store, None
    rows = read_labelled(
        data,
        file,
        min_df=file.min_df,
        dtype=objective.dtype,
        several=LOSSES[objective.loss].takes_sets,
        normalize=normalizing.chosen(file.normalize, objective.loss, objective.threshold),
    )
    if file.normalize is None and any(isinstance(step, UnitRows) for step in rows.chain):
        logger.info("scaling rows to length 1, which works best with this loss; use --no-normalize to turn it off")
    return rows, _encode(data, rows, objective.calibrate)


def _check_store(store: BlockStore, data: str, objective: Objective, normalize: bool | None) -> None:
    normalizing.check_store(store, normalize)
    if what := objective.needs_memory():
        raise InputError(
            f"{data}: {what} cannot train from a store; pass the file that the store was converted from, or train "
            "with --loss squared_hinge"
        )
    if objective.calibrate != "none":
        raise InputError(f"{data}: --calibrate cannot be used with a store; pass the file it was converted from")


def _encode(data: str, rows: LabelledRows, calibrate: str) -> Any:
    """Encode the labels, and check before the fit that the model can be saved after it."""
    if rows.classes is not None and calibrate != "none":
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


def _announce(rows: LabelledRows | BlockStore, objective: Objective, effort: Effort) -> None:
    about = f"{output.counted(rows.n_rows, 'row')} with {output.counted(rows.n_features, 'feature')}"
    if (size := ranks.peers().size) > 1:
        about += f", {size} ranks with {effort.n_jobs} thread{'s' * (effort.n_jobs != 1)} each"
    logger.info("training %s on %s", LOSSES[objective.loss].title, about)


def _examples(rows: LabelledRows | BlockStore) -> dict[str, Any]:
    if isinstance(rows, BlockStore):
        return {"X": rows, "y": None}
    return {"X": rows.X, "y": rows.labels, "provenance": Provenance(rows.chain, rows.reading, rows.classes)}


def _save(done: Fit, destination: Destination, rows: LabelledRows | BlockStore, codes: Any, calibrate: str) -> None:
    model = done.estimator.model_
    # Save first, so that a second Ctrl-C cannot lose the model.
    destination.save(model)
    if isinstance(rows, LabelledRows) and calibrate != "none" and not _interrupted(done):
        logger.info("fitting probabilities on held-out rows")
        model.settings["probability"] = fit_rule(done.estimator, rows.X, codes, calibrate)
        destination.save(model)


def _interrupted(done: Fit) -> bool:
    return done.estimator.certificate_.exit_reason == "interrupted"


def _on_training_rows(
    done: Fit, rows: LabelledRows | BlockStore, codes: Any, jobs: int | None
) -> tuple[float | None, float | None]:
    """Return the training error and, for sets of labels, the precision at 1; None for what was not measured."""
    model = done.estimator.model_
    if _interrupted(done):  # do not make the user wait after Ctrl-C
        return None, None
    if isinstance(rows, BlockStore):
        return (None if rows.manifest.multilabel else 1 - done.estimator.score(rows)), None
    best = ranks.topk(model, check_matrix(rows.X), 1, jobs=jobs)
    if model.multilabel:
        return None, precisions_at_k(rows.labels, best, [1])[0]
    return error_rate(codes, best[:, 0]), None
