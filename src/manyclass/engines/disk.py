"""Training from a store: its blocks in a new random order each pass, the next one read while this one is solved."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data.sizes import parse_size, show_size
from ..problems import Binary, Problem
from ..solvers import (
    BinaryStream,
    Certificate,
    CoupledStream,
    EnclosingBallStream,
    PegasosStream,
    Progress,
    RowBlock,
    Solver,
    SolverOptions,
    StopRule,
    Stream,
    StreamShape,
    Variables,
    longest_row,
)
from .disk_engine import DiskEngine
from .disk_memory import Sizes, divide_memory, rare_rows
from .dual_store import DualStore
from .stored_rows import Batch, BlockReader, StoredRows, folds_of
from .streamed_weights import StreamedWeights, give_back

# The gap that is expected of a pass, over the tolerance, up to which it is taken for the last one.
LIKELY = 1.5
# With rounds="auto".
MOST_ROUNDS = 10


class DiskFits:
    """Fits of one loss on the rows of a store, all but a fold each: a block is read once for all of them.

    Parameters
    ----------
    problem, data, engine, options, interrupt
        As `run` has them.
    variables : sequence of DualStore
        Of each fit.
    folds : int, optional
        How many folds there are; fit f leaves out the rows of fold f. None for a single fit on all rows.
    """

    def __init__(
        self,
        problem: Problem,
        data: StoredRows,
        engine: DiskEngine,
        options: SolverOptions,
        *,
        interrupt: Any,
        variables: Sequence[DualStore],
        folds: int | None = None,
    ):
        self._problem, self._engine, self._folds = problem, engine, folds
        self._dtype, self._seed = np.dtype(options.dtype), options.seed
        self._variables = list(variables)
        # Of several ranges of classes, or of folds, this does not make the model.
        self._makes_model = folds is None and data.classes is None
        self._rare_rows = rare_rows(data, problem, engine, self._dtype, len(self._variables), model=self._makes_model)
        self._fits = [
            make_stream(
                problem,
                BlockReader(data, self._dtype, tail_rows=self._rare_rows).shape,
                engine,
                options,
                interrupt=interrupt,
            )
            for _ in self._variables
        ]
        self._names = names_of(data)
        self._pass = 0
        self._running: Generator[Batch] | None = None
        self.set_data(data)

    def set_data(self, data: StoredRows) -> None:
        """Go on with the same rows at other penalties."""
        self._data = data
        longest = longest_row(self._problem, data.n_classes, *data.penalty_bounds(), self._dtype)
        self._reader = BlockReader(data, self._dtype, longest, self._rare_rows)
        self._shape = self._reader.shape
        self._sizes = Sizes(data, self._shape, self._problem, self._engine, self._dtype, len(self._variables))
        self._room = divide_memory(self._sizes, data, self._engine, model=self._makes_model)
        for variables in self._variables:
            variables.room = self._room.variables // len(self._variables)
        self._rounds = self._engine.first_rounds(self._room.together / data.store.n_blocks)
        self._from_variables = any(variables.holds(self._names) for variables in self._variables)
        self._under_way = list(range(len(self._fits)))  # fits that are still visited
        self.total_C = np.nan  # of all rows, as the last certificate has found it
        self._gaps = {f: (np.nan, np.nan) for f in self._under_way}  # as the last two passes have seen them
        self._exact: dict[int, Any] = {}  # weights that the pass under way adds up

    # ---- One pass after the other

    def start_from_variables(self) -> bool:
        """Compute the weights of dual variables that were there before, if there are any, and say so."""
        found, self._from_variables = self._from_variables, False
        if found:
            self._set_weights(self._under_way, project=True)
        return found

    def advance(self, rule: StopRule) -> bool:
        """Visit the next blocks; tell whether that has ended a pass."""
        self.start_from_variables()
        if self._running is None:
            K = self._shape.n_classes
            self._exact = self._new_exact(self._under_way, 0, K) if self._may_be_last(rule) else {}
            order = self._order_of_blocks()
            self._running = self._reader.batches(order.tolist(), self._room.together)
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
        if self._engine.rounds == "auto":
            self._choose_rounds()
        self._follow_lists(pass_ended=not self._exact)
        return True

    def _may_be_last(self, rule: StopRule) -> bool:
        """Whether the pass that begins will end the fits, at the pace of the last ones, and there is room for it.

        Then the weights for the certificate are added up in it: its blocks need not be read once more.
        """
        if rule.stop != "gap" or self._classes_at_once(len(self._under_way)) < self._shape.n_classes:
            return False
        last_two = [self._gaps[f] for f in self._under_way]
        expected = [last * last / before if before > 0 else np.inf for before, last in last_two]
        return all(gap <= LIKELY * rule.tol for gap in expected)

    def _order_of_blocks(self) -> np.ndarray:
        return np.random.default_rng([self._seed, self._pass]).permutation(self._data.store.n_blocks)

    def _choose_rounds(self) -> None:
        """As many as fit into the time that a pass took, waiting included."""
        assert isinstance(self._rounds, int)
        a_round = self._worked / self._rounds
        self._rounds = int(np.clip((self._waited + self._worked) // max(a_round, 1e-9), 1, MOST_ROUNDS))

    def _rows_of(self, f: int, batch: Batch) -> RowBlock:
        rows = batch.rows
        if self._folds is None:
            return rows
        taken = folds_of(np.concatenate(batch.ids), self._folds, self._seed) != f
        return replace(rows, C=rows.C * taken.astype(rows.C.dtype))

    @contextmanager
    def _loaded(self, f: int, batch: Batch, *, project: bool = False) -> Iterator[Stream]:
        """Fit f, while it has these rows and their variables."""
        stored = [self._variables[f].get(self._names[number]) for number in batch.blocks]
        parts = [
            None if part is None else self._of_rows(f, part, ids) for part, ids in zip(stored, batch.ids, strict=True)
        ]
        fit = self._fits[f]
        fit.load(self._rows_of(f, batch), parts, project=project)
        try:
            yield fit
        finally:
            fit.unload()

    def _keep(self, f: int, batch: Batch) -> None:
        for number, ids, part in zip(batch.blocks, batch.ids, self._fits[f].variables(), strict=True):
            self._variables[f].put(self._names[number], ids, part)

    def _of_rows(self, f: int, stored: Variables, ids: np.ndarray) -> Variables:
        """The variables of the rows that are still there."""
        variables = {name: array for name, array in stored.items() if name != "ids"}
        if np.array_equal(stored["ids"], ids):
            return variables
        kept = np.flatnonzero(np.isin(stored["ids"], ids))
        if kept.size != ids.size:
            raise ValueError("variables of other rows than those of their block; remove them to begin anew")
        return self._fits[f].only_rows(variables, kept, stored["ids"].size)

    def _batches(self) -> Iterator[Batch]:
        """All blocks in their order."""
        if self._running is not None:  # a pass was broken off
            self._running.close()
            self._running = None
        blocks = range(self._data.store.n_blocks)
        with closing(self._reader.batches(blocks, self._room.together)) as batches:
            yield from batches

    # ---- Certificate and model

    def _set_weights(self, fits: Sequence[int], *, project: bool = False) -> None:
        """The weights of the dual variables, in float64, for as many classes at a time as there is room for."""
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
        """How many classes can have weights in float64, in some of the fits."""
        self._sizes.listed = max((fit.listed for fit in self._fits), default=0) or self._sizes.listed
        return self._sizes.exact_classes(self._room.exact * len(self._fits) // fits)

    def _new_exact(self, fits: Sequence[int], low: int, at_once: int) -> dict[int, Any]:
        """Weights in float64, from a class on for so many of them."""
        K, places = self._shape.n_classes, self._shape.places
        high = min(K, low + at_once)
        return {f: native(core, "ExactWeights", self._dtype)(places.heads, low, high, K, places.tails) for f in fits}

    def _follow_lists(self, *, pass_ended: bool) -> None:
        """Give lists of weights the room that they have come to need: dual variables go to files.

        Weights that are no longer in use leave the lists when all weights are computed anew.

        Raises
        ------
        ValueError
            If there is not enough of it.
        """
        if self._shape.places.tails == 0:
            return
        lists = self._list_bytes()
        if pass_ended and lists > self._room.lists + self._room.variables // 2:
            self._set_weights(self._under_way)
            lists = self._list_bytes()
        left = self._room.lists + self._room.variables - lists
        if left < 0:
            limit = parse_size(self._engine.memory)
            raise ValueError(
                f"{show_size(limit)} of memory are too little: the weights of rare features have come to take "
                f"{show_size(lists)}, more than could be foreseen; give {show_size(limit - 2 * left)} or more"
            )
        for variables in self._variables:
            variables.room = left // len(self._variables)

    def _list_bytes(self) -> int:
        return self._sizes.lists(max(fit.listed for fit in self._fits))

    def certificates(self, rule: StopRule) -> dict[int, Certificate]:
        """Certify the fits that are under way; those that meet the rule are so no longer."""
        found = self.certify(self._under_way, rule)
        self._under_way = [f for f in found if not rule.met(found[f])]
        return found

    def certify(self, chosen: Sequence[int], rule: StopRule) -> dict[int, Certificate]:
        """Certify some fits."""
        self._from_variables = False
        if self._running is None and self._exact:  # the pass that has ended has added them up
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
        """Of the fits that are under way."""
        return {f: self._fits[f].progress for f in self._under_way}

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, K)` of a single fit, as of its last certificate."""
        model = StreamedWeights(self._shape.places, self._shape.n_classes, self._dtype)
        self._reader.forget_spares()
        give_back()
        self.add_weights(model, 0)
        return model.assemble()

    def add_weights(self, model: StreamedWeights, first: int) -> None:
        """Add those weights to a model, in which the first class of this fit has this number."""
        singles, self._singles = self._singles, []
        model.add(self._fits[0], singles, (first, first + self._shape.n_classes))

    def memory(self) -> dict[str, int]:
        """Bytes of blocks, weights and dual variables in memory."""
        return {
            "data": self._room.blocks,
            "weights": self._fits[0].weight_bytes + self._room.exact,
            "dual_variables": self._variables[0].nbytes,
        }

    def held_out_accuracies(self) -> np.ndarray:
        """The share of the rows of each fold that the fit without them gets right."""
        assert self._folds is not None
        right, rows = np.zeros((2, len(self._fits)))
        for batch in self._batches():
            fold = folds_of(np.concatenate(batch.ids), self._folds, self._seed)
            for f, fit in enumerate(self._fits):
                fit.load(self._rows_of(f, batch), [None] * len(batch.blocks))
                mine = fold == f
                right[f] += np.count_nonzero(fit.best_classes()[mine] == batch.rows.labels[mine])
                fit.unload()
                rows[f] += np.count_nonzero(mine)
        return right / np.maximum(rows, 1)


class FromDisk(Solver):
    """A fit on all rows of a store.

    Parameters
    ----------
    problem, data, engine, options, interrupt
        As `DiskFits` has them.
    variables : DualStore, optional
        The dual variables; None for a store of its own.
    """

    def __init__(
        self,
        problem: Problem,
        data: StoredRows,
        engine: DiskEngine,
        options: SolverOptions,
        *,
        interrupt: Any,
        variables: DualStore | None = None,
    ):
        self._variables = variables or DualStore(about_variables(problem, data, options.dtype), data.store.path)
        self.fits = DiskFits(problem, data, engine, options, interrupt=interrupt, variables=[self._variables])
        self._rule = StopRule("gap", 0.0)

    @property
    def total_C(self) -> float:
        """The sum of the penalties of all rows, as the last certificate has found it."""
        return self.fits.total_C

    def advance(self, rule: StopRule) -> Progress:
        """Visit the next blocks."""
        self._rule = rule
        if self.fits.start_from_variables():  # they may be optimal as they are
            return replace(self.fits.progress()[0], ready=True, pass_ended=False)
        ended = self.fits.advance(rule)
        seen = self.fits.progress()[0]
        return seen if ended else replace(seen, ready=False, pass_ended=False)

    def certificate(self) -> Certificate:
        """Certify the variables of all blocks."""
        return self.fits.certify([0], self._rule)[0]

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, K)` of the last certificate."""
        return self.fits.weights()

    def add_weights(self, model: StreamedWeights, first: int) -> None:
        """Add those of the last certificate to a model, in which the first class of this fit has this number."""
        self.fits.add_weights(model, first)

    def state(self) -> DualStore:
        """The dual variables of all blocks, to start another fit from."""
        return self._variables

    def memory(self) -> dict[str, int]:
        """Bytes of blocks, weights and dual variables in memory."""
        return self.fits.memory()


def make_stream(
    problem: Problem,
    shape: StreamShape,
    engine: DiskEngine,
    options: SolverOptions,
    *,
    interrupt: Any,
) -> Stream:
    """The solver of a loss for rows that come block by block."""
    kind: Callable[..., Stream] = BinaryStream if isinstance(problem, Binary) else CoupledStream
    if engine.method == "pegasos":
        kind = partial(PegasosStream, update=engine.update)
    elif engine.method == "streamsvm":
        kind = EnclosingBallStream
    return kind(problem, shape, options, interrupt=interrupt)


def names_of(data: StoredRows) -> list[str]:
    """Under which the variables of each block are kept; those of some classes only, with the range of these."""
    suffix = "" if data.classes is None else f".{data.classes[0]}-{data.classes[1]}"
    return [entry.file.removesuffix(".safetensors") + suffix for entry in data.store.manifest.blocks]


def about_variables(problem: Problem, data: StoredRows, dtype: np.dtype) -> dict[str, Any]:
    """What dual variables belong to; those of other penalties can be gone on from."""
    return {
        "loss": problem.name,
        "gamma": getattr(problem, "gamma", None),
        "dtype": np.dtype(dtype).name,
        "classes": [str(label) for label in data.store.classes.tolist()],
        "steps": data.store.chain.describe() or None,
    }
