"""One-vs-rest on rows that arrive block by block."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._native import core, native
from ..problems import Binary, Problem
from .binary_variables import count_bits, only_rows
from .options import SolverOptions
from .solver import Certificate, Progress, StopRule
from .stream import MOST_ROUNDS, SETTLED, RowBlock, Stream, StreamShape, Variables

# As in binary/training.hpp. The gap that a pass leaves behind is estimated as at least this share of the gap it saw.
MOST_TRUSTED = 0.2
# A pass that visits at least this share of the rows can be followed by a certificate.
NEARLY_ALL = 0.7
# Visit resting rows again when the gap has fallen to this share of that of the last pass over all rows.
WAKE = 0.2


class BinaryStream(Stream):
    """One-vs-rest, with any number of labels per row; see `native/binary/stream.hpp`."""

    def __init__(self, problem: Problem, shape: StreamShape, options: SolverOptions, *, interrupt: Any):
        assert isinstance(problem, Binary)
        super().__init__(problem, shape, options, interrupt)
        self._loss = problem.loss
        kernel = native(core, "BinaryStream", self._dtype)
        self._kernel = kernel(self._heads, self._K, problem.loss, shape.first_class // kernel.width)
        self._B = self._kernel.vectors
        self._passes = 0
        # By vector of classes: the gap of the last pass, and of the last one over all rows; the share of the
        # tolerance that it has to meet; whether to visit all its rows; whether to visit it at all.
        self._last, self._last_of_all = np.zeros((2, self._B))
        self._asked = np.ones(self._B)
        self._all, self._working = np.ones((2, self._B), bool)
        self._filled = np.inf  # number of rows visited by a pass over all rows
        self._squares = np.zeros((2, self._B))
        self._measured = np.zeros((3, self._B))
        self._begin_pass()
        self._sums = np.full((3, self._B), np.nan)  # primal, dual, violation, once they are known
        self.progress = self._report(pass_ended=False)

    def _begin_pass(self) -> None:
        self._seen = np.zeros((3, self._B))  # loss, gap, norm
        self._violation = np.zeros(self._B)
        self._visited = np.zeros(self._B)

    def load(self, block: RowBlock, variables: Sequence[Variables | None], *, project: bool = False) -> None:
        self._block = block
        self._kernel.swap_rows(block.layout, block.label_ptr, block.labels, block.C)
        for (begin, end), part in zip(block.parts, variables, strict=True):
            if part is None:
                continue
            values = part["values"]
            if project and self._loss == "hinge":
                of_row = begin + np.repeat(part["rows"], count_bits(part["lanes"]))
                values = np.minimum(values, block.C[of_row])
            values = values.astype(self._dtype, copy=False)
            self._kernel.set_variables(begin, end, part["counts"], part["rows"], part["lanes"], values)
            if not project:
                self._kernel.set_active(begin, end, part["active"])

    def variables(self) -> list[Variables]:
        """Also return which rows are still visited."""
        found = []
        for begin, end in self._block.parts:
            arrays = (*self._kernel.variables_of(begin, end), self._kernel.active_of(begin, end))
            found.append(dict(zip(("counts", "rows", "lanes", "values", "active"), arrays, strict=True)))
        return found

    def only_rows(self, variables: Variables, rows: np.ndarray, before: int) -> Variables:
        return only_rows(variables, rows, before)

    def visit(self, rule: StopRule, rounds: int | str, pass_number: int) -> None:
        """Visit the rows for all classes that are not done."""
        most, settled = (MOST_ROUNDS, SETTLED) if rounds == "tol" else (int(rounds), 0.0)
        working = np.flatnonzero(self._working).tolist()
        visits = [(b, bool(self._all[b]), self._rest(rule, b), most, settled) for b in working]
        seed = self._seed_of(pass_number)
        found = np.array(self._kernel.visit(visits, seed, self._threads, self._interrupt)).reshape(-1, 6).T
        self._seen[:, working] += found[:3]
        self._violation[working] = np.maximum(self._violation[working], found[3])
        self._visited[working] += found[4]

    def _seed_of(self, pass_number: int) -> int:
        """Return the seed for the order of the loaded rows."""
        return int(np.random.SeedSequence([self._seed, pass_number, self._block.number]).generate_state(1)[0])

    def _rest(self, rule: StopRule, b: int) -> float:
        # Smaller steps of the logistic loss are left for later; their share of the gap is their square.
        tol = rule.tol * self._asked[b]
        return float(0.2 * np.sqrt(tol) if rule.stop == "gap" else 0.5 * tol)

    def end_pass(self, rule: StopRule) -> None:
        loss, gap, norm = self._seen
        working, tol = self._working, rule.tol * self._asked
        if self._all.all() and working.all():
            self._filled = max(1.0, self._visited.max())
        share = self._visited / self._filled
        with np.errstate(divide="ignore", invalid="ignore"):
            pace = np.where(self._last > 0, np.maximum(MOST_TRUSTED, gap / self._last), 1.0)
        primal = loss + norm / 2
        quiet = gap * pace <= tol * primal if rule.stop == "gap" else self._violation <= tol
        self._last = np.where(working, gap, self._last)
        self._last_of_all = np.where(working & self._all, gap, self._last_of_all)
        enough = share >= (NEARLY_ALL if rule.stop == "gap" else 1.0)
        self._sums = np.where(working, [primal, primal - gap, self._violation], self._sums)
        self._all = np.where(working, quiet | (gap <= WAKE * self._last_of_all), self._all)
        self._working = working & ~(quiet & enough)
        self._passes += 1
        self.progress = self._report(ready=not self._working.any())
        self._begin_pass()

    def _report(self, *, ready: bool = False, pass_ended: bool = True, exhausted: str | None = None) -> Progress:
        """Return the progress by what is known of all classes."""
        known = self._total()
        return Progress(self._passes, known.primal, known.dual, known.violation, 1.0, ready, pass_ended, exhausted)

    def _total(self) -> Certificate:
        primal, dual, violation = self._sums
        return Certificate(float(primal.sum()), float(dual.sum()), float(violation.max(initial=0.0)))

    def begin_certificate(self) -> None:
        self._squares, self._measured = np.zeros((2, self._B)), np.zeros((3, self._B))

    def set_weights(self, exact: Any) -> None:
        self._kernel.set_weights(exact)
        first, width = exact.low // self._kernel.width, self._kernel.width
        for row, squares in enumerate(exact.squares()):
            of_vectors = np.add.reduceat(squares, np.arange(0, squares.size, width))
            self._squares[row, first : first + of_vectors.size] += of_vectors

    def measure(self) -> None:
        primal, dual, violation = np.array(self._kernel.measure(self._threads)).T
        self._measured[:2] += primal, dual
        self._measured[2] = np.maximum(self._measured[2], violation)

    def certificate(self, rule: StopRule) -> Certificate:
        """Classes that do not meet the rule continue, to a smaller tolerance."""
        exact, rounded = self._squares
        self._sums = np.array([self._measured[0] + rounded / 2, self._measured[1] - exact / 2, self._measured[2]])
        primal, dual, violation = self._sums
        met = primal - dual <= rule.tol * np.abs(primal) if rule.stop == "gap" else violation <= rule.tol
        again = ~met & ~self._working
        self._asked[again] /= 2
        self._all[again] = True
        self._working |= ~met
        return self._total()

    def weights_of(self, shared: np.ndarray) -> np.ndarray:
        parts = [self._kernel.weights_of(b).reshape(self._heads, -1)[shared] for b in range(self._B)]
        return np.concatenate(parts, axis=1)[:, : self._K]
