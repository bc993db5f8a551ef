"""Solvers: one bounded piece of work at a time, in one process or several. No files, no printing."""

from .binary_stream import BinaryStream
from .class_blocks import ClassBlocks
from .coupled_rows import CoupledRows
from .coupled_stream import CoupledStream
from .enclosing_ball_stream import EnclosingBallStream
from .estimate import estimate_memory, refuse_absurd_pairs
from .frank_wolfe import FrankWolfe
from .label_blocks import LabelBlocks, blocks_of
from .leagues import Leagues
from .options import SolverOptions
from .pegasos_stream import PegasosStream
from .scale import check_scale, longest_row, slow_because
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stream import RowBlock, Stream, StreamShape, Variables

__all__ = [
    "BinaryStream",
    "Certificate",
    "ClassBlocks",
    "CoupledRows",
    "CoupledStream",
    "EnclosingBallStream",
    "FrankWolfe",
    "LabelBlocks",
    "Leagues",
    "PegasosStream",
    "Progress",
    "RowBlock",
    "Solver",
    "SolverOptions",
    "StopRule",
    "Stream",
    "StreamShape",
    "TrainingSet",
    "Variables",
    "blocks_of",
    "check_scale",
    "estimate_memory",
    "longest_row",
    "refuse_absurd_pairs",
    "slow_because",
]
