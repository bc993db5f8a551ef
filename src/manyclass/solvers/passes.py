"""Full and cheap passes: which comes next, and when a certificate is worth its cost.

A full pass visits all variables, a cheap one only those in use. A visit sees its row just before the row's own step;
added up over a full pass, this estimates primal value, gap and violation at no extra cost. Only a certificate can end
a fit, and each one shows how far the next estimate can be trusted.
"""

from dataclasses import dataclass

import numpy as np

from .solver import Certificate, Progress, StopRule

# Rows are seen before their own steps, so the gap that a pass adds up is larger than the one it leaves behind.
OPTIMISM = 1.5
# Cheap passes end when the gap they see is this share of that of the last full pass.
CHEAP_ENOUGH = 0.2


@dataclass(frozen=True)
class Estimate:
    """Primal value, gap and violation as seen by the visits of one pass."""

    primal: float
    gap: float
    violation: float

    @classmethod
    def from_sums(cls, loss: float, gap: float, alpha_sum: float, violation: float) -> "Estimate":
        """Create one from sums over rows: `gap = |W|^2 + loss - alpha_sum` and `primal = 1/2 |W|^2 + loss`."""
        return cls(0.5 * (gap + loss + alpha_sum), gap, violation)


@dataclass
class PassSums:
    """Sums over the rows visited so far in one pass, as the kernels add them up."""

    number: int
    full: bool
    done: int = 0
    loss: float = 0.0
    gap: float = 0.0
    violation: float = 0.0


@dataclass
class Passes:
    """The passes of a fit so far.

    Attributes
    ----------
    full : int
        Number of full passes.
    cheap : int
        Number of cheap passes since the last full one.
    last_full : Estimate, optional
        Estimate of the last full pass.
    trust : float
        Estimated gap over the gap that a certificate is expected to find.
    """

    full: int = 0
    cheap: int = 0
    last_full: Estimate | None = None
    trust: float = OPTIMISM

    def end(self, seen: Estimate, rule: StopRule, *, full: bool) -> bool:
        """Count a pass that has ended; return whether a certificate is worth its cost now."""
        if not full:
            self.cheap += 1
            return False
        self.full += 1
        self.cheap = 0
        self.last_full = seen
        if rule.stop == "gap":
            return seen.gap <= self.trust * rule.tol * abs(seen.primal)
        return seen.violation <= rule.tol

    def cheap_pays(self, seen: Estimate, *, at_most: int) -> bool:
        """Whether to follow the pass that saw `seen` with a cheap one."""
        assert self.last_full is not None
        return self.cheap < at_most and (self.cheap == 0 or seen.gap > CHEAP_ENOUGH * self.last_full.gap)

    def learn(self, found: Certificate, *, either_way: bool = False) -> None:
        """Trust estimates as far as a certificate bears out the last one; `either_way` lets trust grow as well."""
        last = self.last_full
        if last is None or last.primal == 0 or found.gap <= 0:
            return
        learned = 0.9 * (last.gap / abs(last.primal)) / found.gap
        self.trust = learned if either_way else min(self.trust, learned)

    def progress(self, *, ready: bool = False, pass_ended: bool = False) -> Progress:
        """Return the progress by the estimate of the last full pass."""
        seen = self.last_full or Estimate(np.nan, np.nan, np.nan)
        return Progress(
            epochs=self.full,
            primal=seen.primal,
            dual=seen.primal - seen.gap,
            violation=seen.violation,
            active=1.0,
            ready=ready,
            pass_ended=pass_ended,
        )
