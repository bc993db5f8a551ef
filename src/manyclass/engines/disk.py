"""Training from a store: blocks in a new random order each pass, the next batch read while this one is solved."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data.sizes import show_size
from ..problems import Problem
from ..solvers import (
    BinaryStream,
    Certificate,
    CoupledStream,
    EnclosingBallStream,
    PegasosStream,
    Progress,
    RowBlock,
    Solver,
    StopRule,
    Stream,
    StreamShape,
    longest_row,
)
from .disk_engine import DiskJob
from .disk_memory import Sizes, divide_memory, rare_rows
from .dual_store import DualStore, variables_of_rows
from .stored_rows import Batch, BlockReader, StoredRows, folds_of
from .streamed_weights import StreamedWeights, give_back

# A pass is expected to be the last if its gap is likely to be at most this multiple of the tolerance.
LIKELY = 1.5
# With rounds="auto".
MOST_ROUNDS = 10


class DiskFits:
    """Fits of one loss on the rows of a store, read once for all of them; each has its own dual variables.

    With `folds`, fit f leaves out the rows of fold f; without, there is a single fit on all rows.
    """

    def __init__(self, job: DiskJob, variables: Sequence[DualStore], folds: int | None = None):
        self._folds, self._variables = folds, variables
        self._dtype, self._seed = job.dtype, job.options.seed
        # Neither the fits of folds nor those of ranges of classes build the model.
        self._makes_model = folds is None and job.data.classes is None
        self._shape = job.data.shape(rare_rows(job, len(variables), model=self._makes_model))
        self._fits = [make_stream(job, self._shape) for _ in variables]
        self._names = job.data.block_names
        self._pass = 0
        self._running: Generator[Batch] | None = None
        self.start(job)

    def start(self, job: DiskJob) -> None:
        """Start to train, or continue on the same rows with other penalties."""
        data = job.data
        self._job, self._data = job, data
        longest = longest_row(job.problem, data.n_classes, *data.penalty_bounds(), self._dtype)
        self._reader = BlockReader(data, self._shape, self._dtype, longest)
        self._sizes = Sizes(job, self._shape, len(self._variables))
        self._room = divide_memory(self._sizes, model=self._makes_model)
        for variables in self._variables:
            variables.room = self._room.variables // len(self._variables)
        self._rounds = job.engine.first_rounds(self._room.blocks_per_batch / data.store.n_blocks)
        self._from_variables = any(variables.holds(self._names) for variables in self._variables)
        self._under_way = list(range(len(self._fits)))  # fits that have not met the rule
        self.total_C = np.nan  # sum of the penalties of all rows, found by the last certificate
        self._gaps = {f: (np.nan, np.nan) for f in self._under_way}  # estimated by the last two passes
        self._exact: dict[int, Any] = {}  # weights that the current pass adds up

    # ---- Passes

    def start_from_variables(self) -> bool:
        """Compute the weights of dual variables from an earlier fit; return whether there are any."""
        found, self._from_variables = self._from_variables, False
        if found:
            self._set_weights(self._under_way, project=True)
        return found

    def advance(self, rule: StopRule) -> bool:
        """Visit the next batch; return whether that ends a pass."""
        self.start_from_variables()
        if self._running is None:
            K = self._shape.n_classes
            self._exact = self._new_exact(self._under_way, 0, K) if self._may_be_last(rule) else {}
            order = self._order_of_blocks()
            self._running = self._reader.batches(order.tolist(), self._room.blocks_per_batch)
            self._left = order.size
            self._waited = self._worked = 0.0
        begin = time.perf_counter()
        batch = next(self._running)
        read = time.perf_counter()
        for f in self._under_way:
            with self._loaded(f, batch) as fit:
                fit.visit(rule, self._rounds, self._pass)
                self._keep(f, batch)
                if f in self._exact:
                    fit.add_to(self._exact[f])
        self._waited += read - begin
        self._worked += time.perf_counter() - read
        self._left -= len(batch.blocks)
        if self._left > 0:
            self._follow_lists(pass_ended=False)
            return False
        self._running = None
        self._pass += 1
        for f in self._under_way:
            self._fits[f].end_pass(rule)
            seen = self._fits[f].progress
            self._gaps[f] = self._gaps[f][1], Certificate(seen.primal, seen.dual, seen.violation).gap
        if self._job.engine.rounds == "auto":
            self._choose_rounds()
        self._follow_lists(pass_ended=not self._exact)
        return True

    def _may_be_last(self, rule: StopRule) -> bool:
        """Whether the next pass will probably be the last, and there is room to add up exact weights during it.

        The certificate then does not have to read the blocks again for them.
        """
        if rule.stop != "gap" or self._classes_at_once(len(self._under_way)) < self._shape.n_classes:
            return False
        last_two = [self._gaps[f] for f in self._under_way]
        expected = [last * last / before if before > 0 else np.inf for before, last in last_two]
        return all(gap <= LIKELY * rule.tol for gap in expected)

    def _order_of_blocks(self) -> np.ndarray:
        return np.random.default_rng([self._seed, self._pass]).permutation(self._data.store.n_blocks)

    def _choose_rounds(self) -> None:
        """Choose as many rounds as fit into the time of the last pass, including waiting."""
        assert isinstance(self._rounds, int)
        per_round = self._worked / self._rounds
        self._rounds = int(np.clip((self._waited + self._worked) // max(per_round, 1e-9), 1, MOST_ROUNDS))

    def _rows_of(self, f: int, batch: Batch) -> RowBlock:
        if self._folds is None:
            return batch.rows
        C = batch.rows.C
        return replace(batch.rows, C=C * (self._folds_of(batch) != f).astype(C.dtype))

    def _folds_of(self, batch: Batch) -> np.ndarray:
        assert self._folds is not None
        return folds_of(np.concatenate(batch.ids), self._folds, self._seed)

    @contextmanager
    def _loaded(self, f: int, batch: Batch, *, project: bool = False) -> Iterator[Stream]:
        fit, parts = self._fits[f], []
        for number, ids in zip(batch.blocks, batch.ids, strict=True):
            stored = self._variables[f].get(self._names[number])
            parts.append(None if stored is None else variables_of_rows(stored, ids, fit.only_rows))
        fit.load(self._rows_of(f, batch), parts, project=project)
        try:
            yield fit
        finally:
            fit.unload()

    def _keep(self, f: int, batch: Batch) -> None:
        for number, ids, part in zip(batch.blocks, batch.ids, self._fits[f].variables(), strict=True):
            self._variables[f].put(self._names[number], ids, part)

    def _batches(self) -> Iterator[Batch]:
        """Read all blocks in order."""
        if self._running is not None:  # a pass was interrupted
            self._running.close()
            self._running = None
        blocks = range(self._data.store.n_blocks)
        with closing(self._reader.batches(blocks, self._room.blocks_per_batch)) as batches:
            yield from batches

    # ---- Certificate and model

    def _set_weights(self, fits: Sequence[int], *, project: bool = False) -> None:
        """Set the weights to those of the dual variables, in float64, as many classes at a time as fit in memory."""
        at_once = self._classes_at_once(len(fits))
        for f in fits:
            self._fits[f].begin_certificate()
        for low in range(0, self._shape.n_classes, at_once):
            exact = self._new_exact(fits, low, at_once)
            for batch in self._batches():
                for f in fits:
                    with self._loaded(f, batch, project=project) as fit:
                        if project:
                            self._keep(f, batch)
                        fit.add_to(exact[f])
            for f in fits:
                self._fits[f].set_weights(exact[f])
            project = False

    def _classes_at_once(self, fits: int) -> int:
        """Return the number of classes for which this many fits can hold float64 weights."""
        self._sizes.listed = max((fit.listed for fit in self._fits), default=0) or self._sizes.listed
        return self._sizes.exact_classes(self._room.exact * len(self._fits) // fits)

    def _new_exact(self, fits: Sequence[int], low: int, at_once: int) -> dict[int, Any]:
        """Return empty float64 weights of at most `at_once` classes, starting from class `low`."""
        K, places = self._shape.n_classes, self._shape.places
        high = min(K, low + at_once)
        return {f: native(core, "ExactWeights", self._dtype)(places.heads, low, high, K, places.tails) for f in fits}

    def _follow_lists(self, *, pass_ended: bool) -> None:
        """Give the lists of weights the room they need by moving dual variables to files.

        Recomputing all weights removes those that are no longer used from the lists.
        """
        if self._shape.places.tails == 0:
            return
        lists = self._list_bytes()
        if pass_ended and lists > self._room.lists + self._room.variables // 2:
            self._set_weights(self._under_way)
            lists = self._list_bytes()
        left = self._room.lists + self._room.variables - lists
        if left < 0:
            limit = self._job.limit
            raise ValueError(
                f"{show_size(limit)} of memory is not enough: the weights of rare features have grown to "
                f"{show_size(lists)}, more than estimated; give the fit {show_size(limit - 2 * left)} or more"
            )
        for variables in self._variables:
            variables.room = left // len(self._variables)

    def _list_bytes(self) -> int:
        return self._sizes.lists(max(fit.listed for fit in self._fits))

    def certificates(self, rule: StopRule) -> dict[int, Certificate]:
        """Certify the fits that have not met the rule; those that meet it now are not trained further."""
        found = self.certify(self._under_way, rule)
        self._under_way = [f for f in found if not rule.met(found[f])]
        return found

    def certify(self, chosen: Sequence[int], rule: StopRule) -> dict[int, Certificate]:
        """Certify these fits."""
        self._from_variables = False
        if self._running is None and self._exact:  # added up by the last pass
            for f in chosen:
                self._fits[f].begin_certificate()
                self._fits[f].set_weights(self._exact[f])
            self._exact = {}
        else:
            self._set_weights(chosen, project=any(self._fits[f].unsettled for f in chosen))
        has_singles = bool((self._data.store.frequencies == 1).any())
        self._singles: list[tuple[np.ndarray, ...]] = []
        self.total_C = 0.0
        for batch in self._batches():
            self.total_C += float(batch.rows.C.sum(dtype=np.float64))
            for f in chosen:
                with self._loaded(f, batch) as fit:
                    fit.measure()
                    if has_singles and self._folds is None:
                        self._singles.append(fit.single_weights())
        for f in chosen:
            self._variables[f].flush()
        return {f: self._fits[f].certificate(rule) for f in chosen}

    def progress(self) -> dict[int, Progress]:
        """Return the progress of the fits that have not met the rule."""
        return {f: self._fits[f].progress for f in self._under_way}

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Return the weights `(features, K)` of a single fit, as certified last."""
        model = StreamedWeights(self._shape, self._dtype)
        self._reader.forget_spares()
        give_back()
        self.add_weights(model, 0)
        return model.assemble()

    def add_weights(self, model: StreamedWeights, first: int) -> None:
        """Add these weights to a model, starting at class `first` of the model."""
        singles, self._singles = self._singles, []
        model.add(self._fits[0], singles, (first, first + self._shape.n_classes))

    def memory(self) -> dict[str, int]:
        """Return the bytes of blocks, weights and dual variables in memory."""
        return {
            "data": self._room.blocks,
            "weights": self._fits[0].weight_bytes + self._room.exact,
            "dual_variables": self._variables[0].nbytes,
        }

    def held_out_accuracies(self) -> np.ndarray:
        """Return the accuracy of each fit on the rows it left out."""
        right, rows = np.zeros((2, len(self._fits)))
        for batch in self._batches():
            fold = self._folds_of(batch)
            for f, fit in enumerate(self._fits):
                fit.load(self._rows_of(f, batch), [None] * len(batch.blocks))
                mine = fold == f
                right[f] += np.count_nonzero(fit.best_classes()[mine] == batch.rows.labels[mine])
                fit.unload()
                rows[f] += np.count_nonzero(mine)
        return right / np.maximum(rows, 1)


class FromDisk(Solver):
    """A fit on all rows of a store, from scratch unless there are dual variables."""

    def __init__(self, job: DiskJob, variables: DualStore | None = None):
        self._variables = variables or new_variables(job)
        self.fits = DiskFits(job, [self._variables])
        self._rule = StopRule("gap", 0.0)

    def advance(self, rule: StopRule) -> Progress:
        self._rule = rule
        if self.fits.start_from_variables():  # they may already be optimal
            return replace(self.fits.progress()[0], ready=True, pass_ended=False)
        ended = self.fits.advance(rule)
        seen = self.fits.progress()[0]
        return seen if ended else replace(seen, ready=False, pass_ended=False)

    def certificate(self) -> Certificate:
        return self.fits.certify([0], self._rule)[0]

    def weights(self) -> np.ndarray | sp.csr_matrix:
        return self.fits.weights()

    def state(self) -> DualStore:
        return self._variables

    def memory(self) -> dict[str, int]:
        return self.fits.memory()


def make_stream(job: DiskJob, shape: StreamShape) -> Stream:
    """Create the solver for rows that arrive block by block."""
    kind: Callable[..., Stream] = BinaryStream if job.problem.separate else CoupledStream
    if job.engine.method == "pegasos":
        kind = partial(PegasosStream, update=job.engine.update)
    elif job.engine.method == "streamsvm":
        kind = EnclosingBallStream
    return kind(job.problem, shape, job.options, interrupt=job.interrupt)


def new_variables(job: DiskJob) -> DualStore:
    """Create a store of dual variables that is removed with the fit."""
    return DualStore(about_variables(job.problem, job.data, job.dtype), job.data.store.path)


def about_variables(problem: Problem, data: StoredRows, dtype: np.dtype) -> dict[str, Any]:
    """Describe what dual variables belong to. Penalties are left out: a fit may start from those of others."""
    return {
        "loss": problem.name,
        **problem.parameters,
        "dtype": np.dtype(dtype).name,
        "classes": [str(label) for label in data.store.classes.tolist()],
        "steps": data.store.chain.describe() or None,
    }
