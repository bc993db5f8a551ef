"""Labels trained in batches, each of which can be stored before the next one starts.

Binary problems share only the rows, which are laid out once. So the model need not be in memory as a whole or at full
length, and finished labels stay finished if the fit is stopped.
"""

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from .._native import core
from ..peers import peers_of
from ..problems import Binary, SparseBinary
from ..solvers import Certificate, L2Blocks, TrainingSet
from ..solvers.elastic_net_blocks import RESULT
from .choice import make_solver, with_threads
from .fingerprint import fingerprint, refuse_different
from .options import FitOptions
from .training import Clock, Result, Surroundings, finish, interruptible, message_of

# Exit reasons of labels that were trained in full; all others mean that the fit was stopped.
COMPLETE = ("converged", "max_iter")


class Done(NamedTuple):
    """Labels from `begin` to before `end` that an earlier fit has trained, with its certificate."""

    begin: int
    end: int
    certificate: Certificate
    n_iter: int


class Batch(NamedTuple):
    """Labels from `begin` to before `end`, with their result."""

    begin: int
    end: int
    result: Result

    @property
    def complete(self) -> bool:
        """Whether all its labels were trained in full."""
        return self.result.certificate.exit_reason in COMPLETE


class BatchedFit:
    """A fit that trains its labels in batches.

    Iterate over `batches`, pass what is to be kept of each to `keep`, then call `result`. The time limit applies to
    all of them together. Batches do not cross labels that are already `done`.
    """

    def __init__(self, problem: Binary, data: TrainingSet, options: FitOptions, done: Sequence[Done] = ()):
        self._begin = time.perf_counter()
        self._problem, self._data, self._done = problem, data, done
        self._peers = peers_of(options.engine)
        self._options = options = with_threads(options, self._peers)
        if self._peers.size > 1:
            refuse_different(fingerprint(problem, data, options), self._peers)
        solver = make_solver(problem, data, options, interrupt=core.Interrupt(), peers=self._peers)
        assert isinstance(solver, L2Blocks)
        self._solver = solver
        self._kept: list[Batch] = []
        out_of_passes = any(one.certificate.exit_reason == "max_iter" for one in done)
        self._reason = "max_iter" if out_of_passes else "converged"

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._begin

    def batches(self, labels_at_once: int) -> Iterator[Batch]:
        """Train batches of about `labels_at_once` labels. The last one may have been stopped."""
        planned = list(self._plan(labels_at_once))
        for number, blocks in enumerate(planned):
            left = self._options
            if left.time_limit is not None:
                seconds = left.time_limit - self._seconds
                if self._peers.gather(seconds <= 0)[0] and number > 0:
                    self._reason = "time_limit"
                    return
                left = replace(left, time_limit=max(seconds, 1e-9))
            batch, asked = self._train(blocks, left)
            if batch.result.certificate.exit_reason != "converged":
                self._reason = batch.result.certificate.exit_reason
            yield batch
            if not batch.complete:
                return
            # A request to stop holds even if this batch ended by itself.
            if asked is not None and blocks is not planned[-1]:
                self._reason = asked
                return

    def _plan(self, labels_at_once: int) -> Iterator[list[int]]:
        batch: list[int] = []
        labels = 0
        for block in range(self._solver.blocks):
            problems = self._solver.problems_of(block)
            is_done = any(one.begin <= problems[0] and problems[-1] < one.end for one in self._done)
            if not is_done:
                batch.append(block)
                labels += len(problems)
            if batch and (is_done or labels >= labels_at_once):
                yield batch
                batch, labels = [], 0
        if batch:
            yield batch

    def _train(self, blocks: Sequence[int], options: FitOptions) -> tuple[Batch, str | None]:
        """Train some blocks; also return why no other batch should start, if so."""
        with interruptible(options, self._peers) as interrupt:
            part = self._solver.sibling(interrupt, options.threads)
            part.choose_blocks(blocks)
            around = Surroundings(Clock(), self._peers, interrupt, recorder=None, history=[])
            result = finish(part, self._data, options, around)
        heard = self._peers.gather(self._asked_to_stop(interrupt))
        asked = next((why for why in heard if why is not None), None)
        begin, end = part.problems_of(blocks[0])[0], part.problems_of(blocks[-1])[-1] + 1
        return Batch(begin, end, _of_labels(_as_it_ended(result, part, asked, options), begin, end)), asked

    def _asked_to_stop(self, interrupt: Any) -> str | None:
        """Return why no other batch should start, if so. Passing the deadline also requests the interrupt."""
        limit = self._options.time_limit
        if limit is not None and self._seconds >= limit:
            return "time_limit"
        return "interrupted" if interrupt.requested else None

    def keep(self, batch: Batch, weights: Any) -> None:
        """Keep the result of a batch with these weights, or without any if None."""
        self._kept.append(batch._replace(result=replace(batch.result, weights=weights)))

    def result(self, go_on: str | None) -> Result:
        """Join the batches that were kept, and warn if the fit did not converge.

        `go_on` is the parameter with which an interrupted fit resumes, if it can.
        """
        joined = _join(self._problem, self._data, self._kept, self._done, self._seconds)
        message = message_of(joined.certificate, self._reason, self._options, go_on, self._data)
        # If labels were not reached and no weights are kept, there is no model to warn about.
        usable = self._reason in COMPLETE or joined.weights is not None
        if self._reason != "converged" and self._peers.rank == 0 and usable:
            warnings.warn(message, ConvergenceWarning, stacklevel=6)
        return replace(joined, certificate=replace(joined.certificate, exit_reason=self._reason, message=message))


def _as_it_ended(result: Result, part: L2Blocks, asked: str | None, options: FitOptions) -> Result:
    """Correct the exit reason of a batch that was asked to stop, according to how its blocks ended.

    It is complete if all blocks were already out of passes. If one was cut short it is not, even if the sum meets the
    rule: resuming would end with other weights.
    """
    found = result.certificate
    if (found.exit_reason in COMPLETE) == part.complete():
        return result
    reason = "max_iter" if part.complete() else asked or "interrupted"
    message = message_of(found, reason, options, None)
    return replace(result, certificate=replace(found, exit_reason=reason, message=message))


def _of_labels(result: Result, begin: int, end: int) -> Result:
    """Restrict a result to the labels from `begin` to before `end`, the only ones trained."""
    inside = (result.untrained >= begin) & (result.untrained < end)
    return replace(
        result,
        weights=result.weights[:, begin:end],
        untrained=result.untrained[inside] - begin,
        by_label=None if result.by_label is None else result.by_label[begin:end],
    )


def _join(problem: Binary, data: TrainingSet, found: list[Batch], done: Sequence[Done], seconds: float) -> Result:
    results = [result for *_, result in found]
    certificates = [one.certificate for one in done] + [result.certificate for result in results]
    reached = np.zeros(data.n_classes, bool)  # by a batch of this fit or an earlier one
    for begin, end, *_ in [*done, *found]:
        reached[begin:end] = True
    untrained = ~reached
    by_label = np.full((data.n_classes, len(RESULT)), np.nan)
    for begin, end, result in found:
        untrained[begin:end][result.untrained] = True
        if result.by_label is not None:
            by_label[begin:end] = result.by_label
    # A label that no batch reached has weights 0 and dual value 0.
    at_zero = int((~reached).sum()) * float(data.C.sum() * problem.loss_at_zero(1))
    not_reached = Certificate(at_zero, 0.0, 1.0 * (at_zero > 0))
    return Result(
        weights=_side_by_side(found, data.n_classes),
        untrained=np.flatnonzero(untrained),
        certificate=Certificate.total([not_reached, *certificates]),
        history=[line for result in results for line in result.history],
        times={"total": seconds} | _added_up([result.times for result in results], without="total"),
        memory=_largest([result.memory for result in results]),
        state=None,
        n_iter=max([1, *(one.n_iter for one in done), *(result.n_iter for result in results)]),
        by_label=by_label if isinstance(problem, SparseBinary) else None,
    )


def _side_by_side(found: list[Batch], n_classes: int) -> Any:
    """Join the weights that were kept, with zeros for labels that were not reached."""
    parts: list[Any] = []
    reached = 0
    for begin, end, result in found:
        if result.weights is None:
            return None
        if begin > reached:
            parts.append(sp.csr_matrix((result.weights.shape[0], begin - reached), dtype=result.weights.dtype))
        parts.append(result.weights)
        reached = end
    if not parts:
        return None
    if reached < n_classes:
        parts.append(sp.csr_matrix((parts[0].shape[0], n_classes - reached), dtype=parts[0].dtype))
    return sp.hstack(parts, format="csr")


def _added_up(times: list[dict[str, float]], without: str) -> dict[str, float]:
    names = {name for one in times for name in one} - {without}
    return {name: math.fsum(one.get(name, 0.0) for one in times) for name in sorted(names)}


def _largest(memory: list[dict[str, int]]) -> dict[str, int]:
    return {name: max(one[name] for one in memory) for name in memory[0]} if memory else {}
