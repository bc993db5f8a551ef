"""Coupled losses on rows that arrive block by block."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..problems import Problem
from .coupled_rows import ANY_NUMBER, GATHER_COST, KERNELS, LEAST_THETA, WORK_AT_ONCE, projected
from .layout import DENSE_WAVE, WAVE, WORTH_SHARING
from .options import SolverOptions
from .passes import Estimate, Passes
from .solver import Certificate, StopRule
from .stored import CSR
from .stream import MOST_ROUNDS, SETTLED, RowBlock, Stream, StreamShape, Variables


class CoupledStream(Stream):
    """Coupled losses and maximum entropy; see `native/coupled/solver.hpp`."""

    def __init__(self, problem: Problem, shape: StreamShape, options: SolverOptions, *, interrupt: Any):
        super().__init__(problem, shape, options, interrupt)
        self._width, self._tails = shape.width, shape.places.tails
        self._maxent = problem.kernel == "maximum_entropy"
        rows = WAVE if problem.sparse_weights else DENSE_WAVE
        self._wave = rows if shape.width * self._K >= WORTH_SHARING else 1
        none = np.empty(0, np.int32)
        layout = native(core, "Layout", self._dtype)()
        layout.begin_rows(shape.places, 0, 0)
        self._kernel = native(core, KERNELS[problem.kernel], self._dtype)(
            layout, none, none.astype(self._dtype), self._K, problem.name, problem.parameters.get("gamma", 0.5), False
        )
        self._squares = np.zeros(2)
        self._measured = Certificate(0.0, 0.0, 0.0)
        self._passes = Passes()
        self._begin_pass()
        self.progress = self._passes.progress()

    def _begin_pass(self) -> None:
        self._seen = np.zeros(3)  # loss, gap, sum of the variables
        self._violation = 0.0
        self._waves = self._theta = 0.0
        self._kernel.begin_pass()

    def load(self, block: RowBlock, variables: Sequence[Variables | None], *, project: bool = False) -> None:
        self._block = block
        self._kernel.swap_rows(block.layout, block.labels, block.C)
        if self._maxent:
            held = self._kernel.variables.reshape(block.n_rows, -1)
            for (begin, end), part in zip(block.parts, variables, strict=True):
                if part is not None:
                    held[begin:end] = part["variables"].reshape(end - begin, -1)
            return
        counts = np.zeros(block.n_rows + 1, np.int64)
        known = []
        for (begin, end), part in zip(block.parts, variables, strict=True):
            if part is not None:
                counts[begin + 1 : end + 1] = np.diff(part["indptr"])
                known.append(part)
        if not known:
            return
        indptr = np.cumsum(counts)
        classes, values = (np.concatenate([part[name] for part in known]) for name in ("classes", "values"))
        if project:
            row = np.repeat(np.arange(block.n_rows), counts[1:])
            values = projected(self._problem, values, classes == block.labels[row], row, block.C)
        self._kernel.set_alpha(indptr, classes, values.astype(self._dtype, copy=False))

    def variables(self) -> list[Variables]:
        if self._maxent:
            held = self._kernel.variables.reshape(self._block.n_rows, -1)
            return [{"variables": held[begin:end].copy().reshape(-1)} for begin, end in self._block.parts]
        indptr, classes, values = self._kernel.alpha()
        found = []
        for begin, end in self._block.parts:
            here = slice(indptr[begin], indptr[end])
            arrays = indptr[begin : end + 1] - indptr[begin], classes[here].copy(), values[here].copy()
            found.append(dict(zip(CSR, arrays, strict=True)))
        return found

    def only_rows(self, variables: Variables, rows: np.ndarray, before: int) -> Variables:
        if self._maxent:
            return {"variables": variables["variables"].reshape(before, -1)[rows].reshape(-1)}
        indptr, classes, values = (variables[name] for name in CSR)
        matrix = sp.csr_matrix((values, classes, indptr), (before, self._K))[rows]
        return dict(zip(CSR, (matrix.indptr.astype(np.int64), matrix.indices, matrix.data), strict=True))

    def visit(self, rule: StopRule, rounds: int | str, pass_number: int) -> None:
        """Visit all classes first, then those in use where that pays."""
        rows = np.flatnonzero(self._block.C)
        most = MOST_ROUNDS if rounds == "tol" else int(rounds)
        first = before = 0.0
        for number in range(most):
            order = np.random.default_rng([self._seed, pass_number, self._block.number, number]).permutation(rows)
            full = number == 0 or not self._cheap_pays()
            loss, gap, alpha_sum, violation, waves, theta = self._sweep(order, rule, full)
            if number == 0:
                self._seen += loss, gap, alpha_sum
                self._violation = max(self._violation, violation)
                self._waves, self._theta = self._waves + waves, self._theta + theta
                first = gap
            elif rounds == "tol" and gap - before <= SETTLED * first:
                break
            before = gap
            if self._interrupt.requested:
                break

    def _sweep(self, order: np.ndarray, rule: StopRule, full: bool) -> tuple[float, ...]:
        """Return the sums over all visits of these rows since they were loaded."""
        enter = 0.8 * rule.tol if rule.stop == "kkt" else 0.0
        at_once = self._wave * max(1, int(WORK_AT_ONCE / (self._wave * max(1.0, self._width * self._K))))
        most_new = self._problem.most_new or ANY_NUMBER
        seen: tuple[float, ...] = (0.0,) * 6
        for begin in range(0, max(1, order.size), at_once):
            rows = order[begin : begin + at_once]
            *sums, _ = self._kernel.sweep(rows, self._wave, full, enter, most_new, self._threads)
            seen = tuple(sums)
            if self._interrupt.requested:
                break
        return seen

    def _cheap_pays(self) -> bool:
        support = self._kernel.dual_entries / max(1, self._block.n_rows)
        return not self._maxent and support * GATHER_COST < self._K

    def end_pass(self, rule: StopRule) -> None:
        if self._theta < LEAST_THETA * self._waves:
            self._wave = max(1, self._wave // 2)
        loss, gap, alpha_sum = self._seen.tolist()
        ready = self._passes.end(Estimate.from_sums(loss, gap, alpha_sum, self._violation), rule, full=True)
        self.progress = self._passes.progress(ready=ready, pass_ended=True)
        self._begin_pass()

    def begin_certificate(self) -> None:
        self._squares[:] = 0
        self._measured = Certificate(0.0, 0.0, 0.0)
        self.forget_lists()  # the exact weights bring them back, without entries that are no longer in use

    def set_weights(self, exact: Any) -> None:
        self._kernel.set_weights(exact)
        if not self._maxent:  # they include the mean
            self._kernel.training_weights.reshape(self._heads, -1)[:, self._K :] = 0
        self._squares += [squares.sum() for squares in exact.squares()]

    def measure(self) -> None:
        primal, dual, violation = self._kernel.measure(self._threads)
        sums = self._measured
        self._measured = Certificate(sums.primal + primal, sums.dual + dual, max(sums.violation, violation))

    def certificate(self, rule: StopRule) -> Certificate:
        exact, rounded = self._squares.tolist()
        sums = self._measured
        found = Certificate(sums.primal + rounded / 2, sums.dual - exact / 2, sums.violation)
        self._passes.learn(found)
        return found

    def weights_of(self, shared: np.ndarray) -> np.ndarray:
        dense = self._kernel.training_weights.reshape(self._heads, -1)
        if not self._tails:
            return dense[shared, : self._K]
        weights = np.zeros((shared.size, self._K), self._dtype)
        in_head = shared < self._heads
        weights[in_head] = dense[shared[in_head], : self._K]
        listed = np.zeros((shared.size - np.count_nonzero(in_head), self._K), self._dtype)
        self._kernel.add_listed(shared[~in_head] - self._heads, listed)
        weights[~in_head] = listed
        return weights

    @property
    def weight_bytes(self) -> int:
        return self._kernel.weight_bytes + (self._kernel.list_bytes if self._tails else 0)

    def forget_lists(self) -> None:
        if self._tails:
            self._kernel.clear_lists()

    @property
    def listed(self) -> int:  # type: ignore[override]
        return self._kernel.list_entries if self._tails else 0
