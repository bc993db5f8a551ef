"""The tolerance that just reaches a peer's objective value.

Stopping rules differ between solvers, so time is compared at equal quality: the loosest tolerance of a fixed
ladder whose finished fit has a primal value of at most 1.001 times the peer's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.environments import UnavailableError

TOLERANCES = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.015, 0.01, 0.007, 0.005, 0.003, 0.002, 0.001, 5e-4, 2e-4, 1e-4)
WITHIN = 1.001


def loosest(
    primal_at: Callable[[float], float], peer_primal: float, tolerances: Sequence[float] = TOLERANCES
) -> float:
    """The first tolerance, from loose to tight, whose primal value is at most ``WITHIN * peer_primal``.

    Tighter fits cost more, so the search from the loose end costs little more than its last step.

    Raises
    ------
    UnavailableError
        If even the tightest does not reach the target; the message gives the best value found.
    """
    best = float("inf")
    for tolerance in sorted(tolerances, reverse=True):
        value = primal_at(tolerance)
        if value <= WITHIN * peer_primal:
            return tolerance
        best = min(best, value)
    raise UnavailableError(
        f"no tolerance down to {min(tolerances):g} reached the peer's primal value {peer_primal:.6g} "
        f"within {WITHIN - 1:.1%}; the best was {best:.6g}"
    )
