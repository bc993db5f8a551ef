"""One file per family of losses: primal, dual, violation, row sub-problem."""

from . import absolute_margin, binary, max_margin, maximum_entropy, relative_margin, sparse_binary
from .absolute_margin import Reinforced
from .binary import Binary
from .elastic_net import ElasticNet
from .max_margin import MaxMargin
from .problem import Problem
from .registry import ENTRIES, Loss
from .sparse_binary import SparseBinary

_families = [
    family.__name__
    for family in (relative_margin, absolute_margin, binary, maximum_entropy, sparse_binary, max_margin)
]

#: All losses, in the order of listings.
LOSSES: dict[str, Loss] = dict(
    sorted(ENTRIES.items(), key=lambda entry: _families.index(type(entry[1].problem).__module__))
)
#: Their formulas, with default parameters.
PROBLEMS: dict[str, Problem] = {name: loss.problem for name, loss in LOSSES.items()}
