"""Measure leagues on the processes of mpirun, by the protocol of all solvers.

    epochs    ten passes of Weston-Watkins, C = 1, without shrinking: the measurement of Alber et al., Figure 2. It
              drives the solver directly, to measure passes alone: no certificate, no model
    train     a whole fit with engine="mpi"

Figures are means over the ten passes. Seconds, and seconds spent waiting, are those of the rank that has most; bytes
exchanged are those of all ranks.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks import ours
from benchmarks.protocol import Outcome, Request, Task, memory_status, serve
from manyclass.data import check_matrix
from manyclass.peers import MPIEngine, MPIPeers
from manyclass.problems import PROBLEMS
from manyclass.solvers import Leagues, SolverOptions, StopRule, TrainingSet

EPOCHS = 10
NEVER = StopRule("gap", 0.0)


def prepare(request: Request, peers: MPIPeers) -> tuple[TrainingSet, dict[str, Any], MPIPeers]:
    X, y = request.load_problem()
    data = TrainingSet(check_matrix(X), y.astype(np.int32), np.ones(len(y)), int(y.max()) + 1)
    peers.gather(None)
    return data, request.options, peers


def epochs(state) -> dict[str, float]:
    data, options, peers = state
    with peers.all_or_none():
        solver = Leagues(PROBLEMS["ww"], data, SolverOptions(**options), shrinking=False, peers=peers)
        # Seconds, seconds waiting and bytes sent; then, off the clock, what is in use.
        each = np.array([[*_epoch(solver, peers), *_in_use(solver)] for _ in range(EPOCHS)])
        packing = _seconds_packing(solver)
        ranks = np.array(peers.gather([*each.mean(axis=0), memory_status("VmHWM"), packing]))
    most, total = ranks.max(axis=0), ranks.sum(axis=0)
    return {
        "seconds": most[0],
        "waiting": most[1],
        "bytes": total[2],
        "league_bytes": total[3] / options["leagues"],
        "support": total[4] / data.X.n_rows,
        "peak_bytes": most[5],
        "packing": total[6] / options["leagues"],
    }


def _epoch(solver: Leagues, peers: MPIPeers) -> tuple[float, float, int]:
    peers.gather(None)  # so that all start at once
    sent, waited = peers.bytes_sent, peers.seconds_waiting
    begin = time.perf_counter()
    while not solver.advance(NEVER).pass_ended:
        pass
    taken = time.perf_counter() - begin
    return taken, peers.seconds_waiting - waited, peers.bytes_sent - sent


def _in_use(solver: Leagues) -> tuple[int, int]:
    """Return the bytes of the local leagues when they travel, and the number of dual variables, from a checkpoint."""
    held = solver.checkpoint()
    return sum(array.nbytes for name, array in held.items() if name.startswith("league.")), held["duels.values"].size


def _seconds_packing(solver: Leagues) -> float:
    """Time the packing, releasing and unpacking of the local leagues."""
    kernel = solver._kernel
    here = [league for league in range(solver._leagues) if kernel.here(league)]
    begin = time.perf_counter()
    for league in here:
        parcel = kernel.pack(league)
        kernel.leave(league)
        kernel.unpack(league, parcel)
    return time.perf_counter() - begin


def main() -> None:
    """Answer the request on rank 0; the other ranks take part in the work."""
    peers = MPIEngine().peers()

    def prepare_fit(request: Request):
        state = ours.prepare(request)
        peers.gather(None)
        return state

    serve(
        {
            "epochs": Task(lambda request: prepare(request, peers), epochs, lambda found: Outcome(figures=found)),
            "train": Task(prepare_fit, ours.fit, ours.outcome),
        },
        packages=("manyclass", "mpi4py"),
        answers=peers.rank == 0,
    )


if __name__ == "__main__":
    main()
