"""One file a loss family: primal, dual, violation, row sub-problem."""

from .absolute_margin import (
    LargestOfAll,
    LargestOfOthers,
    LeeLinWahba,
    MaximumMarginRegression,
    Reinforced,
    SumOfAll,
)
from .binary import Binary, Hinge, Logistic, SquaredHinge
from .max_margin import MaxMargin
from .maximum_entropy import MaximumEntropy
from .problem import Problem
from .relative_margin import CrammerSinger, WestonWatkins
from .sparse_binary import SparseBinary, SparseHinge, SparseSquaredHinge

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
        MaxMargin(),
        Hinge(),
        SquaredHinge(),
        Logistic(),
        Hinge(pairs=True),
        SquaredHinge(pairs=True),
        Logistic(pairs=True),
        SparseHinge(),
        SparseSquaredHinge(),
    )
}

__all__ = [
    "PROBLEMS",
    "Binary",
    "MaxMargin",
    "Problem",
    "Reinforced",
    "SparseBinary",
    "SparseHinge",
    "SparseSquaredHinge",
]
