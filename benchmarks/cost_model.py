"""What an epoch of leagues costs on R ranks of T threads: pure functions, no measuring, no files.

A visit of a row to a league of k classes, with h non-zeros of frequent features in the row, costs

    h * padded(k) multiply-adds, h reads of the own class's weights, a visit, and
    h updates for each variable in use

so many seconds each (`Machine`). Leagues travel with 4 bytes a weight that is not 0 (6 if its feature is rare), a bit
for each class of a frequent feature, and 4 bytes a rare feature and a row, over a line that a rank has to itself
(`Network`), and are packed and unpacked by the ranks.

Ranks wait for their neighbours only. A rank plays the matches whose leagues it has, then those at its edges, which
wait for the leagues that come: done_r is when rank r has ended a day, and

    done_r <- max(done_r + inner_r, done_{r-1} + travel, done_{r+1} + travel) + edges_r + packing

It leaves out rare features, caches, and the certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from manyclass.solvers.schedule import host_of, matchdays, position_of, positions

LANES = 16  # float32 in a vector: leagues are padded to whole ones
INDEX_BYTES, VALUE_BYTES, COUNT_BYTES = 2, 4, 4


@dataclass(frozen=True)
class Shape:
    """A problem, and how full its solution is.

    Attributes
    ----------
    rows, classes : int
    nonzeros : float
        Non-zeros a row of features that have a dense row of weights ("heads").
    heads, shared : int
        How many such features there are; how many that more than one row has, which all have weights.
    density, support : float
        Share of the weights of shared features that are not 0; dual variables in use a row.
    """

    rows: int
    classes: int
    nonzeros: float
    heads: int
    shared: int
    density: float = 0.0
    support: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Seconds on one core.

    Attributes
    ----------
    multiply_add, own_read, visit, update : float
        Of matches.
    scan, entry, feature : float
        To pack and unpack a league: for a weight, one that is not 0 besides, and a feature.
    """

    multiply_add: float
    own_read: float
    visit: float
    update: float
    scan: float
    entry: float
    feature: float


@dataclass(frozen=True)
class Sample:
    """An epoch on one core: seconds, and seconds to pack and unpack a league."""

    shape: Shape
    leagues: int
    seconds: float
    packing: float


@dataclass(frozen=True)
class Network:
    """The line of a rank, in bytes a second each way, and the seconds until the first byte is there."""

    bandwidth: float
    latency: float


def padded(classes: float) -> int:
    """Classes of a league as they are stored."""
    return int(-(-classes // LANES) * LANES)


def work(shape: Shape, leagues: int) -> np.ndarray:
    """Multiply-adds, reads of the own class, visits and updates of an epoch: a visit changes all that is in use."""
    visits, h = shape.rows * leagues, shape.nonzeros
    return visits * np.array([h * padded(shape.classes / leagues), h, 1.0, h * shape.support / leagues])


def packing_work(shape: Shape, leagues: int) -> np.ndarray:
    """Weights, weights that are not 0, and features that are packed and unpacked with a league."""
    classes = shape.classes / leagues
    return np.array([shape.heads * classes, shape.density * shape.shared * classes, shape.shared])


def fit_machine(samples: Sequence[Sample]) -> Machine:
    """The machine that explains some epochs on one core best, by relative error."""

    def fitted(parts: list[np.ndarray], seconds: list[float]) -> list[float]:
        return nnls(np.array(parts) / np.array(seconds)[:, None], np.ones(len(seconds)))[0].tolist()

    return Machine(
        *fitted([work(s.shape, s.leagues) for s in samples], [s.seconds for s in samples]),
        *fitted([packing_work(s.shape, s.leagues) for s in samples], [s.packing for s in samples]),
    )


def league_bytes(shape: Shape, leagues: int) -> float:
    """Of a league when it travels."""
    classes, tails = shape.classes / leagues, shape.shared - shape.heads
    weights = shape.density * classes * (shape.shared * VALUE_BYTES + tails * INDEX_BYTES)
    return weights + shape.heads * padded(classes) / 8 + tails * COUNT_BYTES + shape.rows / leagues * VALUE_BYTES


def density_of(shape: Shape, leagues: int, measured: float) -> float:
    """The share of weights that are not 0, where leagues have `measured` bytes when they travel."""
    none, all_of_them = (league_bytes(replace(shape, density=density), leagues) for density in (0.0, 1.0))
    return (measured - none) / (all_of_them - none)


def parcels(leagues: int, ranks: int) -> int:
    """How many leagues change ranks in an epoch."""
    days = range(matchdays(leagues) + 1)
    at = [[position_of(league, leagues, day) for league in range(leagues)] for day in days]
    hosts = np.array([[host_of(position, leagues, ranks) for position in day] for day in at])
    return int((hosts[1:] != hosts[:-1]).sum())


def pairs(leagues: int, day: int) -> tuple[np.ndarray, np.ndarray]:
    """Who meets at each position; see `schedule.matchday`. Leagues are even in number."""
    wheel, p = matchdays(leagues), np.arange(positions(leagues))
    second = (day - p) % wheel
    second[0] = wheel
    return (day + p) % wheel, second


def places(leagues: int, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """The first position of each rank; which positions have another rank's next to them."""
    host = np.array([host_of(position, leagues, ranks) for position in range(positions(leagues))])
    next_is_other = np.diff(host) > 0
    at_edge = np.append(next_is_other, False) | np.insert(next_is_other, 0, False)
    return np.flatnonzero(np.insert(next_is_other, 0, True)), at_edge


def epoch_seconds(
    shape: Shape,
    leagues: int,
    ranks: int,
    machine: Machine,
    network: Network,
    *,
    threads: int = 1,
    rows_of_league: np.ndarray | None = None,
    cores: int | None = None,
) -> float:
    """Seconds of an epoch.

    Parameters
    ----------
    shape, leagues, ranks, machine, network
        An even number of leagues, and no more ranks than half of it.
    threads : int
        Of each rank.
    rows_of_league : ndarray, optional
        By default all have the same number.
    cores : int, optional
        That all ranks share; by default there are enough.
    """
    if leagues % 2 or not 1 <= ranks <= leagues // 2:
        raise ValueError(
            f"{leagues} leagues on {ranks} ranks: there must be an even number of them, and two for each rank"
        )
    rows = np.full(leagues, shape.rows / leagues) if rows_of_league is None else rows_of_league
    slower = max(1.0, ranks * threads / cores) if cores else 1.0
    of_matches = [machine.multiply_add, machine.own_read, machine.visit, machine.update]
    visit = slower * float(work(shape, leagues) @ of_matches) / (shape.rows * leagues)
    bytes_each = league_bytes(shape, leagues)
    first, at_edge = places(leagues, ranks)
    neighbours = np.minimum(np.arange(ranks), 1) + np.minimum(np.arange(ranks)[::-1], 1)
    travel = network.latency + neighbours.max() * bytes_each / network.bandwidth  # both ways out share the line
    packing = packing_work(shape, leagues) @ [machine.scan, machine.entry, machine.feature] * slower * neighbours

    def played(seconds: np.ndarray) -> np.ndarray:
        """By ranks: as long as the longest match, or as all of them on all threads."""
        return np.maximum(np.maximum.reduceat(seconds, first), np.add.reduceat(seconds, first) / threads)

    a, b = pairs(leagues, 0)
    done = np.add.reduceat((rows[a] + rows[b]) * visit, first) / threads  # each league by itself
    for day in range(matchdays(leagues)):
        a, b = pairs(leagues, day)
        seconds = (rows[a] + rows[b]) * visit
        begin = done + played(np.where(at_edge, 0.0, seconds))
        if day > 0:
            begin[1:] = np.maximum(begin[1:], done[:-1] + travel)
            begin[:-1] = np.maximum(begin[:-1], done[1:] + travel)
        done = begin + played(np.where(at_edge, seconds, 0.0)) + packing
    return float(done.max() + (travel if ranks > 1 else 0.0))
