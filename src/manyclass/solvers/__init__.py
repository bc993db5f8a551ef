"""Solvers: one bounded piece of work at a time, in one process or several. No files, no printing."""

from .binary_stream import BinaryStream
from .coupled_rows import CoupledRows
from .coupled_stream import CoupledStream
from .elastic_net_blocks import ElasticNetBlocks, blocks_of
from .enclosing_ball_stream import EnclosingBallStream
from .estimate import estimate_memory, refuse_absurd_pairs
from .frank_wolfe import FrankWolfe
from .l2_blocks import L2Blocks
from .leagues import Leagues
from .options import SolverOptions
from .pegasos_stream import PegasosStream
from .scale import check_scale, longest_row, slow_because
from .solver import Certificate, Progress, Solver, StopRule, TrainingSet
from .stream import RowBlock, Stream, StreamShape, Variables
