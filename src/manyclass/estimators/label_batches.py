"""One-vs-rest for large numbers of labels, trained and written in batches."""

import hashlib
import json
import os
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..data.steps import chain_fingerprint
from ..engines import COMPLETE, BatchedFit, Done, FitOptions, Result, fingerprint
from ..model import LinearModel, ShardWriter, load_model
from ..peers import peers_of
from ..problems import Binary, Problem
from ..solvers import Certificate, TrainingSet
from .linear_classifier import LinearClassifier
from .trained_model import certificate_values

# Minimum number of labels per shard, and maximum number of shards.
LABELS_A_SHARD = 1024
MOST_SHARDS = 256

SHARDS = """shards : str or path-like, optional
        Folder to which the model is written during training, one batch of labels at a time, instead of being held in
        memory. `model_` reads it from there. With `resume=True`, the shards of a stopped fit are reused; unlike for a
        checkpoint, `stop`, `tol` and `max_iter` must then be unchanged."""


class UnfinishedFitError(RuntimeError):
    """A fit with shards was stopped, so the folder does not hold a complete model yet.

    Attributes
    ----------
    exit_reason : str
        Why the fit stopped, as in `Certificate.exit_reason`.
    done, labels : int
        Number of labels in the folder, and total number of labels.
    """

    def __init__(self, message: str, exit_reason: str, done: int, labels: int):
        super().__init__(message)
        self.exit_reason, self.done, self.labels = exit_reason, done, labels


class LabelBatches(LinearClassifier):
    """Base class of estimators that can train their labels in batches."""

    shards: str | os.PathLike[str] | None
    _one_vs_rest: ClassVar[bool] = True
    _folders: ClassVar[str] = "checkpoint=... or shards=..."

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "shards": [None, str, os.PathLike],
    }

    def _labels_at_once(self, data: TrainingSet) -> int | None:
        """Return the number of labels per batch, or None to train all at once."""
        return None if self.shards is None else max(LABELS_A_SHARD, -(-data.n_classes // MOST_SHARDS))

    def _pruned(self, weights: Any) -> Any:
        """Return the weights of a batch that the model keeps. The last feature may be the constant one."""
        return weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.shards is None:
            return
        if self.checkpoint is not None:
            raise ValueError("shards can be resumed without a checkpoint; leave out either shards or checkpoint")
        if self.warm_start:
            raise ValueError("warm_start needs all dual variables, but shards keep none; leave one of them out")
        if self.engine == "joblib":
            raise ValueError("engine='joblib' cannot write shards; use engine='memory' or 'mpi'")

    def _for_codes(self, classes: np.ndarray) -> LinearClassifier:
        return super()._for_codes(classes).set_params(shards=None)

    def _goes_on(self) -> bool:
        return self.shards is not None or super()._goes_on()

    def _run(self, problem: Problem, data: Any, options: FitOptions, state: Any, classes: np.ndarray) -> Result:
        at_once = self._labels_at_once(data) if isinstance(data, TrainingSet) else None
        if at_once is None:
            return super()._run(problem, data, options, state, classes)
        assert isinstance(problem, Binary)
        writer = None if self.shards is None else self._open_shards(problem, data, options, classes)
        done = self._done(writer) if writer is not None else []
        counts = np.bincount(data.labels_by_row()[1], minlength=data.n_classes)
        if self.resume and not done and writer is not None and writer.others():
            raise ValueError(
                f"{self.shards} holds shards of a different fit (other rows, labels or parameters); resume with the "
                "original ones, or use another folder"
            )
        if done and not self.resume:
            raise ValueError(
                f"{self.shards} already holds shards of this fit; pass resume=True to use them, or remove the folder"
            )

        fit = BatchedFit(problem, data, options, [_as_done(*one) for one in done])
        for batch in fit.batches(at_once):
            weights = self._pruned(batch.result.weights)
            if writer is not None and batch.complete and peers_of(self.engine).rank == 0:
                labels = slice(batch.begin, batch.end)
                part = super()._make_model(replace(batch.result, weights=weights), classes[labels], options.seed)
                writer.add(batch.begin, replace(part, label_counts=counts[labels]))
            fit.keep(batch, weights if writer is None else None)
        self._shard_writer = writer
        return fit.result("resume" if writer is not None else None)

    def _open_shards(
        self, problem: Problem, data: TrainingSet, options: FitOptions, classes: np.ndarray
    ) -> ShardWriter:
        same = fingerprint(problem, data, options)
        assert self.shards is not None
        settings = self._settings(options.seed) | {"multilabel": data.Y is not None, "n_rows": len(data.C)}
        del settings["time_limit"]  # may differ when the fit is resumed
        names = hashlib.blake2b("\n".join(map(repr, classes.tolist())).encode(), digest_size=16).hexdigest()
        rule = {"stop": self.stop, "tol": self.tol, "max_iter": self.max_iter}
        # A step that leaves the rows unchanged still changes the model, so the steps are part of the fingerprint.
        steps = chain_fingerprint(self._provenance.chain)
        told = json.dumps(same | rule | {"names of labels": names, "steps": steps}, sort_keys=True)
        return ShardWriter(
            self.shards, data.n_classes, data.X.n_features, settings, chain=self._provenance.chain, data=told
        )

    def _done(self, writer: ShardWriter) -> list[tuple[int, int, dict[str, Any]]]:
        """Return the finished shards, after checking that all ranks see the same ones."""
        everyone = peers_of(self.engine).gather(writer.done())
        ranges = [[(begin, end) for begin, end, _ in found] for found in everyone]
        labels = [sum(end - begin for begin, end in found) for found in ranges]
        for rank, found in enumerate(ranges):
            if found != ranges[0]:
                raise ValueError(
                    f"rank {rank} sees shards of {labels[rank]} labels in {self.shards}, but rank 0 sees "
                    f"{labels[0]}; use a folder that all hosts share"
                )
        return everyone[0]

    def _make_model(self, result: Result, classes: np.ndarray, seed: int) -> LinearModel:
        if result.weights is not None:
            return super()._make_model(result, classes, seed)
        writer = self._shard_writer
        assert writer is not None and self.shards is not None
        reason = result.certificate.exit_reason
        if reason not in COMPLETE:
            there = peers_of(self.engine).gather(writer.done())[0]  # as seen by rank 0, which writes the shards
            done = sum(end - begin for begin, end, _ in there)
            why = "interrupted" if reason == "interrupted" else f"stopped after time_limit={self.time_limit} seconds"
            raise UnfinishedFitError(
                f"{why} before all labels were trained; {self.shards} holds {done} of {classes.size} labels. Fit "
                "again with resume=True to continue",
                reason,
                done,
                classes.size,
            )
        if peers_of(self.engine).rank == 0:
            writer.finish(certificate_values(result))
        peers_of(self.engine).gather(None)  # wait until rank 0 has written it
        return load_model(self.shards)


def _as_done(begin: int, end: int, stored: dict[str, Any]) -> Done:
    certificate = Certificate(stored["primal"], stored["dual"], stored["violation"], stored["exit_reason"])
    return Done(begin, end, certificate, stored["epochs"])
