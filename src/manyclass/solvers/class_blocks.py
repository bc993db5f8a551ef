"""Many binary problems: blocks of neighbouring ones, each trained to its end before the next."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..peers import Alone, Peers
from ..problems import Binary
from .layout import as_matrix, make_layout
from .options import SolverOptions
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stored import numbers_from_array, numbers_to_array

# A piece of work: so many blocks for each thread of all processes, on average, and more while these seconds have not
# passed. At its end everyone waits for the last blocks of the others, so it has to be much longer than one of them.
BLOCKS_A_THREAD, SECONDS_AT_ONCE = 4, 1.0


class BlockResult(NamedTuple):
    """The end of one block; see BlockResult in binary/blocks.hpp."""

    primal: float = 0.0
    dual: float = 0.0
    violation: float = 0.0
    epochs: int = 0
    visited: float = 0.0
    done: bool = False
    cut: bool = False

    @property
    def begun(self) -> bool:
        """Whether the block was trained at all."""
        return self.epochs > 0 or self.done


class ClassBlocks(Solver):
    """Each block of problems alone over its rows; see `native/binary/blocks.hpp`."""

    def __init__(
        self,
        problem: Binary,
        data: TrainingSet,
        options: SolverOptions,
        *,
        interrupt: Any,
        peers: Peers | None = None,
    ):
        self._dtype, self._seed, self._threads = np.dtype(options.dtype), options.seed, options.threads
        self._max_epochs, self._interrupt = options.max_iter, interrupt
        self._problem, self._C = problem, data.C
        self._C_of_class = np.bincount(data.codes, data.C, data.n_classes) if problem.pairs else np.empty(0)
        self._n, self._problems = data.X.n_rows, problem.columns(data.n_classes)
        self._features = data.X.n_features + (data.constant != 0)
        self._kernel = self._make_kernel(problem, data, options.solver, options.keep_state)
        self._peers = peers or Alone()
        self._at_once = BLOCKS_A_THREAD * sum(self._peers.gather(options.threads))
        self._chosen = self._left = list(range(self._kernel.blocks))  # to be trained here, and still
        self._results: dict[int, BlockResult] = {}  # of the blocks that were begun
        self._start: dict[str, np.ndarray] = {}  # dual variables that were loaded
        self._rule: StopRule | None = None  # by which blocks were trained so far
        self.behind = 0.0  # blocks that whoever trains these will train after them

    def _make_kernel(self, problem: Binary, data: TrainingSet, method: str, keep_state: bool) -> Any:
        return native(core, "BinaryBlocks", self._dtype)(
            make_layout(data, self._dtype, 1),
            *data.labels_by_row(),
            data.C.astype(self._dtype),
            data.n_classes,
            self._features,
            problem.loss,
            problem.pairs,
            method,
            data.reduced,
            keep_state,
        )

    @property
    def trained_by(self) -> type["ClassBlocks"]:
        """Whose blocks these are, whoever advances them."""
        return ClassBlocks

    @property
    def blocks(self) -> int:
        """How many blocks the problem has."""
        return self._kernel.blocks

    def choose_blocks(self, blocks: Sequence[int]) -> None:
        """Train only these from now on. What there is of others, dual variables included, is dropped."""
        self._chosen = sorted(set(blocks))
        self._kernel.hold(self._chosen)
        self._results = {b: self._results[b] for b in self._chosen if b in self._results}
        self._left = [b for b in self._chosen if b not in self._results]

    def train_again(self) -> None:
        """Go on with all blocks that are chosen, also with those that have ended."""
        self._left = list(self._chosen)

    def ended(self) -> list[int]:
        """The blocks that were trained as they were to be; of others there may be results from before."""
        left = set(self._left)
        return [b for b in self._results if b not in left]

    def complete(self) -> bool:
        """Whether all blocks that are chosen were trained as they were to be, and none was cut short."""
        return len(self.ended()) == len(self._chosen) and not self._any_cut()

    def problems_of(self, block: int) -> Sequence[int]:
        """The problems of a block, ascending."""
        return self._kernel.problems_of(block)

    def sibling(self, interrupt: Any, threads: int = 1) -> "ClassBlocks":
        """Another solver on the same layout of the rows, with no blocks chosen; both can work at the same time."""
        kind = self.trained_by
        other = kind.__new__(kind)  # a subclass may advance in another way
        other.__dict__ |= self.__dict__
        other._kernel, other._interrupt, other._threads = self._kernel.sibling(), interrupt, threads
        other._chosen, other._left, other._results = [], [], {}
        return other

    def advance(self, rule: StopRule) -> Progress:
        """Train the next blocks, together with the other processes: each takes one when it is free."""
        self._go_by(rule)
        mine, found = self._kernel.train(
            self._deal(),
            rule.stop == "gap",
            rule.tol,
            self._max_epochs,
            self._seed,
            max(1, min(self._threads, len(self._left))),
            self._interrupt,
        )
        begun = self._add_results(mine, found)
        self._take_off(begun)
        if self._peers.size > 1:
            for rank, part in enumerate(self._peers.gather(self.export_blocks(begun))):
                if rank != self._peers.rank:
                    self.import_blocks(part)
        return self._progress()

    def _go_by(self, rule: StopRule) -> None:
        """Blocks of a checkpoint may have ended by another rule: those that do not meet this one go on."""
        if self._rule not in (None, rule):
            self._left += [b for b in self._results if b not in self._left and not self._block_meets(b, rule)]
            self._left.sort()
        self._rule = rule

    def _block_meets(self, block: int, rule: StopRule) -> bool:
        result = self._results[block]
        return rule.met(Certificate(result.primal, result.dual, result.violation))

    def _deal(self) -> Callable[[], int]:
        """Gives threads the blocks of one piece of work that are for this process, and then -1."""
        left, numbers, asking = self._left, self._peers.share_out(len(self._left)), threading.Lock()
        end = time.perf_counter() + SECONDS_AT_ONCE
        threads = self._at_once / BLOCKS_A_THREAD

        def deal() -> int:
            with asking:
                number = next(numbers, None)
            if number is None or (number >= self._at_once and time.perf_counter() >= end):
                return -1
            self._interrupt.set_waiting((len(left) - number - 1 + self.behind) / threads)
            return left[number]

        return deal

    def _take_off(self, blocks: Sequence[int]) -> None:
        trained = set(blocks)
        self._left = [b for b in self._left if b not in trained]

    def _progress(self) -> Progress:
        so_far = self._sum()
        return Progress(
            epochs=max((r.epochs for r in self._results.values()), default=0),
            primal=so_far.primal,
            dual=so_far.dual,
            violation=so_far.violation,
            active=len(self._left) / max(1, len(self._chosen)),
            ready=not self._left,
            pass_ended=True,
            exhausted="time_limit" if not self._left and self._any_cut() else None,
        )

    def _any_cut(self) -> bool:
        """Whether a block ended early so that others could begin, or because of an interrupt."""
        return any(result.cut and not result.done for result in self._results.values())

    def _add_results(self, blocks: Sequence[int], found: Sequence[Sequence[Any]]) -> list[int]:
        """Those that were begun: others, where an interrupt came first, are still what they were."""
        results = {b: BlockResult(*values) for b, values in zip(blocks, found, strict=True)}
        begun = {b: result for b, result in results.items() if result.begun}
        self._results |= begun
        return list(begun)

    def _sum(self) -> Certificate:
        return Certificate(
            math.fsum(r.primal for r in self._results.values()),
            math.fsum(r.dual for r in self._results.values()),
            max((r.violation for r in self._results.values()), default=0.0),
        )

    def certificate(self) -> Certificate:
        """Add up the certificates of chosen blocks. A problem never trained has weights 0 and dual value 0."""
        found = self._sum()
        untrained = [p for b in self._chosen if b not in self._results for p in self.problems_of(b)]
        if len(untrained) == 0:
            return found
        if self._problem.pairs:
            first, second = np.triu_indices(len(self._C_of_class), 1)
            C = (self._C_of_class[first] + self._C_of_class[second])[untrained].sum()
        else:
            C = len(untrained) * self._C.sum()
        at_zero = float(C * self._problem.loss_at(np.zeros(1))[0])
        return Certificate(found.primal + at_zero, found.dual, max(found.violation, 1.0))

    def memory(self) -> dict[str, int]:
        """Bytes of data, and of weights and dual variables (one block a thread, and those that are kept)."""
        block = self._kernel.width * self._dtype.itemsize
        return {
            "data": self._kernel.data_bytes,
            "weights": self._threads * (self._kernel.heads + self._n) * block,
            "dual_variables": self._kernel.dual_bytes,
        }

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, problems)` from the dual variables."""
        return as_matrix(self._kernel.weights(self._features, self._threads), self._features, self._problems)

    def state(self) -> dict[str, np.ndarray]:
        """The dual variables by rows: CSR arrays."""
        indptr, classes, values = self._kernel.alpha()
        return {"indptr": indptr, "classes": classes, "values": values}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from these dual variables, brought back to the feasible set where C has become smaller."""
        self._start = state
        row = np.repeat(np.arange(self._n), np.diff(state["indptr"]))
        alike = np.zeros(row.shape, bool)  # their bound is the same on both sides
        values = np.minimum(state["values"], self._problem.cap(alike, self._C[row]))
        self._kernel.set_alpha(state["indptr"], state["classes"], values.astype(self._dtype))

    def export_blocks(self, blocks: Sequence[int] | None = None) -> dict[str, np.ndarray]:
        """What training has made of blocks, as plain arrays for `import_blocks`.

        Parameters
        ----------
        blocks : sequence of int, optional
            Which blocks; those not begun give the dual variables they start from. Without it, all that were begun.

        Returns
        -------
        dict of arrays
            `blocks`, ascending; `results`, a line (`BlockResult`) each; their dual variables that are not 0, as
            `counts` of rows a block, `rows`, bits of the `lanes` in use, and `values`; and where the model is dense,
            `columns` of weights of those that were begun.
        """
        chosen = sorted(self._results if blocks is None else blocks)
        results = [self._results.get(b, BlockResult()) for b in chosen]
        counts, rows, lanes, values = self._kernel.variables_of(chosen)
        return {
            "blocks": np.array(chosen, np.int64),
            "results": np.array(results, np.float64).reshape(-1, len(BlockResult._fields)),
            "counts": counts,
            "rows": rows,
            "lanes": lanes,
            "values": values,
            "columns": self._kernel.columns_of([b for b in chosen if b in self._results]),
        }

    def import_blocks(self, found: dict[str, np.ndarray]) -> None:
        """Take over blocks of another solver of the same problem, as if they had been trained here.

        Parameters
        ----------
        found : dict of arrays
            From `export_blocks`. Blocks that were not begun only take over the dual variables they start from.

        Raises
        ------
        ValueError, IndexError
            If the arrays do not fit this problem.
        """
        if found["values"].dtype != self._dtype:
            raise ValueError(f"blocks of {found['values'].dtype} cannot be imported into a fit in {self._dtype}")
        blocks = found["blocks"].tolist()
        results = [
            BlockResult(primal, dual, violation, int(epochs), visited, bool(done), bool(cut))
            for primal, dual, violation, epochs, visited, done, cut in found["results"].tolist()
        ]
        begun = [b for b, result in zip(blocks, results, strict=True) if result.begun]
        self._kernel.set_columns(begun, found["columns"])
        self._kernel.set_variables(blocks, *(found[name] for name in ("counts", "rows", "lanes", "values")))
        self._take_off(self._add_results(blocks, results))

    def checkpoint(self) -> dict[str, np.ndarray]:
        """The blocks that are finished, and what the others start from; those under way begin again."""
        if self._peers.rank > 0:
            return {}  # everyone has all blocks
        stored = self.export_blocks([b for b in self.ended() if not self._results[b].cut])
        stored["rule"] = numbers_to_array({} if self._rule is None else asdict(self._rule))
        return stored | {f"start.{name}": array for name, array in self._start.items()}

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        """Go on from a checkpoint. Blocks that were out of passes go on where `max_epochs` is larger now."""
        stored = parts[0]
        if "start.values" in stored:  # copied: what is read from a file should let go of it
            self.load_state({name: stored[f"start.{name}"].copy() for name in ("indptr", "classes", "values")})
        self.import_blocks(stored)
        rule = numbers_from_array(stored["rule"])
        self._rule = StopRule(**rule) if rule else None
        out = [b for b, result in self._results.items() if not result.done and result.epochs < self._max_epochs]
        self._left = sorted(self._left + out)
        return self._progress()

    def untrained(self) -> np.ndarray:
        """Problems whose block was never begun."""
        begun = np.zeros(self._problems, bool)
        for block in self._results:
            begun[self._kernel.problems_of(block)] = True
        return np.flatnonzero(~begun)
