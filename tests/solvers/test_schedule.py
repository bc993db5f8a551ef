"""Every pair of leagues meets once an epoch, no league plays twice a day, and leagues only ever walk next door."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyclass.solvers.schedule import (
    MOST_LEAGUES,
    divide_classes,
    host_of,
    league_count,
    matchday,
    matchdays,
    position_of,
    positions,
)

LEAGUES = range(1, 41)


def pairs(leagues, day):
    return [frozenset((match.first, match.second)) for match in matchday(leagues, day)]


@pytest.mark.parametrize("leagues", LEAGUES)
def test_every_pair_meets_once_an_epoch(leagues):
    days = [pairs(leagues, day) for day in range(matchdays(leagues))]
    assert Counter(pair for day in days for pair in day) == Counter(map(frozenset, combinations(range(leagues), 2)))
    for day in days:
        # Where their number is odd, one of them has no opponent.
        assert len(frozenset().union(*day)) == 2 * len(day) == leagues - leagues % 2


@pytest.mark.parametrize("leagues", LEAGUES)
def test_equals_the_formula_of_the_paper(leagues):
    """Alber et al. have (2r - c) mod (E - 1), which gives 0 for E - 1: counted from 1, it is shifted by one."""
    E = leagues + leagues % 2
    for r in range(1, E):
        partner = {c: E if c == r else r if c == E else (2 * r - c - 1) % (E - 1) + 1 for c in range(1, E + 1)}
        met = {frozenset((c - 1, other - 1)) for c, other in partner.items() if max(c, other) <= leagues}
        assert met == set(pairs(leagues, r - 1))


@pytest.mark.parametrize("leagues", LEAGUES)
def test_a_match_is_where_its_leagues_are(leagues):
    for day in range(matchdays(leagues)):
        for match in matchday(leagues, day):
            assert position_of(match.first, leagues, day) == position_of(match.second, leagues, day) == match.position
        found = Counter(position_of(league, leagues, day) for league in range(leagues))
        assert set(found) == set(range(positions(leagues))) and max(found.values()) <= 2


@pytest.mark.parametrize("leagues", LEAGUES)
def test_a_league_moves_next_door_and_is_back_after_an_epoch(leagues):
    for league in range(leagues):
        walk = [position_of(league, leagues, day) for day in range(matchdays(leagues) + 1)]
        assert np.abs(np.diff(walk)).max(initial=0) <= 1
        assert walk[0] == walk[-1]


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 20, 33])
@pytest.mark.parametrize("leagues", LEAGUES)
def test_workers_have_neighbouring_positions(leagues, workers):
    hosts = [host_of(position, leagues, workers) for position in range(positions(leagues))]
    assert hosts == sorted(hosts) and hosts[0] == 0 and hosts[-1] < workers
    counts = np.bincount(hosts, minlength=workers)
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("leagues", [9, 10, 24, 32])
def test_one_league_goes_each_way_between_two_workers(leagues, workers):
    for day in range(matchdays(leagues)):
        hosts = [
            [host_of(position_of(league, leagues, on), leagues, workers) for league in range(leagues)]
            for on in (day, day + 1)
        ]
        moves = Counter((before, after) for before, after in zip(*hosts, strict=True) if before != after)
        assert all(abs(before - after) == 1 and count == 1 for (before, after), count in moves.items())


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200), st.data())
def test_classes_are_dealt_evenly(rows, data):
    rows = np.array(rows)
    leagues = data.draw(st.integers(1, len(rows)))
    league = divide_classes(rows, leagues)
    assert league.dtype == np.int32
    classes = np.bincount(league, minlength=leagues)
    assert len(classes) == leagues and classes.min() >= 1 and classes.max() - classes.min() <= 1
    # Each round of dealing leaves leagues at most the largest class of that round apart, so the first bounds all.
    held = np.bincount(league, weights=rows, minlength=leagues)
    assert held.max() - held.min() <= rows.max()


@pytest.mark.parametrize("leagues", [-1, 0, 4])
def test_more_leagues_than_classes_are_refused(leagues):
    with pytest.raises(
        ValueError, match=f"3 classes cannot be divided into {leagues} leagues; choose between 1 and 3"
    ):
        divide_classes(np.ones(3, np.int64), leagues)


def test_the_number_of_leagues_follows_from_that_of_classes():
    counts = [league_count(K) for K in range(1, 30_000)]
    assert all(min(2, K) <= count <= min(K, MOST_LEAGUES) for K, count in enumerate(counts, 1))
    assert counts == sorted(counts)
    assert all(count % 2 == 0 for count in counts[1:])
