"""Weston-Watkins by matches of leagues: the schedule of Alber et al., on threads and processes that swap leagues."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import core, native
from ..data.json_content import as_declared
from ..peers import Alone, Peers
from ..problems import Problem
from .layout import LISTED, as_matrix, make_layout, tail_rows
from .options import SolverOptions
from .schedule import divide_classes, hosts, league_count, matchday, matchdays
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stored import numbers_from_array, numbers_to_array, of_same_kinds

# Classes that may join a row's variables in one visit. Early on nearly all would, and leave again; for a small gap
# many have to come in the end.
MOST_NEW = {"kkt": 16, "gap": np.iinfo(np.int64).max}
# Between passes over all: passes over the variables in use that do not rest, until these are quiet.
MOST_CHEAP_PASSES = 20
CHEAP_ENOUGH = 0.2
# A row rests for a league when a visit finds no more than this share of the largest violation that may be left, or of
# the gap that may be left for a row.
LITTLE = {"kkt": 0.2, "gap": 0.05}
# A pass sees each row before its own step, so the gap it adds up is larger than the one it leaves behind.
OPTIMISM = 1.5
# Where a certificate finds more violation than the pass before it did.
STRICTER = 0.8
# How often in a pass over all the engine has its turn.
PIECES_OF_A_PASS = 10
# What a checkpoint keeps besides leagues and matches.
NUMBERS = (
    "_pass",
    "_full",
    "_day",
    "_deal",
    "_full_passes",
    "_cheap_passes",
    "_believed",
    "_strict",
    "_loaded",
)


class Leagues(Solver):
    """Matchdays, one after the other; see `schedule.py` and `native/leagues/solver.hpp`.

    A match is always played by the process that has its position, so dual variables stay where they are. Weights
    move, from one matchday to the next.
    """

    def __init__(
        self,
        problem: Problem,
        data: TrainingSet,
        options: SolverOptions,
        *,
        interrupt: Any = None,
        peers: Peers | None = None,
        shrinking: bool = True,
    ):
        if problem.name != "ww":
            raise ValueError(f"solver='leagues' is for 'ww', not for {problem.name!r}; use solver='auto'")
        if data.reduced:
            raise ValueError("solver='leagues' has no feature_reduction; leave it out, or use solver='auto'")
        self._dtype, self._seed, self._threads = np.dtype(options.dtype), options.seed, options.threads
        self._n, self._K, self._C = data.X.n_rows, data.n_classes, data.C
        self._features = data.X.n_features + (data.constant != 0)
        self._peers = peers or Alone()
        self._leagues = options.leagues or league_count(self._K)
        self._shrinking = shrinking
        self._rows_of_class = np.bincount(data.codes, minlength=self._K)
        # With a constant feature, rows pull on the intercepts of all classes they are compared with. Within a match
        # they soon agree on them, but what one match gains another takes back, and while leagues are made up of the
        # same classes it stays so. Other leagues for every pass over all end that.
        self._reshuffles = data.constant != 0 and self._leagues > 1
        self._deal = 0  # how classes are divided now
        self._kernel = native(core, "Leagues", self._dtype)(
            make_layout(data, self._dtype, tail_rows(self._K, LISTED)),
            data.codes,
            data.C.astype(self._dtype),
            self._divided(),
            self._leagues,
        )
        for league in self._at_home():
            self._kernel.start(league)
        # Day -1: every league by itself, at its place of day 0.
        self._pass, self._full, self._day = 0, True, -1
        self._seen: list[tuple[float, ...]] = []  # of this pass and process; see MatchStats in leagues/solver.hpp
        self._full_passes = self._cheap_passes = 0
        self._last_full: tuple[float, float, float, float] | None = None  # loss, gap, alpha_sum, violation
        self._believed = OPTIMISM
        self._strict = 1.0  # share of the largest violation allowed at which a certificate is worth its cost
        self._variables: dict[str, np.ndarray] | None = None  # all of them, since they were last gathered
        self._loaded = False
        self._said = Progress(0.0, np.nan, np.nan, np.nan, active=1.0, ready=False, pass_ended=False)

    # ---- Classes

    def _divided(self) -> np.ndarray:
        """The league of each class."""
        chance = np.random.default_rng([self._seed, self._deal]) if self._deal else None
        return divide_classes(self._rows_of_class, self._leagues, chance)

    def _reshuffle(self) -> None:
        """Divide the classes among the leagues in another way; all variables go to their new matches."""
        self._receive(self._missing())
        alpha = self._dual_rows()
        self._deal = self._full_passes
        self._kernel.divide(self._divided())
        for league in self._at_home():
            self._kernel.start(league)
        self._kernel.set_variables(self._every_match(), alpha)
        self._kernel.refresh(alpha, self._threads)

    # ---- Places

    def _hosts(self, day: int) -> np.ndarray:
        """The process that has each league on a day; after the last day comes day -1 again."""
        return hosts(self._leagues, max(0, day) % matchdays(self._leagues), self._peers.size)

    def _at_home(self) -> list[int]:
        return np.flatnonzero(self._hosts(0) == self._peers.rank).tolist()

    def _matches(self, day: int) -> list[tuple[int, int]]:
        if day < 0:
            return [(league, league) for league in self._at_home()]
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
        """Play some matchdays of the current pass."""
        if self._loaded:
            self._loaded = False
            self._said = replace(self._said, ready=True)
            return self._said
        if self._reshuffles and self._full and self._day < 0 and self._deal < self._full_passes:
            self._reshuffle()
        self._variables = None
        days = matchdays(self._leagues)
        # A cheap pass is little work.
        last = min(days, self._day + -(-days // PIECES_OF_A_PASS)) if self._full else days
        while self._day < last:
            self._play(rule)
            self._day += 1
        ended = self._day == days
        full = self._full
        ready = self._end_pass(rule) if ended else False
        seen = self._last_full
        primal = np.nan if seen is None else 0.5 * (seen[1] + seen[0] + seen[2])
        self._said = Progress(
            epochs=float(self._full_passes),
            primal=primal,
            dual=np.nan if seen is None else primal - seen[1],
            violation=np.nan if seen is None else seen[3],
            active=1.0,
            ready=ready,
            pass_ended=ended and full,
        )
        return self._said

    def _play(self, rule: StopRule) -> None:
        """Play the matches of a day: first those after which a league travels, last those that wait for one."""
        enter, rest = self._levels(rule)
        seed = (self._seed * 0x100000001B3 + self._pass) & 0xFFFFFFFFFFFFFFFF
        matches, missing, leaving = self._matches(self._day), self._missing(), self._leaving()
        late = [match for match in matches if not missing.isdisjoint(match)]
        early = [match for match in matches if not leaving.isdisjoint(match) and match not in late]
        between = [match for match in matches if match not in late + early]
        for now in filter(None, [*self._batches(early), between, *self._batches(late)]):
            playing = {league for match in now for league in match}
            self._receive(missing & playing)
            self._seen += self._kernel.play(
                now, self._full, enter, MOST_NEW[rule.stop], rule.stop == "gap", rest, seed, self._threads
            )
            self._send(leaving & playing)
        # Who has no opponent comes and goes as well.
        self._receive(missing.difference(*matches))
        self._send(leaving)

    def _batches(self, matches: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
        """As many at a time as there are threads, so that leagues travel while others play."""
        return [matches[begin : begin + self._threads] for begin in range(0, len(matches), self._threads)]

    def _levels(self, rule: StopRule) -> tuple[float, float]:
        """What a class must violate by to join a row's variables; what lets a row rest."""
        if rule.stop == "kkt":
            target = self._strict * rule.tol
            return 0.3 * target, LITTLE["kkt"] * target
        if self._last_full is None:
            return 0.0, 0.0
        loss, gap, alpha_sum, _ = self._last_full
        return 0.0, LITTLE["gap"] * rule.tol * 0.5 * abs(gap + loss + alpha_sum) / self._n

    def _missing(self) -> set[int]:
        """The leagues that belong here on this day and are not here yet."""
        mine = np.flatnonzero(self._hosts(self._day) == self._peers.rank).tolist()
        return {league for league in mine if not self._kernel.here(league)}

    def _leaving(self) -> set[int]:
        """The leagues that belong here on this day and elsewhere on the next."""
        now, next_day = self._hosts(self._day), self._hosts(self._day + 1)
        return set(np.flatnonzero((now == self._peers.rank) & (next_day != now)).tolist())

    def _receive(self, leagues: set[int]) -> None:
        """Wait for leagues that come from where they were the day before."""
        sender = self._hosts(self._day - 1 if self._day >= 0 else matchdays(self._leagues) - 1)
        for league in sorted(leagues):
            self._kernel.unpack(league, self._peers.receive(int(sender[league]), league))

    def _send(self, leagues: set[int]) -> None:
        """Send leagues to where they belong on the next day, if they have not gone yet."""
        to = self._hosts(self._day + 1)
        for league in sorted(leagues):
            if self._kernel.here(league):
                self._peers.send(int(to[league]), league, self._kernel.pack(league))
                self._kernel.leave(league)

    def _end_pass(self, rule: StopRule) -> bool:
        """Choose the next pass; tell whether a certificate is worth its cost now."""
        everyone = [figures for part in self._peers.gather(self._seen) for figures in part]
        columns = list(zip(*everyone, strict=True))
        seen = loss, gap, alpha_sum, violation = (*map(math.fsum, columns[:3]), max(columns[3]))
        ready = False
        if self._full:
            self._full_passes += 1
            self._cheap_passes = 0
            self._last_full = seen
            primal = 0.5 * (gap + loss + alpha_sum)
            if rule.stop == "gap":
                ready = gap <= self._believed * rule.tol * abs(primal)
            else:
                ready = violation <= self._strict * rule.tol
                self._strict *= STRICTER if ready else 1.0  # should the certificate not agree
            quiet = False
        else:
            self._cheap_passes += 1
            assert self._last_full is not None
            quiet = (
                violation <= self._strict * rule.tol
                if rule.stop == "kkt"
                else gap <= CHEAP_ENOUGH * self._last_full[1]
            )
        self._full = quiet or not self._shrinking or self._cheap_passes >= MOST_CHEAP_PASSES
        self._pass, self._day, self._seen = self._pass + 1, -1, []
        return ready

    # ---- What is known at any time

    def _all_variables(self) -> dict[str, np.ndarray]:
        """Gather the dual variables of all matches: CSR arrays, by rows and ascending classes."""
        if self._variables is None:
            mine = []
            for a, b in self._every_match():
                mine += [self._kernel.variables(a, b)] + ([self._kernel.variables(b, a)] if a != b else [])
            joined = [np.concatenate(arrays) for arrays in zip(*mine, strict=True)] if mine else None
            parts = [part for part in self._peers.gather(joined) if part is not None]
            rows, classes, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            order = np.argsort(rows.astype(np.int64) * self._K + classes, kind="stable")
            indptr = np.zeros(self._n + 1, np.int64)
            np.cumsum(np.bincount(rows, minlength=self._n), out=indptr[1:])
            self._variables = {"indptr": indptr, "classes": classes[order], "values": values[order]}
        return self._variables

    def _dual_rows(self) -> Any:
        held = self._all_variables()
        return native(core, "DualRows", self._dtype)(held["indptr"], held["classes"], held["values"], self._K)

    def certificate(self) -> Certificate:
        """Certify all variables in float64, each process its leagues, with weights set anew."""
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
        if self._last_full is not None and found.gap > 0:
            loss, gap, alpha_sum, _ = self._last_full
            self._believed = min(self._believed, 0.9 * gap / (0.5 * abs(gap + loss + alpha_sum)) / found.gap)
        return found

    def weights(self) -> np.ndarray | sp.csr_matrix:
        """Weights `(features, K)` from the dual variables."""
        found = self._kernel.weights(self._dual_rows(), self._features, self._threads)
        return as_matrix(found, self._features, self._K)

    def memory(self) -> dict[str, int]:
        """Bytes of data, weights and dual variables of this process."""
        kernel = self._kernel
        return {
            "data": kernel.data_bytes,
            "weights": kernel.weight_bytes,
            "dual_variables": kernel.dual_bytes,
        }

    def state(self) -> dict[str, np.ndarray]:
        """The dual variables by rows: CSR arrays."""
        return dict(self._all_variables())

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from these dual variables, brought back to the feasible set where C has become smaller."""
        row = np.repeat(np.arange(self._n), np.diff(state["indptr"]))
        values = np.minimum(state["values"], self._C[row]).astype(self._dtype)
        self._variables = {"indptr": state["indptr"], "classes": state["classes"], "values": values}
        alpha = self._dual_rows()
        self._kernel.set_variables(self._every_match(), alpha)
        self._kernel.refresh(alpha, self._threads)
        self._loaded = True

    def checkpoint(self) -> dict[str, np.ndarray]:
        """The leagues and the matches that this process has, exactly as they are."""
        self._receive(self._missing())
        numbers = {name: getattr(self, name) for name in NUMBERS} | {"said": asdict(self._said)}
        numbers["_last_full"] = self._last_full
        matches = self._every_match()
        if not matches:
            return {}  # of more processes than positions, some have nothing
        pairs = matches + [(b, a) for a, b in matches if a != b]
        names = ("sizes", "classes", "values", "rests")
        held = zip(*(self._kernel.duel(a, b) for a, b in pairs), strict=True)
        stored = {f"duels.{name}": np.concatenate(arrays) for name, arrays in zip(names, held, strict=True)}
        here = [league for league in range(self._leagues) if self._kernel.here(league)]
        return stored | {
            "numbers": numbers_to_array(numbers),
            "seen": np.array(self._seen, np.float64),
            "duels": np.array(pairs, np.int32),
            **{f"league.{league}": self._kernel.pack(league) for league in here},
        }

    def restore(self, parts: Sequence[dict[str, np.ndarray]]) -> Progress:
        """Go on from a checkpoint: each process takes what belongs to it now."""
        parts = [part for part in parts if part]
        # Checkpoints of earlier versions have classes where they were at the beginning.
        numbers = {"_deal": 0} | numbers_from_array(parts[0]["numbers"])
        held = {name: numbers.get(name) for name in NUMBERS}
        for name, number in of_same_kinds(held, {name: getattr(self, name) for name in NUMBERS}).items():
            setattr(self, name, number)
        last = as_declared(list[float] | None, numbers.get("_last_full"), "last_full")  # type: ignore[arg-type]
        if last is not None and len(last) != 4:
            raise ValueError(f"last_full has {len(last)} numbers")
        self._last_full = None if last is None else (last[0], last[1], last[2], last[3])
        self._said = as_declared(Progress, numbers.get("said"), "said")
        self._seen, self._variables = [], None
        here = np.flatnonzero(self._hosts(self._day) == self._peers.rank).tolist()
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
        return self._said

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

    def untrained(self) -> np.ndarray:
        """Every class takes part in the first pass."""
        return np.empty(0, np.int64)
