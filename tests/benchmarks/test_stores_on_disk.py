"""Stores for the benchmarks, created and measured in real processes with tiny sizes."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.environments import UnavailableError
from benchmarks.from_disk import passes, prepare_fit, prepare_passes, rows_of
from benchmarks.measure import Runner
from benchmarks.memory_limit import memory_limit
from benchmarks.objective import primal
from benchmarks.ours import fit, outcome
from benchmarks.protocol import Request, store_problem
from benchmarks.solvers import DECODER, SKLEARN_READER, by_passes, converter, ours_from_disk
from benchmarks.store_making import (
    drop_from_cache,
    store_in_order,
    store_of_matrix,
    store_of_stream,
    write_text,
)

from benchmarks import memory_limit as limits
from manyclass.data import iter_text_like, load_svmlight, make_text_like

SHAPE = {"preset": "bench-1k", "n": 600, "n_test": 200, "K": 6, "d": 400, "nnz": 20}
MEMORY = 64_000_000


@pytest.fixture(scope="module")
def rows():
    return make_text_like(**SHAPE)


def stream():
    return iter_text_like(**SHAPE, rows_per_block=128)


def sorted_rows(X, y):
    """Return rows as sorted lines of text."""
    return sorted((int(code), *row.indices.tolist(), *row.data.tolist()) for row, code in zip(X, y, strict=True))


def test_streamed_rows_come_back_from_store_and_text(rows, tmp_path):
    X, y, *_ = rows
    store = store_of_stream(stream(), tmp_path / "store", MEMORY)
    assert sorted_rows(*rows_of(store)) == sorted_rows(X, y)
    assert write_text(stream(), tmp_path / "text.svm") == X.nnz
    read, labels = load_svmlight(tmp_path / "text.svm", n_features=X.shape[1])
    assert (read != X).nnz == 0 and np.array_equal(labels, y)
    assert X.nnz > write_text(stream(), tmp_path / "first.svm", least=X.nnz / 2) >= X.nnz / 2


def test_raw_blocks_have_few_classes(rows, tmp_path):
    X, y, *_ = rows
    raw = store_in_order(X, y, tmp_path / "raw", 8)
    dealt = store_of_matrix(X, y, tmp_path / "dealt", 8)
    classes = [[np.unique(store.read(b).labels).size for b in range(8)] for store in (raw, dealt)]
    assert (raw.n_blocks, dealt.n_blocks, raw.nnz) == (8, 8, dealt.nnz)
    assert np.mean(classes[0]) < 3 < np.mean(classes[1])
    drop_from_cache(raw.path)
    assert sorted_rows(*rows_of(raw)) == sorted_rows(X, y)


def test_text_is_converted_and_decoded_in_a_process(rows, tmp_path):
    write_text(stream(), tmp_path / "text.svm")
    runner, where = Runner(tmp_path), {"store": str(tmp_path / "store")}
    run = runner.do(converter("64MB"), "convert", one_core=True, text=str(tmp_path / "text.svm"), **where)
    assert run.reply.figures["nonzeros"] == rows[0].nnz and run.reply.figures["block_bytes"] > 0
    assert runner.do(DECODER, "decode", warm=True, **where).reply.figures["blocks"] == 1


@pytest.mark.parametrize("memory", [{}, {"memory": 10_000_000}])
def test_fits_from_disk_and_in_memory_reach_the_gap(memory, tmp_path):
    store = store_of_stream(stream(), tmp_path / "store", MEMORY)
    options = ours_from_disk("cs").options | {"store": str(store.path), "stop": "gap", "tol": 0.05} | memory
    found = outcome(fit(prepare_fit(Request("fit", "", options=options))))
    assert found.certificate["gap"] <= 0.05


def followed(rows, folder, solver, **options):
    """Run passes in this process; return them and the store."""
    X, y, X_test, y_test = rows
    store = store_of_matrix(X, y, folder / "store", 5)
    store_problem(folder / "test.npz", X_test, y_test)
    options = solver.options | {"store": str(store.path), "test": str(folder / "test.npz")} | options
    return passes(prepare_passes(Request("passes", "", options=options)))


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        (by_passes("ours"), 3),
        (by_passes("same order", same_order=True, rounds="tol", blocks_per_batch=1), 3),
        (by_passes("pegasos", method="pegasos", update="block", blocks_per_batch=1), 3),
        (by_passes("one pass", "squared_hinge", method="streamsvm", blocks_per_batch=1), 1),
    ],
)
def test_passes_are_followed_one_by_one(rows, tmp_path, solver, expected):
    X, y, *_ = rows
    found = followed(rows, tmp_path, solver, passes=3)
    assert found["pass"] == list(range(1, expected + 1))
    assert np.all(np.diff([0.0, *found["seconds"]]) > 0)
    nothing = primal(solver.loss, X, y, sp.csr_matrix((X.shape[1], 6)))
    assert solver.loss != "hinge" or found["primal"][-1] < nothing
    assert all(0 <= accuracy <= 1 for accuracy in found["accuracy"])


def test_passes_end_where_it_is_enough(rows, tmp_path):
    assert followed(rows, tmp_path, by_passes("ours"), enough=1e9)["pass"] == [1.0]


def test_passes_of_a_process_are_answered_with_their_times(rows, tmp_path):
    store = store_of_matrix(*rows[:2], tmp_path / "store", 5)
    found = Runner(tmp_path).do(by_passes("ours"), "passes", passes=2, store=str(store.path)).reply.series
    assert found["pass"] == [1.0, 2.0] and found["seconds"][1] > found["seconds"][0] > 0


# ---- A limit to the memory of a process


@pytest.fixture
def limited():
    """Create control groups, or skip the test if that is not possible."""
    with ExitStack() as stack:

        def make(limit):
            try:
                return stack.enter_context(memory_limit(limit))
            except UnavailableError as reason:
                pytest.skip(str(reason))

        yield make


def test_a_fit_from_disk_stays_within_the_limit(limited, tmp_path):
    store = store_of_stream(stream(), tmp_path / "store", MEMORY)
    where = {"store": str(store.path), "memory": 10_000_000}
    group = limited(300_000_000)
    run = Runner(tmp_path).do(ours_from_disk("hinge"), "fit", limit=group, stop="gap", tol=0.1, **where)
    assert run.shortfall == "" and 0 < group.peak <= 300_000_000 and group.kills == 0


def test_a_reader_of_too_many_rows_is_killed(limited, tmp_path):
    text = tmp_path / "text.svm"
    line = b"1 " + b" ".join(b"%d:1" % i for i in range(1, 100_000)) + b"\n"
    text.write_bytes(100 * line)  # 120 MB as rows, at 12 bytes per non-zero
    group = limited(100_000_000)
    code, _ = Runner(tmp_path).ending(SKLEARN_READER, "read", group, path=str(text))
    assert code == -9 and group.kills == 1


def test_groups_are_removed(limited):
    limited(100_000_000)  # or skip
    with memory_limit(50_000_000) as group:
        assert group.folder.exists()
    assert not group.folder.exists()


def test_where_no_group_can_be_made_the_reason_is_told(monkeypatch, tmp_path):
    for name in ("FIRST", "SECOND"):
        found = getattr(limits, name)
        monkeypatch.setattr(limits, name, replace(found, root=tmp_path / "none"))
    with pytest.raises(UnavailableError, match="a control group, which cannot be created here"), memory_limit(1):
        pass
