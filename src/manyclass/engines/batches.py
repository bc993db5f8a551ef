"""Labels trained some at a time: what has become of a batch is taken over before the next one is begun.

Binary problems share nothing but the rows, which are laid out once. So a model need not be in memory as a whole, or
not at full length, and what is done stays done when the fit is stopped.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from .._native import core
from ..peers import peers_of
from ..problems import Binary, SparseBinary
from ..solvers import Certificate, ClassBlocks, TrainingSet
from ..solvers.label_blocks import RESULT
from .choice import make_solver, with_threads
from .options import FitOptions
from .training import Result, message_of, run

# Why labels end that are trained as they were to be; all other ends are stops.
COMPLETE = ("converged", "max_iter")
# From the labels [begin, end) and their result, whose weights are theirs alone, to what is kept of these weights.
Keep = Callable[[int, int, Result], Any]


class Done(NamedTuple):
    """Labels from `begin` to before `end` that another fit has trained, as its result said."""

    begin: int
    end: int
    certificate: Certificate
    n_iter: int


def run_batches(
    problem: Binary,
    data: TrainingSet,
    options: FitOptions,
    *,
    labels_at_once: int,
    keep: Keep,
    go_on: str | None,
    done: Sequence[Done] = (),
) -> Result:
    """Train batch after batch.

    Parameters
    ----------
    problem, data, options
        As for `run`. The time limit is that of all batches together.
    labels_at_once : int
        About so many.
    keep : callable
        Given each batch in its turn, gives the weights that the result is to have of it, or None for none at all.
        The last batch may have been stopped: its certificate says so.
    go_on : str, optional
        The parameter with which a fit that was interrupted resumes, if any.
    done : sequence of Done
        Labels that need not be trained. Batches do not cross these.

    Returns
    -------
    Result
        Of all labels; without weights if none were kept.
    """
    begun = time.perf_counter()
    peers = peers_of(options.engine)
    options = with_threads(options, peers)
    rows = make_solver(problem, data, options, interrupt=core.Interrupt(), peers=peers)
    assert isinstance(rows, ClassBlocks)
    found: list[tuple[int, int, Result]] = []
    out_of_passes = any(one.certificate.exit_reason == "max_iter" for one in done)
    reason = "max_iter" if out_of_passes else "converged"
    batches = list(_batches(rows, labels_at_once, [(one.begin, one.end) for one in done]))
    for blocks in batches:
        left = options
        if options.time_limit is not None:
            seconds = options.time_limit - (time.perf_counter() - begun)
            if peers.gather(seconds <= 0)[0] and found:
                reason = "time_limit"
                break
            left = replace(options, time_limit=max(seconds, 1e-9))
        begin, end = rows.problems_of(blocks[0])[0], rows.problems_of(blocks[-1])[-1] + 1
        trained: list[tuple[ClassBlocks, Any]] = []

        def choose(interrupt: Any, blocks: Sequence[int] = blocks, made: list[Any] = trained) -> ClassBlocks:
            part = rows.sibling(interrupt, options.threads)
            part.choose_blocks(blocks)
            made.append((part, interrupt))
            return part

        result = run(problem, data, left, make=choose)
        (part, interrupt), *_ = trained
        heard = peers.gather(_asked_to_stop(interrupt, options, time.perf_counter() - begun))
        asked = next((why for why in heard if why is not None), None)
        result = _of_labels(_as_it_ended(result, part, asked, options), begin, end)
        found.append((begin, end, replace(result, weights=keep(begin, end, result))))
        if result.certificate.exit_reason != "converged":
            reason = result.certificate.exit_reason
        if reason not in COMPLETE:
            break
        # Whoever asks for an end does not want another batch, even if this one has come to its own.
        if asked is not None and blocks is not batches[-1]:
            reason = asked
            break
    joined = _join(problem, data, found, done, time.perf_counter() - begun)
    total = joined.certificate
    message = message_of(total, reason, options, go_on, data)
    # Where labels were not reached and no weights are kept there is no model to warn of.
    if reason != "converged" and peers.rank == 0 and (reason in COMPLETE or joined.weights is not None):
        warnings.warn(message, ConvergenceWarning, stacklevel=6)
    return replace(joined, certificate=replace(total, exit_reason=reason, message=message))


def _batches(rows: ClassBlocks, labels: int, done: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    batch: list[int] = []
    many = 0
    for block in range(rows.blocks):
        problems = rows.problems_of(block)
        is_done = any(begin <= problems[0] and problems[-1] < end for begin, end in done)
        if not is_done:
            batch.append(block)
            many += len(problems)
        if batch and (is_done or many >= labels):
            yield batch
            batch, many = [], 0
    if batch:
        yield batch


def _asked_to_stop(interrupt: Any, options: FitOptions, seconds: float) -> str | None:
    """Why no other batch is to begin, if so. A deadline that has passed is an interrupt as well."""
    if options.time_limit is not None and seconds >= options.time_limit:
        return "time_limit"
    return "interrupted" if interrupt.requested else None


def _as_it_ended(result: Result, part: ClassBlocks, asked: str | None, options: FitOptions) -> Result:
    """Go by the blocks of a batch that was asked to stop.

    Where all were out of passes before, it is complete. Where one was cut short it is not, even if their sum meets
    the rule: going on would end with other weights.
    """
    found = result.certificate
    if (found.exit_reason in COMPLETE) == part.complete():
        return result
    reason = "max_iter" if part.complete() else asked or "interrupted"
    message = message_of(found, reason, options, None)
    return replace(result, certificate=replace(found, exit_reason=reason, message=message))


def _of_labels(result: Result, begin: int, end: int) -> Result:
    """What a result says of the labels [begin, end), all others of which were not to be trained."""
    inside = (result.untrained >= begin) & (result.untrained < end)
    return replace(
        result,
        weights=result.weights[:, begin:end],
        untrained=result.untrained[inside] - begin,
        by_label=None if result.by_label is None else result.by_label[begin:end],
    )


def _join(
    problem: Binary, data: TrainingSet, found: list[tuple[int, int, Result]], done: Sequence[Done], seconds: float
) -> Result:
    results = [result for *_, result in found]
    certificates = [one.certificate for one in done] + [result.certificate for result in results]
    reached = np.zeros(data.n_classes, bool)  # by a batch of this fit or of one before
    for begin, end, *_ in [*done, *found]:
        reached[begin:end] = True
    untrained = ~reached
    by_label = np.full((data.n_classes, len(RESULT)), np.nan)
    for begin, end, result in found:
        untrained[begin:end][result.untrained] = True
        if result.by_label is not None:
            by_label[begin:end] = result.by_label
    # A label that no batch has reached has weights 0 and dual value 0.
    at_zero = int((~reached).sum()) * float(data.C.sum() * problem.loss_at(np.zeros(1))[0])
    return Result(
        weights=_side_by_side(found, data.n_classes),
        untrained=np.flatnonzero(untrained),
        certificate=Certificate(
            math.fsum([at_zero, *(certificate.primal for certificate in certificates)]),
            math.fsum(certificate.dual for certificate in certificates),
            max([1.0 * (at_zero > 0), *(certificate.violation for certificate in certificates)]),
        ),
        history=[line for result in results for line in result.history],
        times={"total": seconds} | _added_up([result.times for result in results], without="total"),
        memory=_largest([result.memory for result in results]),
        state=None,
        n_iter=max([1, *(one.n_iter for one in done), *(result.n_iter for result in results)]),
        by_label=by_label if isinstance(problem, SparseBinary) else None,
    )


def _side_by_side(found: list[tuple[int, int, Result]], n_classes: int) -> Any:
    """The weights that were kept, with nothing for labels that were not reached."""
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
