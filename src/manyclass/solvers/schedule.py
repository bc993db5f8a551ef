"""Who plays whom, and when: leagues of classes, and matchdays by 1-factorisation of the complete graph.

Each league meets every other one once in an epoch. The matches of a matchday have no league in common, so they can go
on at the same time. Each has a *position*, and workers share out the positions in one piece each. A league whose next
match is with another worker has to travel, so the order of the matches decides how much travels.

The leagues are dealt to four quarters A, B, C, D with s seats each (some of them empty where the number of leagues is
not a multiple of 4), and there are two tables of s positions. An epoch has three rounds:

    round   table 0   table 1   days      who meets
    0       A and B   C and D   2 s - 1   every pair of the table's leagues: the circle method
    1       A and C   B and D   s         each of one quarter meets each of the other: one quarter stays,
    2       A and D   B and C   s         the other goes round

Two workers have a table each: between rounds they swap a quarter, and within them nothing travels. Of more workers,
those at a table pass leagues on to their neighbours, where the circle method alone would have them swap leagues with
both. After an epoch every league goes back to where it began.
"""

from typing import NamedTuple

import numpy as np

# A row visits the classes of one league at a time, and reads its own class's weights each time: leagues of fewer
# classes spend more on that, larger ones leave fewer matches for workers to share.
CLASSES_A_LEAGUE = 256
FEWEST_CLASSES = 64
MANY_LEAGUES = 8
MOST_LEAGUES = 32


class Match(NamedTuple):
    """Two leagues at a position."""

    position: int
    first: int
    second: int


def league_count(n_classes: int) -> int:
    """How many leagues a problem has, if nobody asks for more: never a matter of the workers there are."""
    wanted = max(n_classes // CLASSES_A_LEAGUE, min(MANY_LEAGUES, n_classes // FEWEST_CLASSES), 1)
    return min(4 * _seats(wanted), MOST_LEAGUES, n_classes)


def divide_classes(rows_of_class: np.ndarray, leagues: int, chance: np.random.Generator | None = None) -> np.ndarray:
    """Deal classes to leagues so that all have as many classes and about as many rows.

    Parameters
    ----------
    rows_of_class : ndarray of shape (K,)
        How many rows each class has.
    leagues : int
        At most K.
    chance : Generator, optional
        Divide at random instead of always in the same way, almost as evenly.

    Returns
    -------
    int32 ndarray of shape (K,)
        The league of each class. Numbers of classes differ by at most one.
    """
    K = len(rows_of_class)
    if not 1 <= leagues <= K:
        raise ValueError(f"{K} classes cannot be divided into {leagues} leagues; choose between 1 and {K}")
    league = np.empty(K, np.int32)
    rows = np.zeros(leagues, np.int64)
    largest_first = np.argsort(-rows_of_class, kind="stable")
    for begin in range(0, K, leagues):
        # One class each: the largest to the league with the fewest rows so far, or as chance has it.
        dealt = largest_first[begin : begin + leagues]
        order = np.argsort(rows, kind="stable") if chance is None else chance.permutation(leagues)
        to = order[: len(dealt)]
        league[dealt] = to
        rows[to] += rows_of_class[dealt]
    return league


def positions(leagues: int) -> int:
    """Matches of a matchday at most: two tables of a quarter of the leagues each."""
    return 2 * _seats(leagues)


def matchdays(leagues: int) -> int:
    """Matchdays of an epoch."""
    return 4 * _seats(leagues) - 1


def places(leagues: int, day: int) -> np.ndarray:
    """The position of each league on a day, whether it has an opponent or not.

    Parameters
    ----------
    leagues : int
    day : int
        0 to `matchdays(leagues) - 1`.
    """
    seats = _seats(leagues)
    quarter, seat = np.arange(leagues) % 4, np.arange(leagues) // 4
    if day < 2 * seats - 1:
        # Odd quarters from the other end: at first, each league is at the position of its own seat.
        at = circle(np.where(quarter % 2, 2 * seats - 1 - seat, seat), 2 * seats, day)
        return quarter // 2 * seats + at
    second_round, turn = divmod(day - (2 * seats - 1), seats)
    stays = quarter < 2
    table = quarter % 2 ^ np.where(stays, 0, second_round)
    return table * seats + np.where(stays, seat, (seat + turn) % seats)


def circle(player: np.ndarray, players: int, day: int) -> np.ndarray:
    """Where players are on a day of the circle method, for an even number of them.

    The last one is always at position 0. The others sit around a wheel of `players - 1` places, which turns by one a
    day; those that face each other meet.
    """
    wheel = players - 1
    ahead = (player - day) % wheel
    return np.where(player == wheel, 0, np.minimum(ahead, wheel - ahead))


def matchday(leagues: int, day: int) -> list[Match]:
    """The matches of a day, by positions; leagues without an opponent are left out."""
    at = places(leagues, day)
    order = np.argsort(at, kind="stable")
    meet = np.flatnonzero(np.diff(at[order]) == 0)
    return [Match(int(at[order[i]]), int(order[i]), int(order[i + 1])) for i in meet]


def hosts(leagues: int, day: int, workers: int) -> np.ndarray:
    """The worker of each league on a day. Workers have neighbouring positions, as many as the others or one more."""
    return places(leagues, day) * workers // positions(leagues)


def _seats(leagues: int) -> int:
    return -(-leagues // 4)
