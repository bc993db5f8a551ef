"""How one sweep goes, alone or with peers: no files, no printing."""

from .class_blocks import ClassBlocks
from .coupled_rows import CoupledRows
from .estimate import estimate_memory, refuse_absurd_pairs
from .leagues import Leagues
from .peers import Alone, Peers, share
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet

__all__ = [
    "Alone",
    "Certificate",
    "ClassBlocks",
    "CoupledRows",
    "Leagues",
    "Peers",
    "Progress",
    "Solver",
    "StopRule",
    "TrainingSet",
    "estimate_memory",
    "refuse_absurd_pairs",
    "share",
]
