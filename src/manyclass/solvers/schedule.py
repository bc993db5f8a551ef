"""Who plays whom, and when: leagues of classes, and matchdays by 1-factorisation of the complete graph.

Each league meets every other one once in an epoch. The matches of a matchday have no league in common, so they can go
on at the same time. With E the number of leagues, or one more if that is odd, matchday r is written as E / 2
*positions*, where position 0 has the leagues r and E - 1, and position p > 0 the leagues r + p and r - p (modulo
E - 1). From one matchday to the next a league only ever moves to a neighbouring position:

    r + p                the first of position p     moves to p - 1, as first
    r - p                the second of position p    moves to p + 1, as second
    r                    the first of position 0     moves to 1, as second
    r - (E / 2 - 1)      the second of the last one  stays there, as first
    E - 1                always at position 0

so that workers who share out the positions in one piece each exchange one league with each neighbour a matchday.
After the E - 1 matchdays of an epoch every league is back where it began.
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
    wanted = max(n_classes // CLASSES_A_LEAGUE, min(MANY_LEAGUES, n_classes // FEWEST_CLASSES), 2)
    return min(wanted + wanted % 2, MOST_LEAGUES, n_classes)


def divide_classes(rows_of_class: np.ndarray, leagues: int) -> np.ndarray:
    """Deal classes to leagues so that all have as many classes and about as many rows.

    Parameters
    ----------
    rows_of_class : ndarray of shape (K,)
        How many rows each class has.
    leagues : int
        At most K.

    Returns
    -------
    int32 ndarray of shape (K,)
        The league of each class. Numbers of classes differ by one at the most.
    """
    K = len(rows_of_class)
    if not 1 <= leagues <= K:
        raise ValueError(f"{K} classes cannot be divided into {leagues} leagues; choose between 1 and {K}")
    league = np.empty(K, np.int32)
    rows = np.zeros(leagues, np.int64)
    largest_first = np.argsort(-rows_of_class, kind="stable")
    for begin in range(0, K, leagues):
        # A class each, the largest of them to the league with the fewest rows so far.
        dealt = largest_first[begin : begin + leagues]
        to = np.argsort(rows, kind="stable")[: len(dealt)]
        league[dealt] = to
        rows[to] += rows_of_class[dealt]
    return league


def positions(leagues: int) -> int:
    """Matches of a matchday, that of the league without an opponent included where their number is odd."""
    return (leagues + 1) // 2


def matchdays(leagues: int) -> int:
    """Matchdays of an epoch."""
    return max(0, 2 * positions(leagues) - 1)


def matchday(leagues: int, day: int) -> list[Match]:
    """The matches of a day.

    Parameters
    ----------
    leagues : int
    day : int
        0 to `matchdays(leagues) - 1`.

    Returns
    -------
    list of Match
        By positions; the one where a league has no opponent is left out.
    """
    wheel = matchdays(leagues)
    pairs = [(day % wheel, wheel)] if wheel else []
    pairs += [((day + p) % wheel, (day - p) % wheel) for p in range(1, positions(leagues))]
    return [Match(p, a, b) for p, (a, b) in enumerate(pairs) if max(a, b) < leagues]


def position_of(league: int, leagues: int, day: int) -> int:
    """Where a league is on a day, whether it has an opponent or not."""
    wheel = matchdays(leagues)
    if league >= wheel:
        return 0
    ahead = (league - day) % wheel
    return min(ahead, wheel - ahead)


def host_of(position: int, leagues: int, workers: int) -> int:
    """Which of the workers has a position: each has neighbouring ones, as many as the others or one more."""
    return position * workers // positions(leagues)
