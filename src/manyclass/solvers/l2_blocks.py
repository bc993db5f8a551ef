"""Many binary problems, in blocks of neighbouring ones: each block is trained to its end before the next starts."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..peers import Peers
from ..problems import Binary
from .layout import as_matrix, make_layout
from .options import SolverOptions
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stored import CSR, numbers_from_array, numbers_to_array

# A piece of work has on average this many blocks per thread of all processes, and more until these seconds have
# passed. At its end all processes wait for each other's last blocks, so it has to take much longer than one block.
BLOCKS_A_THREAD, SECONDS_AT_ONCE = 4, 1.0
# The dual variables of blocks, as the core gives and takes them.
VARIABLES = ("counts", "rows", "lanes", "values")


class BlockResult(NamedTuple):
    """How the training of one block ended; see BlockResult in binary/blocks.hpp."""

    primal: float = 0.0
    dual: float = 0.0
    violation: float = 0.0
    passes: int = 0
    visited: float = 0.0
    done: bool = False
    cut: bool = False

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> "BlockResult":
        """Create one from the numbers of the core or of an array."""
        primal, dual, violation, passes, visited, done, cut = numbers
        return cls(primal, dual, violation, int(passes), visited, bool(done), bool(cut))

    @property
    def started(self) -> bool:
        """Whether the block was trained at all."""
        return self.passes > 0 or self.done


class L2Blocks(Solver):
    """Train each block of problems by itself, on its rows; see `native/binary/blocks.hpp`."""

    by_classes = True
    _typed: ClassVar[str] = "values"  # an array of `export_blocks` that has the dtype of the fit

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
        self._max_passes, self._interrupt = options.max_iter, interrupt
        self._problem, self._C = problem, data.C
        self._C_of_class = np.bincount(data.codes, data.C, data.n_classes) if problem.pairs else np.empty(0)
        self._n, self._problems = data.X.n_rows, problem.columns(data.n_classes)
        self._features = data.X.n_features + (data.constant != 0)
        self._kernel = self._make_kernel(problem, data, options.solver, options.keep_state)
        self._peers = peers or Peers()
        self._at_once = BLOCKS_A_THREAD * sum(self._peers.gather(options.threads))
        self._chosen = self._left = list(range(self._kernel.blocks))  # blocks to train here, and those still to train
        self._results: dict[int, BlockResult] = {}  # of blocks that have been started
        self._start: dict[str, np.ndarray] = {}  # dual variables that were loaded
        self._rule: StopRule | None = None  # that blocks have been trained to so far
        self.behind = 0.0  # blocks that the same worker will train after these

    def _make_kernel(self, problem: Binary, data: TrainingSet, method: str, keep_state: bool) -> Any:
        return native(core, "BinaryBlocks", self._dtype)(
            make_layout(data, self._dtype, 1),
            (*data.labels_by_row(), data.C.astype(self._dtype)),
            (data.n_classes, problem.pairs),
            self._features,
            problem.loss,
            method,
            data.reduced,
            keep_state,
        )

    @property
    def trained_by(self) -> type["L2Blocks"]:
        """The solver that trains these blocks, here or in a worker."""
        return L2Blocks

    @property
    def blocks(self) -> int:
        """Number of blocks of the problem."""
        return self._kernel.blocks

    def choose_blocks(self, blocks: Sequence[int]) -> None:
        """Train only these blocks from now on, and drop all others with their dual variables."""
        self._chosen = sorted(set(blocks))
        self._hold_chosen()
        self._results = {b: self._results[b] for b in self._chosen if b in self._results}
        self._left = [b for b in self._chosen if b not in self._results]

    def _hold_chosen(self) -> None:
        self._kernel.hold(self._chosen)

    def train_again(self) -> None:
        """Continue to train all chosen blocks, including those that have ended."""
        self._left = list(self._chosen)

    def ended(self) -> list[int]:
        """Return the blocks that have been trained as asked; others may have results of an earlier training."""
        left = set(self._left)
        return [b for b in self._results if b not in left]

    def complete(self) -> bool:
        """Whether all chosen blocks have been trained as asked, and none was cut short."""
        return len(self.ended()) == len(self._chosen) and not self._any_cut()

    def problems_of(self, block: int) -> Sequence[int]:
        """Return the problems of a block, ascending."""
        return self._kernel.problems_of(block)

    def sibling(self, interrupt: Any, threads: int = 1) -> "L2Blocks":
        """Return another solver on the same layout of the rows, with no blocks chosen; both can work at once."""
        kind = self.trained_by
        other = kind.__new__(kind)  # not type(self), which may advance in another way
        other.__dict__ |= self.__dict__
        other._kernel, other._interrupt, other._threads = self._kernel.sibling(), interrupt, threads
        other._start_empty()
        return other

    def _start_empty(self) -> None:
        self._chosen, self._left, self._results = [], [], {}

    def advance(self, rule: StopRule) -> Progress:
        """Train the next blocks together with the other processes: each takes the next block when it is free."""
        self._go_by(rule)
        mine, found = self._kernel.train(
            self._deal(),
            rule.stop == "gap",
            rule.tol,
            self._max_passes,
            self._seed,
            max(1, min(self._threads, len(self._left))),
            self._interrupt,
        )
        started = self._add_results(mine, found)
        self._take_off(started)
        if self._peers.size > 1:
            for rank, part in enumerate(self._peers.gather(self.export_blocks(started))):
                if rank != self._peers.rank:
                    self.import_blocks(part)
        return self._progress()

    def _go_by(self, rule: StopRule) -> None:
        """Adopt a rule: blocks of a checkpoint that ended by another rule and do not meet this one continue."""
        if self._rule not in (None, rule):
            self._left += [b for b in self._results if b not in self._left and not self._block_meets(b, rule)]
            self._left.sort()
        self._rule = rule

    def _block_meets(self, block: int, rule: StopRule) -> bool:
        result = self._results[block]
        return rule.met(Certificate(result.primal, result.dual, result.violation))

    def _deal(self) -> Callable[[], int]:
        """Return a function that gives threads this process's blocks of one piece of work, and then -1."""
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
        so_far = Certificate.total(self._results.values())
        return Progress(
            epochs=max((r.passes for r in self._results.values()), default=0),
            primal=so_far.primal,
            dual=so_far.dual,
            violation=so_far.violation,
            active=len(self._left) / max(1, len(self._chosen)),
            ready=not self._left,
            pass_ended=True,
            exhausted="time_limit" if not self._left and self._any_cut() else None,
        )

    def _any_cut(self) -> bool:
        """Whether a block ended early, to leave time for others or because of an interrupt."""
        return any(result.cut and not result.done for result in self._results.values())

    def _add_results(self, blocks: Sequence[int], found: Sequence[Sequence[Any]]) -> list[int]:
        """Add results; return the blocks that were started, since an interrupt leaves the others as they were."""
        results = {b: BlockResult.from_numbers(numbers) for b, numbers in zip(blocks, found, strict=True)}
        started = {b: result for b, result in results.items() if result.started}
        self._results |= started
        return list(started)

    def certificate(self) -> Certificate:
        found = Certificate.total(self._results.values())
        untrained = [p for b in self._chosen if b not in self._results for p in self.problems_of(b)]
        if len(untrained) == 0:
            return found
        if self._problem.pairs:
            first, second = np.triu_indices(len(self._C_of_class), 1)
            C = (self._C_of_class[first] + self._C_of_class[second])[untrained].sum()
        else:
            C = len(untrained) * self._C.sum()
        at_zero = float(C * self._problem.loss_at_zero(1))
        return Certificate(found.primal + at_zero, found.dual, max(found.violation, 1.0))

    def memory(self) -> dict[str, int]:
        """Return the bytes, with weights of one block per thread."""
        block = self._kernel.width * self._dtype.itemsize
        return {
            "data": self._kernel.data_bytes,
            "weights": self._threads * (self._kernel.heads + self._n) * block,
            "dual_variables": self._kernel.dual_bytes,
        }

    def weights(self) -> np.ndarray | sp.csr_matrix:
        return as_matrix(self._kernel.weights(self._features, self._threads), self._features, self._problems)

    def state(self) -> dict[str, np.ndarray]:
        return dict(zip(CSR, self._kernel.alpha(), strict=True))

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self._start = state
        row = np.repeat(np.arange(self._n), np.diff(state["indptr"]))
        either = np.zeros(row.size, bool)  # positive and negative rows have the same bound
        values = np.minimum(state["values"], self._problem.cap(either, self._C[row]))
        self._set_alpha(row, state | {"values": values.astype(self._dtype)})

    def _set_alpha(self, row: np.ndarray, state: dict[str, np.ndarray]) -> None:
        """Set the dual variables; `row` is the row of each."""
        self._kernel.set_alpha(*(state[name] for name in CSR))

    def export_blocks(self, blocks: Sequence[int] | None = None) -> dict[str, np.ndarray]:
        """Return blocks as plain arrays for `import_blocks`, by default all that have been started.

        `blocks` has their numbers, ascending; `results` one row per block, or per label with an elastic net. Blocks
        not started export the dual variables they start from.
        """
        chosen = sorted(self._results if blocks is None else blocks)
        return {"blocks": np.array(chosen, np.int64), **self._arrays_of(chosen)}

    def _arrays_of(self, blocks: list[int]) -> dict[str, np.ndarray]:
        """Return all of `export_blocks` but the numbers of the blocks.

        Dual variables that are not 0 are `counts` of rows per block, `rows`, bits of the `lanes` in use, and
        `values`; `columns` has the weights of started blocks if the model is dense.
        """
        results = [self._results.get(b, BlockResult()) for b in blocks]
        return {
            "results": np.array(results, np.float64).reshape(-1, len(BlockResult._fields)),
            **dict(zip(VARIABLES, self._kernel.variables_of(blocks), strict=True)),
            "columns": self._kernel.columns_of([b for b in blocks if b in self._results]),
        }

    def import_blocks(self, found: dict[str, np.ndarray]) -> None:
        """Import blocks from another solver of the same problem, as if they had been trained here.

        Raises ValueError or IndexError if the arrays do not fit this problem.
        """
        dtype = found[self._typed].dtype
        if dtype != self._dtype:
            raise ValueError(f"blocks of {dtype} cannot be imported into a fit in {self._dtype}")
        blocks = found["blocks"].tolist()
        self._set_arrays(blocks, found)
        self._take_off(self._add_results(blocks, found["results"].tolist()))

    def _set_arrays(self, blocks: list[int], found: dict[str, np.ndarray]) -> None:
        """Set dual variables and weights from the result of `_arrays_of`."""
        results = map(BlockResult.from_numbers, found["results"].tolist())
        started = [b for b, result in zip(blocks, results, strict=True) if result.started]
        self._kernel.set_columns(started, found["columns"])
        self._kernel.set_variables(blocks, *(found[name] for name in VARIABLES))

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Return all finished blocks and the dual variables that the others start from; these are trained anew."""
        if self._peers.rank > 0:
            return {}  # every process has all blocks
        stored = self.export_blocks([b for b in self.ended() if not self._results[b].cut])
        stored["rule"] = numbers_to_array({} if self._rule is None else asdict(self._rule))
        return stored | {f"start.{name}": array for name, array in self._start.items()}

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        """Resume from a checkpoint; blocks that ran out of passes continue if `max_iter` is larger now."""
        stored = parts[0]
        if "start.values" in stored:  # copied, so that the file can be closed
            self.load_state({name: stored[f"start.{name}"].copy() for name in CSR})
        self.import_blocks(stored)
        rule = numbers_from_array(stored["rule"])
        self._rule = StopRule(**rule) if rule else None
        out = [b for b, result in self._results.items() if not result.done and result.passes < self._max_passes]
        self._left = sorted(self._left + out)
        return self._progress()

    def untrained(self) -> np.ndarray:
        started = np.zeros(self._problems, bool)
        for block in self._results:
            started[self._kernel.problems_of(block)] = True
        return np.flatnonzero(~started)
