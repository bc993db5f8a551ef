"""One file a loss family: primal, dual, violation, row sub-problem."""

from .absolute_margin import (
    LargestOfAll,
    LargestOfOthers,
    LeeLinWahba,
    MaximumMarginRegression,
    Reinforced,
    SumOfAll,
)
from .maximum_entropy import MaximumEntropy
from .one_vs_rest import Hinge, Logistic, SquaredHinge
from .problem import Problem
from .relative_margin import CrammerSinger, WestonWatkins

PROBLEMS: dict[str, Problem] = {
    p.name: p
    for p in (
        WestonWatkins(),
        CrammerSinger(),
        LeeLinWahba(),
        MaximumMarginRegression(),
        Reinforced(),
        LargestOfOthers(),
        LargestOfAll(),
        SumOfAll(),
        MaximumEntropy(),
        Hinge(),
        SquaredHinge(),
        Logistic(),
    )
}

__all__ = ["PROBLEMS", "Problem", "Reinforced"]
