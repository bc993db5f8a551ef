"""The processes that do one piece of work together: alone, or as ranks started by mpirun."""

from .mpi import MPIEngine, MPIPeers, peers_of, started_by_mpirun, told_rank, told_size
from .peers import Peers
