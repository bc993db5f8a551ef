"""The cost model, compared with results derived by hand."""

from dataclasses import astuple, replace

import numpy as np
import pytest
from benchmarks.cost_model import (
    Machine,
    Network,
    Sample,
    Shape,
    density_of,
    epoch_seconds,
    fit_machine,
    league_bytes,
    packing_work,
    parcels,
    work,
)

SHAPE = Shape(rows=6400, classes=1024, nonzeros=20.0, heads=1000, shared=3000, density=0.1, support=50.0)
MACHINE = Machine(multiply_add=1e-10, own_read=1e-9, visit=1e-7, update=1e-9, scan=0.0, entry=0.0, feature=0.0)
FREE = Network(bandwidth=np.inf, latency=0.0)


def alone(shape, leagues, machine=MACHINE):
    return float(work(shape, leagues) @ [machine.multiply_add, machine.own_read, machine.visit, machine.update])


@pytest.mark.parametrize("leagues", [1, 2, 7, 8, 32])
def test_one_rank_does_all_the_work(leagues):
    assert epoch_seconds(SHAPE, leagues, 1, MACHINE, FREE) == pytest.approx(alone(SHAPE, leagues))


@pytest.mark.parametrize(("ranks", "threads"), [(2, 1), (4, 1), (16, 1), (1, 8), (2, 4)])
def test_what_costs_nothing_to_send_is_shared_out_evenly(ranks, threads):
    """The last matches of a rank start after the others, so some threads may have none."""
    taken = epoch_seconds(SHAPE, 32, ranks, MACHINE, FREE, threads=threads)
    ideal = alone(SHAPE, 32) / (ranks * threads)
    assert taken == pytest.approx(ideal) if threads == 1 or ranks == 1 else ideal < taken < 2 * ideal
    assert epoch_seconds(SHAPE, 32, ranks, MACHINE, FREE, threads=threads, cores=1) >= alone(SHAPE, 32) * 0.999


def test_what_travels_is_hidden_behind_other_matches():
    """With eight matches per rank and day, a league leaves after the first, or after each match if all leave."""
    free = epoch_seconds(SHAPE, 64, 4, MACHINE, FREE)
    match = alone(SHAPE, 64) / 64 / 32
    hidden = epoch_seconds(SHAPE, 64, 4, MACHINE, Network(np.inf, 5.9 * match))
    seen = epoch_seconds(SHAPE, 64, 4, MACHINE, Network(np.inf, 20 * match))
    assert hidden == pytest.approx(free + 5.9 * match)  # only for the way home
    assert seen > free + 20 * 20 * match


def test_a_line_carries_one_league_after_the_other():
    """Two ranks swap eight leagues three times, and wait if the network is slower than the matches."""
    free = epoch_seconds(SHAPE, 32, 2, MACHINE, FREE)
    slow = Network(league_bytes(SHAPE, 32) / 1.0, 0.0)  # one second per league
    assert epoch_seconds(SHAPE, 32, 2, MACHINE, slow) == pytest.approx(free + 3 * 8, rel=0.05)


def test_with_one_position_a_rank_nothing_is_hidden():
    free = epoch_seconds(SHAPE, 32, 16, MACHINE, FREE)
    assert epoch_seconds(SHAPE, 32, 16, MACHINE, Network(np.inf, 0.01)) == pytest.approx(free + 31 * 0.01)


def test_a_large_league_holds_its_neighbours_up_only():
    rows = np.full(32, 200.0)
    rows[3] = 2000.0
    taken = epoch_seconds(SHAPE, 32, 16, MACHINE, FREE, rows_of_league=rows)
    even = epoch_seconds(SHAPE, 32, 16, MACHINE, FREE)
    assert 3 * even < taken <= 1.001 * (2200 / 400) * even


def test_constants_come_back_from_the_times_they_make():
    shapes = [
        SHAPE,
        Shape(75_000, 12_582, 9.0, 15_000, 20_000, 0.01, 70.0),
        Shape(4463, 1139, 124.0, 15_646, 35_306, 0.5, 300.0),
    ]
    true = Machine(2e-10, 3e-9, 5e-7, 1e-9, 4e-10, 3e-9, 2e-9)
    samples = [
        Sample(
            shape,
            leagues,
            alone(shape, leagues, true),
            float(packing_work(shape, leagues) @ [true.scan, true.entry, true.feature]),
        )
        for shape in shapes
        for leagues in (8, 16, 32)
    ]
    np.testing.assert_allclose(astuple(fit_machine(samples)), astuple(true), rtol=1e-6)


def test_packing_is_work_of_the_ranks():
    """Ranks pack and unpack what they send and receive, some more than others."""
    slow = replace(MACHINE, scan=1e-9, entry=1e-8, feature=1e-9)
    free, taken = (epoch_seconds(SHAPE, 32, 16, machine, FREE) for machine in (MACHINE, slow))
    each = 1000 * 32 * 1e-9 + 0.1 * 3000 * 32 * 1e-8 + 3000 * 1e-9
    assert parcels(32, 16) / 16 * each < taken - free < 2 * 31 * each


def test_bytes_of_a_league():
    # 1024 / 32 classes, a tenth of the weights: of 1,000 frequent features with 32 bits each, of 2,000 rare ones with
    # places and a count; one sum per row.
    assert league_bytes(SHAPE, 32) == 1000 * 4 + 3200 * 4 + 6400 * 6 + 2000 * 4 + 200 * 4
    assert density_of(SHAPE, 32, league_bytes(SHAPE, 32)) == pytest.approx(0.1)


@pytest.mark.parametrize(("leagues", "expected"), [(8, 2 * 3 * 2), (32, 2 * 3 * 8)])
def test_two_ranks_swap_a_quarter_three_times(leagues, expected):
    assert parcels(leagues, 2) == expected
    assert parcels(leagues, 1) == 0


@pytest.mark.parametrize(("leagues", "ranks"), [(7, 5), (8, 5), (8, 0)])
def test_what_cannot_be_is_refused(leagues, ranks):
    with pytest.raises(ValueError, match="two for each rank"):
        epoch_seconds(SHAPE, leagues, ranks, MACHINE, FREE)
