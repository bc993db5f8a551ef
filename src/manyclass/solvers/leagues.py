"""Weston-Watkins by matches of leagues: the schedule of Alber et al., on threads and processes that swap leagues."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data.json_content import as_declared
from ..data.matrix import pointers
from ..peers import Peers
from ..problems import LOSSES, Problem
from .layout import LISTED, as_matrix, make_layout, tail_rows
from .options import SolverOptions
from .passes import Estimate, Passes
from .schedule import divide_classes, hosts, league_count, matchday, matchdays
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stored import CSR, numbers_from_array, numbers_to_array

# Classes that may join a row in one visit. Early on nearly all would, and leave again; for a small gap, many have to
# join in the end.
MOST_NEW = {"kkt": 16, "gap": np.iinfo(np.int64).max}
MOST_CHEAP_PASSES = 20
# A row rests for a league when a visit finds at most this share of the tolerated violation, or of the tolerated gap
# per row.
LITTLE = {"kkt": 0.2, "gap": 0.05}
# Lower the violation at which a certificate is computed by this factor when one has found more than the pass before.
STRICTER = 0.8
# Calls of `advance` per full pass.
PIECES_PER_PASS = 10


@dataclass
class _Status:
    """Everything that changes during a fit, besides leagues and matches."""

    number: int  # of the current pass
    full: bool  # whether it is a full pass
    day: int  # next matchday; on day -1 every league plays by itself, where it is on day 0
    deal: int  # number of full passes after which classes were last dealt to leagues
    passes: Passes
    said: Progress
    strict: float  # share of the tolerated violation at which a certificate is worth its cost
    loaded: bool  # dual variables were loaded that may be optimal

    @classmethod
    def at_start(cls) -> "_Status":
        passes = Passes()
        return cls(0, True, -1, 0, passes, passes.progress(), strict=1.0, loaded=False)


class Leagues(Solver):
    """One matchday after the other; see `schedule.py` and `native/leagues/solver.hpp`.

    A match is always played by the process that has its position, so its dual variables stay there. Weights move from
    one matchday to the next.
    """

    def __init__(
        self,
        problem: Problem,
        data: TrainingSet,
        options: SolverOptions,
        *,
        peers: Peers | None = None,
        shrinking: bool = True,
    ):
        if "leagues" not in LOSSES[problem.name].solvers:
            raise ValueError(f"solver='leagues' is for 'ww', not for {problem.name!r}; use solver='auto'")
        if data.reduced:
            raise ValueError("solver='leagues' has no feature_reduction; leave it out, or use solver='auto'")
        self._dtype, self._seed, self._threads = np.dtype(options.dtype), options.seed, options.threads
        self._n, self._K, self._C = data.X.n_rows, data.n_classes, data.C
        self._features = data.X.n_features + (data.constant != 0)
        self._peers = peers or Peers()
        self._leagues = options.leagues or league_count(self._K)
        self._shrinking = shrinking
        self._rows_of_class = np.bincount(data.codes, minlength=self._K)
        # With a constant feature, rows pull on the intercepts of all classes they are compared with. The rows of a
        # match soon agree on these, but what one match gains another takes back, as long as leagues consist of the
        # same classes. So classes are dealt to leagues anew before every full pass.
        self._reshuffles = data.constant != 0 and self._leagues > 1
        self._status = _Status.at_start()
        self._kernel = native(core, "Leagues", self._dtype)(
            make_layout(data, self._dtype, tail_rows(self._K, LISTED)),
            data.codes,
            data.C.astype(self._dtype),
            self._divided(),
            self._leagues,
        )
        for league in self._mine(0):
            self._kernel.start(league)
        self._seen: list[tuple[float, ...]] = []  # of this pass and process; see MatchStats in leagues/solver.hpp
        self._variables: dict[str, np.ndarray] | None = None  # all of them, if gathered since the last step

    # ---- Classes

    def _divided(self) -> np.ndarray:
        """Return the league of each class."""
        deal = self._status.deal
        chance = np.random.default_rng([self._seed, deal]) if deal else None
        return divide_classes(self._rows_of_class, self._leagues, chance)

    def _reshuffle(self) -> None:
        """Deal the classes to leagues anew, and the variables to their new matches."""
        self._receive(self._missing())
        alpha = self._dual_rows()
        self._status.deal = self._status.passes.full
        self._kernel.divide(self._divided())
        for league in self._mine(0):
            self._kernel.start(league)
        self._kernel.set_variables(self._every_match(), alpha)
        self._kernel.refresh(alpha, self._threads)

    # ---- Places

    def _hosts(self, day: int) -> np.ndarray:
        """Return the process that has each league on a day. The last day is followed by day -1."""
        return hosts(self._leagues, max(0, day) % matchdays(self._leagues), self._peers.size)

    def _mine(self, day: int) -> list[int]:
        return np.flatnonzero(self._hosts(day) == self._peers.rank).tolist()

    def _matches(self, day: int) -> list[tuple[int, int]]:
        if day < 0:
            return [(league, league) for league in self._mine(0)]
        host = self._hosts(day)
        return [
            (match.first, match.second)
            for match in matchday(self._leagues, day)
            if host[match.first] == self._peers.rank
        ]

    def _every_match(self) -> list[tuple[int, int]]:
        return [match for day in range(-1, matchdays(self._leagues)) for match in self._matches(day)]

    # ---- Training

    def advance(self, rule: StopRule) -> Progress:
        status = self._status
        if status.loaded:
            status.loaded = False
            status.said = replace(status.said, ready=True)
            return status.said
        if self._reshuffles and status.full and status.day < 0 and status.deal < status.passes.full:
            self._reshuffle()
        self._variables = None
        days = matchdays(self._leagues)
        # A cheap pass is little work.
        last = min(days, status.day + -(-days // PIECES_PER_PASS)) if status.full else days
        while status.day < last:
            self._play(rule)
            status.day += 1
        full, ended = status.full, status.day == days
        ready = self._end_pass(rule) if ended else False
        status.said = status.passes.progress(ready=ready, pass_ended=ended and full)
        return status.said

    def _play(self, rule: StopRule) -> None:
        """Play the matches of a day: first those with a league that leaves next, last those that wait for one."""
        enter, rest = self._levels(rule)
        seed = (self._seed * 0x100000001B3 + self._status.number) & 0xFFFFFFFFFFFFFFFF
        matches, missing, leaving = self._matches(self._status.day), self._missing(), self._leaving()
        late = [match for match in matches if not missing.isdisjoint(match)]
        early = [match for match in matches if not leaving.isdisjoint(match) and match not in late]
        between = [match for match in matches if match not in late + early]
        for now in filter(None, [*self._batches(early), between, *self._batches(late)]):
            playing = {league for match in now for league in match}
            self._receive(missing & playing)
            self._seen += self._kernel.play(
                now, self._status.full, enter, MOST_NEW[rule.stop], rule.stop == "gap", rest, seed, self._threads
            )
            self._send(leaving & playing)
        # Leagues without an opponent travel too.
        self._receive(missing.difference(*matches))
        self._send(leaving)

    def _batches(self, matches: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
        """Split matches into batches, one per thread, so that leagues travel while others play."""
        return [matches[begin : begin + self._threads] for begin in range(0, len(matches), self._threads)]

    def _levels(self, rule: StopRule) -> tuple[float, float]:
        """Return the violation above which a class joins a row, and the level below which a row rests."""
        if rule.stop == "kkt":
            target = self._status.strict * rule.tol
            return 0.3 * target, LITTLE["kkt"] * target
        last = self._status.passes.last_full
        return 0.0, 0.0 if last is None else LITTLE["gap"] * rule.tol * abs(last.primal) / self._n

    def _missing(self) -> set[int]:
        """Return the leagues that belong here on this day and have not arrived."""
        return {league for league in self._mine(self._status.day) if not self._kernel.here(league)}

    def _leaving(self) -> set[int]:
        """Return the leagues that belong here on this day and elsewhere on the next."""
        day = self._status.day
        now, next_day = self._hosts(day), self._hosts(day + 1)
        return set(np.flatnonzero((now == self._peers.rank) & (next_day != now)).tolist())

    def _receive(self, leagues: set[int]) -> None:
        """Receive leagues from where they were the day before."""
        day = self._status.day
        sender = self._hosts(day - 1 if day >= 0 else matchdays(self._leagues) - 1)
        for league in sorted(leagues):
            self._kernel.unpack(league, self._peers.receive(int(sender[league]), league))

    def _send(self, leagues: set[int]) -> None:
        """Send leagues that are still here to where they belong on the next day."""
        to = self._hosts(self._status.day + 1)
        for league in sorted(leagues):
            if self._kernel.here(league):
                self._peers.send(int(to[league]), league, self._kernel.pack(league))
                self._kernel.leave(league)

    def _end_pass(self, rule: StopRule) -> bool:
        """Choose the next pass; return whether a certificate is worth its cost now."""
        status, passes = self._status, self._status.passes
        figures = [line for part in self._peers.gather(self._seen) for line in part]
        loss, gap, alpha_sum, violation, *_ = zip(*figures, strict=True)
        seen = Estimate.from_sums(math.fsum(loss), math.fsum(gap), math.fsum(alpha_sum), max(violation))
        kkt = rule.stop == "kkt"
        target = replace(rule, tol=status.strict * rule.tol) if kkt else rule
        ready = passes.end(seen, target, full=status.full)
        if kkt and ready:
            status.strict *= STRICTER  # in case the certificate does not agree
        pays = passes.cheap_pays(seen, at_most=MOST_CHEAP_PASSES)
        if kkt:
            pays = passes.cheap == 0 or (passes.cheap < MOST_CHEAP_PASSES and seen.violation > target.tol)
        status.full = not (self._shrinking and pays)
        status.number, status.day, self._seen = status.number + 1, -1, []
        return ready

    # ---- Results

    def _all_variables(self) -> dict[str, np.ndarray]:
        """Gather the dual variables of all matches as CSR arrays, with ascending classes."""
        if self._variables is None:
            mine = []
            for a, b in self._every_match():
                mine += [self._kernel.variables(a, b)] + ([self._kernel.variables(b, a)] if a != b else [])
            joined = [np.concatenate(arrays) for arrays in zip(*mine, strict=True)] if mine else None
            parts = [part for part in self._peers.gather(joined) if part is not None]
            rows, classes, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            order = np.argsort(rows.astype(np.int64) * self._K + classes, kind="stable")
            indptr = pointers(np.bincount(rows, minlength=self._n))
            self._variables = dict(zip(CSR, (indptr, classes[order], values[order]), strict=True))
        return self._variables

    def _dual_rows(self) -> Any:
        held = self._all_variables()
        return native(core, "DualRows", self._dtype)(*(held[name] for name in CSR), self._K)

    def certificate(self) -> Certificate:
        """Certify the leagues of each process with recomputed weights."""
        self._receive(self._missing())
        alpha, threads = self._dual_rows(), self._threads
        here = [league for league in range(self._leagues) if self._kernel.here(league)]
        norms = self._kernel.refresh(alpha, threads)
        own = np.empty(self._n)
        for scores in self._peers.gather({league: self._kernel.own_scores(league, alpha) for league in here}):
            for league, of_members in scores.items():
                own[self._kernel.members(league)] = of_members
        mine = [(*norms[league], 0.0) for league in here]
        for league in here:
            parts = self._kernel.certify(league, alpha, own, threads).reshape(-1, 3)
            mine.append((math.fsum(parts[:, 0]), math.fsum(parts[:, 1]), float(parts[:, 2].max())))
        primal, dual, violation = zip(*(part for parts in self._peers.gather(mine) for part in parts), strict=True)
        found = Certificate(math.fsum(primal), math.fsum(dual), max(violation))
        self._status.passes.learn(found)
        return found

    def weights(self) -> np.ndarray | sp.csr_matrix:
        found = self._kernel.weights(self._dual_rows(), self._features, self._threads)
        return as_matrix(found, self._features, self._K)

    def memory(self) -> dict[str, int]:
        kernel = self._kernel
        return {"data": kernel.data_bytes, "weights": kernel.weight_bytes, "dual_variables": kernel.dual_bytes}

    def state(self) -> dict[str, np.ndarray]:
        return dict(self._all_variables())

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        row = np.repeat(np.arange(self._n), np.diff(state["indptr"]))
        values = np.minimum(state["values"], self._C[row]).astype(self._dtype)
        self._variables = state | {"values": values}
        alpha = self._dual_rows()
        self._kernel.set_variables(self._every_match(), alpha)
        self._kernel.refresh(alpha, self._threads)
        self._status.loaded = True

    def checkpoint(self) -> dict[str, np.ndarray]:
        self._receive(self._missing())
        matches = self._every_match()
        if not matches:
            return {}  # there are more processes than positions
        pairs = matches + [(b, a) for a, b in matches if a != b]
        names = ("sizes", "classes", "values", "rests")
        held = zip(*(self._kernel.duel(a, b) for a, b in pairs), strict=True)
        stored = {f"duels.{name}": np.concatenate(arrays) for name, arrays in zip(names, held, strict=True)}
        here = [league for league in range(self._leagues) if self._kernel.here(league)]
        return stored | {
            "status": numbers_to_array(asdict(self._status)),
            "seen": np.array(self._seen, np.float64),
            "duels": np.array(pairs, np.int32),
            **{f"league.{league}": self._kernel.pack(league) for league in here},
        }

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        """Each process takes what belongs to it now."""
        parts = [part for part in parts if part]
        self._status = as_declared(_Status, numbers_from_array(parts[0]["status"]), "status")
        self._seen, self._variables = [], None
        here = self._mine(self._status.day)
        for league in range(self._leagues):
            self._kernel.leave(league)
        self._kernel.divide(self._divided())
        mine = {frozenset(match) for match in self._every_match()}
        for part in parts:
            if self._peers.rank == 0:
                self._seen += [tuple(figures) for figures in part["seen"].reshape(-1, 5).tolist()]
            for league in here:
                if f"league.{league}" in part:
                    self._kernel.unpack(league, part[f"league.{league}"])
            self._restore_duels(part, mine)
        return self._status.said

    def _restore_duels(self, part: dict[str, np.ndarray], mine: set[frozenset[int]]) -> None:
        rows = entries = 0
        for a, b in part["duels"].tolist():
            count = self._kernel.members(a).size
            sizes = part["duels.sizes"][rows : rows + count]
            end = entries + int(sizes.sum())
            if frozenset((a, b)) in mine:
                rests = part["duels.rests"][rows : rows + count]
                classes, values = (part[f"duels.{name}"][entries:end] for name in ("classes", "values"))
                self._kernel.set_duel(a, b, sizes, classes, values, rests)
            rows, entries = rows + count, end
