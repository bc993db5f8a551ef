"""Predict how long a pass of leagues takes on R ranks of T threads. Pure functions: no measuring, no files.

A visit of a row to a league of k classes, with h non-zeros of frequent features in the row, costs

    h * padded(k) multiply-adds, h reads of the weights of the row's own class, a visit, and
    h updates per variable in use

each of which takes a fixed time (`Machine`). A league travels over a link that a rank has to itself (`Network`), with
4 bytes per weight that is not 0 (6 if its feature is rare), one bit per class and frequent feature, and 4 bytes per
rare feature and per row. Ranks pack and unpack leagues.

On each day a rank first plays the matches after which a league travels, and plays last those that wait for a league.
Leagues leave one after the other as their matches end. So the first arrives early, and the last when the link has
carried all of them, or after the last match of a league that leaves. Ranks wait for nothing else.

Rare features, caches and the certificate are not modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from manyclass.solvers.schedule import hosts, matchdays, places, positions

LANES = 16  # float32 per vector; leagues are padded to whole vectors
INDEX_BYTES, VALUE_BYTES, COUNT_BYTES = 2, 4, 4


@dataclass(frozen=True)
class Shape:
    """A problem and the density of its solution.

    Attributes
    ----------
    rows, classes : int
    nonzeros : float
        Non-zeros per row of features that have a dense row of weights ("heads").
    heads, shared : int
        Number of such features; number of features of more than one row, which all have weights.
    density, support : float
        Share of the weights of shared features that are not 0; dual variables in use per row.
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
        For matches.
    scan, entry, feature : float
        To pack and unpack a league: per weight, per non-zero weight (in addition), and per feature.
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
    """A pass measured on one core: its seconds, and the seconds to pack and unpack a league."""

    shape: Shape
    leagues: int
    seconds: float
    packing: float


@dataclass(frozen=True)
class Network:
    """The network link of a rank: bytes per second in each direction, and latency in seconds."""

    bandwidth: float
    latency: float


def padded(classes: float) -> int:
    """Return the number of classes for which a league has room."""
    return int(-(-classes // LANES) * LANES)


def work(shape: Shape, leagues: int) -> np.ndarray:
    """Return multiply-adds, reads of the own class, visits and updates of a pass: a visit updates all in use."""
    visits, h = shape.rows * leagues, shape.nonzeros
    return visits * np.array([h * padded(shape.classes / leagues), h, 1.0, h * shape.support / leagues])


def packing_work(shape: Shape, leagues: int) -> np.ndarray:
    """Return the weights, non-zero weights and features that are packed and unpacked with a league."""
    classes = shape.classes / leagues
    return np.array([shape.heads * classes, shape.density * shape.shared * classes, shape.shared])


def fit_machine(samples: Sequence[Sample]) -> Machine:
    """Fit the machine constants to passes measured on one core, minimising the relative error."""

    def fitted(parts: list[np.ndarray], seconds: list[float]) -> list[float]:
        return nnls(np.array(parts) / np.array(seconds)[:, None], np.ones(len(seconds)))[0].tolist()

    return Machine(
        *fitted([work(s.shape, s.leagues) for s in samples], [s.seconds for s in samples]),
        *fitted([packing_work(s.shape, s.leagues) for s in samples], [s.packing for s in samples]),
    )


def league_bytes(shape: Shape, leagues: int) -> float:
    """Return the bytes of a league when it travels."""
    classes, tails = shape.classes / leagues, shape.shared - shape.heads
    weights = shape.density * classes * (shape.shared * VALUE_BYTES + tails * INDEX_BYTES)
    return weights + shape.heads * padded(classes) / 8 + tails * COUNT_BYTES + shape.rows / leagues * VALUE_BYTES


def density_of(shape: Shape, leagues: int, measured: float) -> float:
    """Return the share of weights that are not 0 if leagues that travel have `measured` bytes."""
    none, all_of_them = (league_bytes(replace(shape, density=density), leagues) for density in (0.0, 1.0))
    return (measured - none) / (all_of_them - none)


def parcels(leagues: int, ranks: int) -> int:
    """Return the number of leagues that change ranks in a pass, including the way back."""
    at = np.array([hosts(leagues, day % matchdays(leagues), ranks) for day in range(matchdays(leagues) + 1)])
    return int((at[1:] != at[:-1]).sum())


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
    """Return the seconds of a pass.

    Parameters
    ----------
    shape, leagues, ranks, machine, network
        There must be at least as many positions as ranks.
    threads : int
        Per rank.
    rows_of_league : ndarray, optional
        By default, all leagues have the same number of rows.
    cores : int, optional
        Shared by all ranks; by default there are enough.
    """
    if not 1 <= ranks <= positions(leagues):
        raise ValueError(f"{leagues} leagues on {ranks} ranks: there must be two for each rank")
    rows = np.full(leagues, shape.rows / leagues) if rows_of_league is None else rows_of_league
    slower = max(1.0, ranks * threads / cores) if cores else 1.0
    of_matches = [machine.multiply_add, machine.own_read, machine.visit, machine.update]
    visit = slower * float(work(shape, leagues) @ of_matches) / (shape.rows * leagues)
    carried = league_bytes(shape, leagues) / network.bandwidth
    packing = slower * float(packing_work(shape, leagues) @ [machine.scan, machine.entry, machine.feature])
    rank_of = np.arange(positions(leagues)) * ranks // positions(leagues)
    first = np.searchsorted(rank_of, np.arange(ranks))

    def played(seconds: np.ndarray) -> np.ndarray:
        """Return by rank the larger of the longest match and all matches divided among the threads."""
        return np.maximum(np.maximum.reduceat(seconds, first), np.add.reduceat(seconds, first) / threads)

    def share(waits: np.ndarray) -> np.ndarray:
        """Return by rank the share of these matches that a single one takes."""
        return 1 / np.maximum(1, np.add.reduceat(waits, first))

    now = hosts(leagues, 0, ranks)
    done = np.bincount(now, rows * visit, ranks) / threads  # each league by itself
    before, first_in, last_in = now, np.zeros(ranks), np.zeros(ranks)
    for day in range(matchdays(leagues)):
        at, after = places(leagues, day), hosts(leagues, (day + 1) % matchdays(leagues), ranks)
        comes, goes = before != now, now != after
        many = positions(leagues)
        seconds = np.where(np.bincount(at, minlength=many) == 2, np.bincount(at, rows, many), 0.0) * visit
        late, leaves = np.bincount(at, comes, many) > 0, np.bincount(at, goes, many) > 0
        early = leaves & ~late
        ended_early = done + played(seconds * early)
        begun_late = np.maximum(ended_early + played(seconds * ~(early | late)), first_in)
        of_late = played(seconds * late)
        first_out = np.where(
            np.add.reduceat(early, first) > 0,
            done + played(seconds * early) * share(early),
            begun_late + of_late * share(late),
        )
        done = np.maximum(begun_late + of_late, last_in + of_late * share(late))
        done += packing * 0.5 * (np.bincount(now, comes, ranks) + np.bincount(now, goes, ranks))
        last_out = np.where(np.add.reduceat(leaves & late, first) > 0, done, ended_early)
        arrives_first = first_out + network.latency + carried
        arrives_last = network.latency + np.maximum(
            last_out + carried, first_out + carried * np.bincount(now, goes, ranks)
        )
        first_in, last_in = np.full(ranks, np.inf), np.zeros(ranks)
        np.minimum.at(first_in, after[goes], arrives_first[now[goes]])
        np.maximum.at(last_in, after[goes], arrives_last[now[goes]])
        first_in[np.isinf(first_in)] = 0.0
        before, now = now, after
    return float(max(done.max(), last_in.max()))
