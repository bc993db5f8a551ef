"""Ten passes on two processes of mpirun, as the benchmarks run them."""

import pytest
from benchmarks.cost_model import parcels
from benchmarks.measure import Runner
from benchmarks.problems import encode
from benchmarks.solvers import epochs_of_leagues
from losses import text_like

pytest.importorskip("mpi4py")


def test_ranks_exchange_the_leagues_that_the_schedule_says(tmp_path):
    X, y = text_like(60, 40, 8)
    problem = encode("tiny", X, y, X, y)
    found = Runner(tmp_path, timeout=100).epochs(epochs_of_leagues(8, ranks=2), problem).reply.figures
    assert 0 < found["waiting"] < found["seconds"]
    assert found["support"] > 1 and found["packing"] > 0
    # Such small leagues have few bytes compared with what is gathered at the end of a pass.
    assert found["bytes"] > parcels(8, 2) * found["league_bytes"] * 0.9 > 0
