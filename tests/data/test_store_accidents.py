"""Whatever happens to a conversion or an append, a store is what it was or what it was to be."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import BlockStore, save_svmlight
from manyclass.data.block_file import join_blocks
from manyclass.data.conversion import Conversion
from manyclass.data.manifest import StoreError
from manyclass.data.row_parts import TextRows

ROWS = 6000

# Small parts and little memory, so that there are many spills and blocks.
BEGIN = """
import sys
import manyclass.data.row_parts as parts, manyclass.data.conversion as conversion
from manyclass.data import BlockStore
parts.TEXT_AT_ONCE = parts.CHUNK = 20_000
conversion.LEAST_MEMORY = 0
def change(what, text, folder):
    if what == "append":
        BlockStore(folder).append(text, memory=400_000)
    else:
        conversion.Conversion(parts.TextRows([text]), folder, memory=400_000).run()
"""
KILLED = """
print("ready", flush=True)
change(*sys.argv[1:])
print("done", flush=True)
"""
FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for limit in map(int, sys.argv[4:]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        change(*sys.argv[1:4])
        print(0)
    except OSError as error:
        print(error.errno)
"""


@pytest.fixture
def texts(tmp_path):
    """The rows, and two files with the first and the second half of them."""
    X = sp.random(ROWS, 200, 0.1, format="csr", random_state=3).astype(np.float32)
    y = np.random.default_rng(0).integers(0, 40, ROWS)
    save_svmlight(X[: ROWS // 2], y[: ROWS // 2], tmp_path / "a.svm")
    save_svmlight(X[ROWS // 2 :], y[ROWS // 2 :], tmp_path / "b.svm")
    return X, y


def prepare(what, tmp_path, name):
    """A folder to write to; for an append, with the first half in it."""
    if what == "append":
        Conversion(TextRows([tmp_path / "a.svm"]), tmp_path / name, memory=64 << 20, blocks=3).run()
        return tmp_path / name, ROWS // 2
    return tmp_path / name, 0


def assert_whole(folder, X, y):
    store = BlockStore(folder)
    assert list(store.verify()) == []
    block = join_blocks([store.read(number) for number in range(store.n_blocks)])
    block = block.take(np.argsort(block.ids))
    assert block.ids.tolist() == list(range(X.shape[0])) and (block.as_csr(X.shape[1]) != X).nnz == 0
    np.testing.assert_array_equal(store.classes[block.labels], y)


def rows_in(folder):
    """How many there are; none if it is no store, which must then be said."""
    try:
        store = BlockStore(folder)
    except StoreError as error:
        assert any(words in str(error) for words in ("does not exist", "is not whole", "has no manifest"))
        return 0
    assert list(store.verify()) == []
    return store.n_rows


def run_for(seconds, what, text, folder):
    """Run it for so long at the most, and kill it; whether it was done, and how long it took."""
    call = [sys.executable, "-c", BEGIN + KILLED, what, str(text), str(folder)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        begin = time.perf_counter()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.send_signal(signal.SIGKILL)
        return process.stdout.read() == "done\n", time.perf_counter() - begin


@pytest.mark.parametrize("what", ["convert", "append"])
def test_killed_at_random_moments_nothing_is_lost_and_nothing_wrong_is_there(what, texts, tmp_path, kills):
    X, y = texts
    folder, before = prepare(what, tmp_path, "trial")
    done, whole = run_for(60, what, tmp_path / "b.svm", folder)
    assert done
    folder, before = prepare(what, tmp_path, "s")
    after = before + ROWS // 2
    for moment in np.random.default_rng().uniform(0, 0.7 * whole, kills):
        done, _ = run_for(moment, what, tmp_path / "b.svm", folder)
        found = rows_in(folder)
        assert found in ((after,) if done else (before, after))
        if found == after:
            break
    if found == before:
        assert run_for(60, what, tmp_path / "b.svm", folder)[0]
    rows = slice(ROWS // 2 - before, None)
    assert_whole(folder, X[rows], y[rows])
    for path in (tmp_path / "trial").glob("[!.]*"):
        assert (folder / path.name).read_bytes() == path.read_bytes()
    BlockStore(folder).remove([0])  # whoever writes next clears away what was left
    assert not [name for name in os.listdir(folder) if name.startswith(("spill", "conversion", ".block"))]


@pytest.mark.parametrize("what", ["convert", "append"])
def test_a_full_disk_leaves_the_store_as_it_was(what, texts, tmp_path):
    X, y = texts
    folder, before = prepare(what, tmp_path, "s")
    files = {path.name: path.read_bytes() for path in folder.glob("*")}
    call = [sys.executable, "-c", BEGIN + FULL, what, str(tmp_path / "b.svm"), str(folder), "100", "9000", "60000"]
    printed = subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()
    assert printed == [str(errno.EFBIG)] * 3
    assert rows_in(folder) == before
    if before:
        assert {path.name: path.read_bytes() for path in folder.glob("*")} == files
    assert run_for(60, what, tmp_path / "b.svm", folder)[0]
    rows = slice(ROWS // 2 - before, None)
    assert_whole(folder, X[rows], y[rows])
