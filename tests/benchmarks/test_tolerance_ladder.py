"""The ladder stops at the loosest tolerance that is good enough."""

import pytest
from benchmarks.environments import UnavailableError
from benchmarks.ladder import TOLERANCES, loosest


def test_first_good_enough_tolerance():
    asked = []

    def primal_at(tolerance):
        asked.append(tolerance)
        return 100.0 * (1 + tolerance / 10)

    # 1 + tol / 10 <= 1.001 first holds at tol = 0.01.
    assert loosest(primal_at, 100.0) == 0.01
    assert asked == [tolerance for tolerance in TOLERANCES if tolerance >= 0.01]


def test_order_of_the_tolerances_does_not_matter():
    assert loosest(lambda tolerance: tolerance, 0.2, tolerances=(0.1, 0.5, 0.2)) == 0.2


def test_better_than_the_peer_at_once():
    assert loosest(lambda _: 90.0, 100.0) == TOLERANCES[0]


def test_target_out_of_reach_gives_the_best_value():
    with pytest.raises(UnavailableError, match=r"down to 0.0001 .* 100 within 0.1%; the best was 101"):
        loosest(lambda _: 101.0, 100.0)
