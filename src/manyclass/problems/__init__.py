"""One file a loss family: primal, dual, violation, row sub-problem."""

from .one_vs_rest import Hinge, SquaredHinge
from .problem import Problem
from .relative_margin import CrammerSinger, WestonWatkins

PROBLEMS: dict[str, Problem] = {p.name: p for p in (WestonWatkins(), CrammerSinger(), Hinge(), SquaredHinge())}

__all__ = ["PROBLEMS", "Problem"]
