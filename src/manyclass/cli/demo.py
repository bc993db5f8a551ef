"""The command `manyclass demo`."""

import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..data import Chain, TextFeatures, encode_known, load_wordnet
from ..data.wordnet import WordNet
from ..metrics import error_rate, topk_error
from ..model import LinearModel, load_model, save_model
from ..problems import LOSSES
from . import output, ranks
from .fitting import Fit, fit
from .options import AsJson, Jobs, Quiet
from .output import ExitCode, InputError
from .replacing import check_model_file

logger = logging.getLogger("manyclass.cli")

QUESTIONS = (
    "a small domesticated feline that catches mice",
    "a building where sick people are treated",
    "someone who writes poems",
    "a red wine from Italy",
    "to walk slowly and without aim",
)
BEST = 5


@output.answers_errors
@ranks.alone
def demo(
    ask: Annotated[str | None, typer.Option(metavar="TEXT", help="Only classify this definition.")] = None,
    min_members: Annotated[int, typer.Option(min=2, help="Use classes with at least this many definitions.")] = 5,
    model: Annotated[Path, typer.Option("--model", "-m", help="File for the Weston-Watkins model.")] = Path(
        "wordnet-ww.manyclass"
    ),
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train four SVMs on WordNet. Then classify definitions in plain English.

    Each row is the definition of a noun or verb; its class, one of 4,796, is the concept it is a kind of. A tenth of
    the definitions is held out to measure test errors. Weston-Watkins and Crammer-Singer train all classes together,
    the other two each class against the rest.

    \b
    Examples:
      manyclass demo
      manyclass demo --ask "a small boat moved with oars"
      manyclass demo --min-members 50 --json    # fewer classes, in seconds
    """
    if ask is not None:
        _answer_one(ask, model, min_members, jobs=jobs, quiet=quiet, as_json=as_json)
        return
    check_model_file(model, force=None, option="--model")
    wordnet = load_wordnet(min_members)
    results: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    text, X, X_test = _features(wordnet)
    logger.info(
        "WordNet: %s definitions, %s words, %s classes; testing on %s more",
        *map(output.count, (*X.shape, wordnet.class_names.size, X_test.shape[0])),
    )
    codes = encode_known(wordnet.labels_test, wordnet.class_names)
    for loss in ("ww", "cs", "hinge", "squared_hinge"):
        done = _fit(loss, X, wordnet, jobs=jobs, quiet=quiet)
        results.append(_measure(loss, done, X_test, codes, jobs))
        if loss == "ww":
            _keep(done, text, model, min_members)
            answers = [_answer(done.estimator.model_, question) for question in QUESTIONS]
        del done  # so that the peak memory of the next fit does not include this model
    report = {"results": results, "model": str(model), "answers": answers}
    output.show_report(report, _show, as_json=as_json)


def _features(wordnet: WordNet) -> tuple[TextFeatures, Any, Any]:
    text = TextFeatures()
    X = text.fit_transform(wordnet.texts_train)
    return text, X, text.transform(wordnet.texts_test)


def _fit(loss: str, X: Any, wordnet: WordNet, *, jobs: int | None, quiet: bool) -> Fit:
    logger.info("training %s", LOSSES[loss].title)
    done = fit(loss, X, wordnet.labels_train, progress=not quiet, n_jobs=jobs)
    certificate = done.estimator.certificate_
    if certificate.exit_reason == "interrupted":  # do not save a model that later questions would use
        output.fail(f"interrupted while training {LOSSES[loss].title}; run the demo again", ExitCode.INTERRUPTED)
    logger.info("%s in %s", certificate.message, output.seconds(done.seconds))
    return done


def _keep(done: Fit, text: TextFeatures, path: Path, min_members: int) -> None:
    trained: LinearModel = done.estimator.model_
    trained.chain = Chain([text])
    trained.settings |= {"data": "wordnet", "min_members": min_members}
    save_model(trained, path)


def _measure(loss: str, done: Fit, X_test: Any, codes: np.ndarray, jobs: int | None) -> dict[str, Any]:
    model, certificate = done.estimator.model_, done.estimator.certificate_
    best, _ = model.topk(X_test, BEST, n_jobs=jobs)
    return {
        "loss": loss,
        "title": LOSSES[loss].title,
        "seconds": done.seconds,
        "epochs": int(done.estimator.n_iter_[0]),
        **{name: getattr(certificate, name) for name in ("primal", "dual", "gap", "violation", "exit_reason")},
        "test_error": error_rate(codes, best[:, 0]),
        "top5_error": topk_error(codes, best),
        "density": model.density,
        "peak_memory": done.peak_memory,
        "peak_is_of_this_fit": done.peak_is_of_this_fit,
    }


# ---- Asking


def _answer(model: LinearModel, question: str) -> dict[str, Any]:
    X = model.prepare([question])
    if X.nnz == 0:
        raise InputError(f"no word of {question!r} occurs in the definitions of WordNet; use other words")
    codes, scores = model.topk(X, min(BEST, model.n_classes))
    return {"definition": question, "classes": model.classes[codes[0]].tolist(), "scores": scores[0].tolist()}


def _answer_one(question: str, path: Path, min_members: int, *, jobs: int | None, quiet: bool, as_json: bool) -> None:
    if path.exists():
        model = load_model(path)
        if not model.chain.takes_text:
            raise InputError(f"{path} is a model that does not take texts; choose another file with --model")
    else:
        logger.info("%s does not exist yet: training it first", path)
        wordnet = load_wordnet(min_members)
        text, X, _ = _features(wordnet)
        done = _fit("ww", X, wordnet, jobs=jobs, quiet=quiet)
        _keep(done, text, path, min_members)
        model = done.estimator.model_
    output.show_report(_answer(model, question), _show_answer, as_json=as_json)


def _show_answer(answer: dict[str, Any]) -> None:
    for name, score in zip(answer["classes"], answer["scores"], strict=True):
        typer.echo(f"{score:7.3f}  {name}" if sys.stdout.isatty() else f"{name}\t{score:.3f}")


# ---- Showing


def _show(report: dict[str, Any]) -> None:
    results = report["results"]
    columns = ["SVM", "time", "passes", "primal", "dual", "gap", "violation"]
    columns += ["test error", "top-5 error", "density", "peak memory"]
    rows = [
        [
            result["title"],
            output.seconds(result["seconds"]),
            output.number(result["epochs"]),
            *(output.number(result[name]) for name in ("primal", "dual")),
            *(f"{result[name]:.2g}" for name in ("gap", "violation")),
            *(output.percent(result[name]) for name in ("test_error", "top5_error", "density")),
            output.size(result["peak_memory"]),
        ]
        for result in results
    ]
    output.show_table("WordNet definitions by hypernym", columns, rows)
    if not all(result["peak_is_of_this_fit"] for result in results):
        typer.echo("peak memory is that of the process so far; this system cannot measure it per fit", err=True)
    rows = [[answer["definition"], ", ".join(answer["classes"])] for answer in report["answers"]]
    output.show_table("Weston-Watkins answers", ("definition", "five most likely classes"), rows)
    typer.echo(f'The model is in {report["model"]}; try your own: manyclass demo --ask "..."', err=True)
