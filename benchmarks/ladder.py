"""The tolerance that just reaches the objective value of another library.

Stopping rules differ between solvers, so times are compared at equal quality: at the loosest tolerance of a fixed
ladder whose fit has a primal value of at most 1.001 times that of the other library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.environments import UnavailableError

TOLERANCES = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.015, 0.01, 0.007, 0.005, 0.003, 0.002, 0.001, 5e-4, 2e-4, 1e-4)
WITHIN = 1.001


def loosest(
    primal_at: Callable[[float], float], peer_primal: float, tolerances: Sequence[float] = TOLERANCES
) -> float:
    """Return the first tolerance, from loose to tight, whose primal value is at most ``WITHIN * peer_primal``.

    Tighter fits take longer, so searching from the loose end costs little more than the last step.

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
