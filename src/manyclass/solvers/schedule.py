"""The schedule of leagues of classes: matchdays by 1-factorisation of the complete graph.

Each league meets every other league once per pass. The matches of a matchday have no league in common, so they can
be played at the same time. Each match has a *position*, and each worker has a range of positions. A league whose next
match is at another worker has to travel, so the order of the matches decides how much travels.

The leagues are dealt to four quarters A, B, C, D with s seats each (some of them empty if the number of leagues is
not a multiple of 4), and there are two tables with s positions each. A pass has three rounds:

    round   table 0   table 1   days      who meets
    0       A and B   C and D   2 s - 1   every pair of the table's leagues, by the circle method
    1       A and C   B and D   s         every league of one quarter and every league of the other: one quarter
    2       A and D   B and C   s         stays, the other moves around

Two workers have one table each: they swap a quarter between rounds, and nothing travels within a round. With more
workers, those at a table pass leagues on to their neighbours, whereas the circle method alone would swap leagues with
both neighbours. After a pass every league returns to where it started.
"""

from typing import NamedTuple

import numpy as np

# A row visits the classes of one league at a time, and reads the weights of its own class each time. Smaller leagues
# spend more time on that, larger leagues leave fewer matches for workers to share.
CLASSES_PER_LEAGUE = 256
FEWEST_CLASSES = 64
MANY_LEAGUES = 8
MOST_LEAGUES = 32


class Match(NamedTuple):
    """Two leagues at a position."""

    position: int
    first: int
    second: int


def league_count(n_classes: int) -> int:
    """Return the default number of leagues, which does not depend on the number of workers."""
    wanted = max(n_classes // CLASSES_PER_LEAGUE, min(MANY_LEAGUES, n_classes // FEWEST_CLASSES), 1)
    return min(4 * _seats(wanted), MOST_LEAGUES, n_classes)


def divide_classes(rows_of_class: np.ndarray, leagues: int, chance: np.random.Generator | None = None) -> np.ndarray:
    """Return the league of each class: leagues differ by at most one class, and have about the same number of rows.

    With `chance`, deal at random instead, almost as evenly.
    """
    K = len(rows_of_class)
    if not 1 <= leagues <= K:
        raise ValueError(f"{K} classes cannot be divided into {leagues} leagues; choose between 1 and {K}")
    league = np.empty(K, np.int32)
    rows = np.zeros(leagues, np.int64)
    largest_first = np.argsort(-rows_of_class, kind="stable")
    for begin in range(0, K, leagues):
        # One class per league: the largest goes to the league with the fewest rows so far, or to any at random.
        dealt = largest_first[begin : begin + leagues]
        order = np.argsort(rows, kind="stable") if chance is None else chance.permutation(leagues)
        to = order[: len(dealt)]
        league[dealt] = to
        rows[to] += rows_of_class[dealt]
    return league


def positions(leagues: int) -> int:
    """Return the largest number of matches per matchday: two tables with a quarter of the leagues each."""
    return 2 * _seats(leagues)


def matchdays(leagues: int) -> int:
    """Return the number of matchdays per pass."""
    return 4 * _seats(leagues) - 1


def places(leagues: int, day: int) -> np.ndarray:
    """Return the position of each league on a day of `matchdays`, even if it has no opponent."""
    seats = _seats(leagues)
    quarter, seat = np.arange(leagues) % 4, np.arange(leagues) // 4
    if day < 2 * seats - 1:
        # Number odd quarters from the other end, so that on day 0 each league is at the position of its seat.
        at = circle(np.where(quarter % 2, 2 * seats - 1 - seat, seat), 2 * seats, day)
        return quarter // 2 * seats + at
    second_round, turn = divmod(day - (2 * seats - 1), seats)
    stays = quarter < 2
    table = quarter % 2 ^ np.where(stays, 0, second_round)
    return table * seats + np.where(stays, seat, (seat + turn) % seats)


def circle(player: np.ndarray, players: int, day: int) -> np.ndarray:
    """Return the positions of players on a day of the circle method, for an even number of players.

    The last player is always at position 0. The others sit around a wheel of `players - 1` places, which turns by one
    place per day; players that face each other meet.
    """
    wheel = players - 1
    ahead = (player - day) % wheel
    return np.where(player == wheel, 0, np.minimum(ahead, wheel - ahead))


def matchday(leagues: int, day: int) -> list[Match]:
    """Return the matches of a day by position, without leagues that have no opponent."""
    at = places(leagues, day)
    order = np.argsort(at, kind="stable")
    meet = np.flatnonzero(np.diff(at[order]) == 0)
    return [Match(int(at[order[i]]), int(order[i]), int(order[i + 1])) for i in meet]


def hosts(leagues: int, day: int, workers: int) -> np.ndarray:
    """Return the worker of each league on a day. Workers have ranges of positions of nearly equal size."""
    return places(leagues, day) * workers // positions(leagues)


def _seats(leagues: int) -> int:
    return -(-leagues // 4)
