"""The processes that do one piece of work together: alone, or as ranks started by mpirun."""

from .mpi import MPIEngine, MPIPeers, all_or_none, peers_of, started_by_mpirun, told_rank, told_size
from .peers import Alone, Peers, share
