"""Every pair of leagues meets once per pass, no league plays twice a day, and few of them travel."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyclass.solvers.schedule import (
    MOST_LEAGUES,
    circle,
    divide_classes,
    hosts,
    league_count,
    matchday,
    matchdays,
    places,
    positions,
)

LEAGUES = range(1, 41)


def pairs(leagues, day):
    return [frozenset((match.first, match.second)) for match in matchday(leagues, day)]


@pytest.mark.parametrize("leagues", LEAGUES)
def test_every_pair_meets_once_per_pass(leagues):
    days = [pairs(leagues, day) for day in range(matchdays(leagues))]
    assert Counter(pair for day in days for pair in day) == Counter(map(frozenset, combinations(range(leagues), 2)))
    for day in days:
        assert len(frozenset().union(*day)) == 2 * len(day)
        # Some seats are empty if the number of leagues is not a multiple of 4.
        assert leagues % 4 or 2 * len(day) == leagues


@pytest.mark.parametrize("players", range(2, 41, 2))
def test_the_circle_is_the_formula_of_the_paper(players):
    """Alber et al. use (2r - c) mod (E - 1), which is 0 for E - 1; counted from 1, it is shifted by one."""
    for r in range(1, players):
        partner = {
            c: players if c == r else r if c == players else (2 * r - c - 1) % (players - 1) + 1
            for c in range(1, players + 1)
        }
        at = circle(np.arange(players), players, r - 1)
        assert {frozenset(np.flatnonzero(at == p).tolist()) for p in range(players // 2)} == {
            frozenset((c - 1, other - 1)) for c, other in partner.items()
        }


@pytest.mark.parametrize("leagues", LEAGUES)
def test_a_match_is_where_its_leagues_are(leagues):
    for day in range(matchdays(leagues)):
        at = places(leagues, day)
        for match in matchday(leagues, day):
            assert at[match.first] == at[match.second] == match.position
        found = Counter(at.tolist())
        assert set(found) <= set(range(positions(leagues))) and max(found.values()) <= 2


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 20, 33])
@pytest.mark.parametrize("leagues", LEAGUES)
def test_workers_have_neighbouring_positions(leagues, workers):
    worker_of = {}
    for day in range(matchdays(leagues)):
        worker_of |= dict(zip(places(leagues, day).tolist(), hosts(leagues, day, workers).tolist(), strict=True))
    found = [worker_of[position] for position in sorted(worker_of)]
    assert found == sorted(found) and found[0] >= 0 and found[-1] < workers
    if leagues % 4 == 0:
        counts = np.bincount(found, minlength=workers)
        assert counts.max() - counts.min() <= 1


def last_days_of_rounds(leagues):
    seats = leagues // 4
    return [2 * seats - 2, 3 * seats - 2, 4 * seats - 2]


def moves(leagues, workers):
    """Return who sends how many leagues to whom before each day, and last on the way back to the start."""
    at = [hosts(leagues, day % matchdays(leagues), workers) for day in range(matchdays(leagues) + 1)]
    return [
        Counter((a, b) for a, b in zip(before.tolist(), after.tolist(), strict=True) if a != b)
        for before, after in pairwise(at)
    ]


@pytest.mark.parametrize("leagues", [4, 8, 12, 32])
def test_two_workers_swap_a_quarter_three_times(leagues):
    swap = Counter({(0, 1): leagues // 4, (1, 0): leagues // 4})
    days = moves(leagues, 2)
    assert [day for day, sent in enumerate(days) if sent] == last_days_of_rounds(leagues)
    assert all(sent == swap for sent in days if sent)


@pytest.mark.parametrize(("leagues", "workers"), [(32, 4), (32, 8), (32, 16), (64, 6), (128, 16)])
def test_less_travels_than_by_the_circle_alone(leagues, workers):
    """By the circle alone, two leagues cross each border between workers every day."""
    sent = sum(sum(day.values()) for day in moves(leagues, workers))
    assert sent < 2 * (workers - 1) * (leagues - 1)


@pytest.mark.parametrize(("leagues", "workers"), [(32, 4), (32, 8), (128, 16)])
def test_within_a_round_leagues_move_to_a_neighbour_or_around_a_table(leagues, workers):
    for day, sent in enumerate(moves(leagues, workers)):
        if day not in last_days_of_rounds(leagues):
            assert all(abs(a - b) in (1, workers // 2 - 1) and count == 1 for (a, b), count in sent.items())


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200), st.data())
def test_classes_are_dealt_evenly(rows, data):
    rows = np.array(rows)
    leagues = data.draw(st.integers(1, len(rows)))
    chance = data.draw(st.none() | st.integers(0, 100).map(np.random.default_rng))
    league = divide_classes(rows, leagues, chance)
    assert league.dtype == np.int32
    classes = np.bincount(league, minlength=leagues)
    assert len(classes) == leagues and classes.min() >= 1 and classes.max() - classes.min() <= 1
    # Each deal of one class per league adds at most the largest minus the smallest of these classes to a difference.
    # The next deal starts at that smallest class, so all deals together add at most the largest class.
    held = np.bincount(league, weights=rows, minlength=leagues)
    assert held.max() - held.min() <= rows.max()


@pytest.mark.parametrize("leagues", [-1, 0, 4])
def test_more_leagues_than_classes_are_rejected(leagues):
    with pytest.raises(
        ValueError, match=f"3 classes cannot be divided into {leagues} leagues; choose between 1 and 3"
    ):
        divide_classes(np.ones(3, np.int64), leagues)


def test_the_number_of_leagues_depends_on_the_number_of_classes():
    counts = [league_count(K) for K in range(1, 30_000)]
    assert counts[:3] == [1, 2, 3] and all(count % 4 == 0 for count in counts[3:])
    assert counts == sorted(counts) and counts[-1] == MOST_LEAGUES
