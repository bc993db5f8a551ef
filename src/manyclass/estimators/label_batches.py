"""One-vs-rest with so many labels that they are trained, and written, in batches."""

import hashlib
import json
import os
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..data import BlockStore
from ..data.steps import chain_fingerprint
from ..engines import COMPLETE, Done, FitOptions, Result, StoredRows, fingerprint, peers_of, run_batches
from ..model import LinearModel, ShardWriter, load_model
from ..problems import Binary, Problem
from ..solvers import Certificate, TrainingSet
from .linear_classifier import LinearClassifier
from .trained_model import certificate_values

# Labels of a shard, at least; and shards, at most.
LABELS_A_SHARD = 1024
MOST_SHARDS = 256

SHARDS = """shards : str or path-like, optional
        Folder in which the model is written while it is trained, some labels at a time, in place of holding it in
        memory: `model_` reads it from there. With `resume=True` what a fit that was stopped has left is kept.
        `stop`, `tol` and `max_iter`, which may be others than those of a checkpoint, must be the same here."""


class UnfinishedFitError(RuntimeError):
    """A fit with shards that was stopped: the folder is no model yet.

    Attributes
    ----------
    exit_reason : str
        As certificates have it.
    done, labels : int
        How many labels are in the folder, and how many there are.
    """

    def __init__(self, message: str, exit_reason: str, done: int, labels: int):
        super().__init__(message)
        self.exit_reason, self.done, self.labels = exit_reason, done, labels


class LabelBatches(LinearClassifier):
    """What estimators have in common that can train their labels in batches."""

    shards: str | os.PathLike[str] | None
    _one_vs_rest: ClassVar[bool] = True
    _folders: ClassVar[str] = "checkpoint=... or shards=..."

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearClassifier._parameter_constraints,
        "shards": [None, str, os.PathLike],
    }

    def _labels_at_once(self, data: TrainingSet) -> int | None:
        """How many labels are trained at a time; None for all."""
        return None if self.shards is None else max(LABELS_A_SHARD, -(-data.n_classes // MOST_SHARDS))

    def _kept(self, weights: Any) -> Any:
        """What the model keeps of the weights of some labels; the last feature may be the constant one."""
        return weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.shards is None:
            return
        if self.checkpoint is not None:
            raise ValueError("a fit with shards needs no checkpoint: what is written stays; leave one of them out")
        if self.warm_start:
            raise ValueError("warm_start keeps all dual variables in memory, shards keep none; choose one of them")
        if self.engine == "joblib":
            raise ValueError("shards are written by engine='memory' or 'mpi', not by 'joblib'")

    def _stored_rows(self, store: BlockStore, sample_weight: Any) -> StoredRows:
        raise ValueError(
            f"{type(self).__name__} trains rows in memory; train a store with OneVsRestSVC, or use store.load()"
        )

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
                f"{self.shards} holds shards of another fit (other rows, labels or parameters); go on with what it "
                "was begun with, or name another folder"
            )
        if done and not self.resume:
            raise ValueError(
                f"{self.shards} holds shards of this fit; pass resume=True to go on from them, or remove the folder"
            )

        def keep(begin: int, end: int, result: Result) -> Any:
            weights = self._kept(result.weights)
            if writer is None:
                return weights
            if result.certificate.exit_reason in COMPLETE and peers_of(self.engine).rank == 0:
                part = super(LabelBatches, self)._make_model(
                    replace(result, weights=weights), classes[begin:end], options.seed
                )
                writer.add(begin, replace(part, label_counts=counts[begin:end]))
            return None

        result = run_batches(
            problem,
            data,
            options,
            labels_at_once=at_once,
            keep=keep,
            go_on="resume" if writer is not None else None,
            done=[_as_done(*one) for one in done],
        )
        self._shard_writer = writer
        return result

    def _open_shards(
        self, problem: Problem, data: TrainingSet, options: FitOptions, classes: np.ndarray
    ) -> ShardWriter:
        same = fingerprint(problem, data, options)
        assert self.shards is not None
        settings = self._settings(options.seed) | {"multilabel": data.Y is not None, "n_rows": len(data.C)}
        del settings["time_limit"]  # which another run that goes on from these may have changed
        names = hashlib.blake2b("\n".join(map(repr, classes.tolist())).encode(), digest_size=16).hexdigest()
        rule = {"stop": self.stop, "tol": self.tol, "max_iter": self.max_iter}
        # Rows that a step has left as they were are the same, but models with and without it are not.
        steps = chain_fingerprint(self._provenance.chain)
        told = json.dumps(same | rule | {"names of labels": names, "steps": steps}, sort_keys=True)
        return ShardWriter(
            self.shards, data.n_classes, data.X.n_features, settings, chain=self._provenance.chain, data=told
        )

    def _done(self, writer: ShardWriter) -> list[tuple[int, int, dict[str, Any]]]:
        """What the folder holds, as all ranks see it."""
        everyone = peers_of(self.engine).gather(writer.done())
        ranges = [[(begin, end) for begin, end, _ in found] for found in everyone]
        labels = [sum(end - begin for begin, end in found) for found in ranges]
        for rank, found in enumerate(ranges):
            if found != ranges[0]:
                raise ValueError(
                    f"rank {rank} sees shards of {labels[rank]} labels in {self.shards}, but rank 0 of {labels[0]}; "
                    "name a folder that all hosts share"
                )
        return everyone[0]

    def _make_model(self, result: Result, classes: np.ndarray, seed: int) -> LinearModel:
        if result.weights is not None:
            return super()._make_model(result, classes, seed)
        writer = self._shard_writer
        assert writer is not None and self.shards is not None
        reason = result.certificate.exit_reason
        if reason not in COMPLETE:
            there = peers_of(self.engine).gather(writer.done())[0]  # as the one sees it that has written
            done = sum(end - begin for begin, end, _ in there)
            why = "interrupted" if reason == "interrupted" else f"stopped after time_limit={self.time_limit} seconds"
            raise UnfinishedFitError(
                f"{why} before all labels were trained; {self.shards} holds {done} of {classes.size} labels: fit "
                "again with resume=True to go on",
                reason,
                done,
                classes.size,
            )
        if peers_of(self.engine).rank == 0:
            writer.finish(certificate_values(result))
        peers_of(self.engine).gather(None)  # nobody reads before it is there
        return load_model(self.shards)


def _as_done(begin: int, end: int, stored: dict[str, Any]) -> Done:
    certificate = Certificate(stored["primal"], stored["dual"], stored["violation"], stored["exit_reason"])
    return Done(begin, end, certificate, stored["epochs"])
