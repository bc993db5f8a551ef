"""Which pass comes next, when a certificate is worth its cost, and how far estimates are trusted."""

import math

import pytest

from manyclass.solvers import Certificate, StopRule
from manyclass.solvers.passes import CHEAP_ENOUGH, OPTIMISM, Estimate, Passes, PassSums

GAP = StopRule("gap", 0.25)


def after_full(gap=1.0, primal=2.0, violation=0.5, rule=GAP, **trust):
    """Return passes after a full one that saw this."""
    passes = Passes(**trust)
    passes.end(Estimate(primal, gap, violation), rule, full=True)
    return passes


def test_sums_over_rows_give_primal_and_gap():
    norm, loss, alpha_sum = 8.0, 3.0, 5.0  # of the weights, squared
    seen = Estimate.from_sums(loss, norm + loss - alpha_sum, alpha_sum, 0.5)
    assert seen == Estimate(primal=norm / 2 + loss, gap=6.0, violation=0.5)


def test_a_fit_begins_with_nothing_done_and_some_optimism():
    passes, sums = Passes(), PassSums(number=0, full=True)
    assert (passes.full, passes.cheap, passes.last_full, passes.trust) == (0, 0, None, OPTIMISM)
    assert (sums.done, sums.loss, sums.gap, sums.violation) == (0, 0, 0, 0)
    progress = passes.progress()
    assert progress.epochs == 0 and progress.active == 1 and not progress.ready and not progress.pass_ended
    assert all(math.isnan(value) for value in (progress.primal, progress.dual, progress.violation))
    assert OPTIMISM > 1 > CHEAP_ENOUGH > 0


@pytest.mark.parametrize(("primal", "trust"), [(2.0, 1.0), (-2.0, 1.0), (2.0, 0.5), (2.0, 4.0)])
def test_a_certificate_is_worth_its_cost_once_the_estimate_is_as_good_as_the_rule(primal, trust):
    enough = trust * GAP.tol * abs(primal)
    for gap, worth in ((enough, True), (enough * 1.001, False), (enough / 2, True)):
        assert Passes(trust=trust).end(Estimate(primal, gap, 9.0), GAP, full=True) == worth
    rule = StopRule("kkt", 0.25)
    for violation, worth in ((0.25, True), (0.2501, False), (0.1, True)):
        assert Passes(trust=trust).end(Estimate(primal, 9.0, violation), rule, full=True) == worth


def test_only_full_passes_count_as_epochs_and_change_the_estimate():
    passes, seen = after_full(), Estimate(2.0, 0.0, 0.0)
    for _ in range(2):
        assert passes.end(seen, GAP, full=False) is False
    assert (passes.full, passes.cheap) == (1, 2)
    progress = passes.progress(ready=True, pass_ended=True)
    assert progress.ready and progress.pass_ended and progress.epochs == 1
    assert (progress.primal, progress.dual, progress.violation) == (2.0, 1.0, 0.5)
    assert passes.end(seen, GAP, full=True)
    assert (passes.full, passes.cheap, passes.last_full) == (2, 0, seen)


def test_cheap_passes_follow_a_full_one_until_they_have_closed_most_of_its_gap():
    passes = after_full(gap=4.0)
    assert passes.cheap_pays(passes.last_full, at_most=2) and not passes.cheap_pays(passes.last_full, at_most=0)
    nearly, enough = (Estimate(2.0, gap, 0.5) for gap in (4.004 * CHEAP_ENOUGH, 4 * CHEAP_ENOUGH))
    assert passes.cheap_pays(enough, at_most=2)  # the first one always
    passes.end(nearly, GAP, full=False)
    assert passes.cheap_pays(nearly, at_most=2) and not passes.cheap_pays(enough, at_most=2)
    passes.end(nearly, GAP, full=False)
    assert not passes.cheap_pays(nearly, at_most=2)


@pytest.mark.parametrize("primal", [2.0, -2.0])
@pytest.mark.parametrize(("found", "trust"), [(1.0, 0.45), (0.5, 0.9), (0.1, 1.5), (0.001, 1.5)])
def test_trust_falls_to_a_little_less_than_a_certificate_bears_out(primal, found, trust):
    """The pass saw a relative gap of 0.5."""
    passes = after_full(gap=1.0, primal=primal)
    passes.learn(Certificate(1.0, 1.0 - found, 0.0))
    assert passes.trust == pytest.approx(trust)
    passes.learn(Certificate(1.0, 1.0 - found, 0.0), either_way=True)
    assert passes.trust == pytest.approx(0.45 / found)


def test_trust_stays_where_there_is_nothing_to_compare():
    passes, certificate = Passes(), Certificate(1.0, 0.5, 0.0)
    passes.learn(certificate, either_way=True)
    assert passes.trust == OPTIMISM
    for passes, found in (
        (after_full(primal=0.0), certificate),
        (after_full(), Certificate(1.0, 1.0, 0.0)),
        (after_full(), Certificate(1.0, 1.5, 0.0)),
    ):
        passes.learn(found, either_way=True)
        assert passes.trust == OPTIMISM
