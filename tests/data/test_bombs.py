"""Forged files are rejected, and never make a reader allocate more memory than their size justifies."""

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
import zlib
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import zstandard

from manyclass.data import BlockStore, ParseError, StoreError, load_svmlight, read_table, svmlight, tables
from manyclass.data import block_file as blocks
from manyclass.data.block_file import Block, BlockError, block_tensors, packed_block_of, read_block
from manyclass.data.checksums import write_checked
from manyclass.data.compression import PlaneError, PlaneWriter, decompress
from manyclass.data.conversion import write_block
from manyclass.data.frequencies import Frequencies
from manyclass.data.streams import open_atomic, open_input
from manyclass.data.tensor_file import tensor_file_content

ROOM = 600 << 20  # bytes of memory, including the program itself


@pytest.fixture
def store(tmp_path):
    X = sp.random(40, 12, 0.4, format="csr", dtype=np.float32, random_state=0)
    return BlockStore.create(tmp_path / "s", X, np.arange(40) % 3, blocks=2)


def forge_manifest(store, **changes):
    path = store.path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def forge_catalogue(store, **changes):
    changed = replace(store.catalogue, **changes)
    forge_manifest(store, **changed.write(store.path, store.manifest.generation))


def forge_block(store, tensors, metadata):
    """Replace the arrays of the first block, and update the manifest to match."""
    entry = store.manifest.blocks[0]
    with open_atomic(store.path / entry.file) as out:
        size, checksum = write_checked(out, tensor_file_content(tensors, metadata))
    rows, nnz = int(metadata["rows"]), int(metadata["nnz"])
    others = [vars(other) for other in store.manifest.blocks[1:]]
    forged = {"file": entry.file, "rows": rows, "nnz": nnz, "size": size, "checksum": checksum}
    counts = {"rows": rows + others[0]["rows"], "nnz": nnz, "next_id": rows + others[0]["rows"]}
    forge_manifest(store, blocks=[forged, *others], **counts)


def zeros(rows, nnz):
    """Return a block of only zeros, which takes almost no bytes."""
    empty = Block(*(np.empty(0, np.int64) for _ in range(3)), np.empty(0, np.float32), *[np.zeros(1, int)] * 2, 5)
    empty = replace(empty, indptr=np.zeros(1, np.int64), indices=np.empty(0, np.int32), labels=np.empty(0, np.int32))
    tensors, metadata = block_tensors(empty, PlaneWriter())
    tensors = {f"{name.rpartition('.')[0]}.zero": np.empty(0, np.uint8) for name in tensors}
    return tensors, metadata | {"rows": str(rows), "nnz": str(nnz), "labels": str(rows)}


def peak_of(code, *arguments):
    """Run Python code in its own process; return what it printed and its peak memory."""
    measured = code + "\nprint(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
    done = subprocess.run([sys.executable, "-c", measured, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *printed, peak = done.stdout.split("\n")[:-1]
    return printed, int(peak) << 10


READ = """
import sys
from manyclass.data import BlockStore
try:
    store = BlockStore(sys.argv[1])
    print(list(store.verify()))
    store.load()
except ValueError as error:
    print(type(error).__name__, error)
"""


def test_planes_of_zeros_cannot_fill_the_memory(store):
    forge_block(store, *zeros(1000, 10**9))
    printed, peak = peak_of(READ, store.path)
    assert "1000 rows with 1000000000 values cannot come from 0 bytes" in printed[-1] and peak < ROOM


def test_compressed_planes_cannot_fill_the_memory(store):
    """zstandard allocates whatever length a frame declares, unless the reader checks it first."""
    tensors, metadata = zeros(1000, 1000)
    packer = zstandard.ZstdCompressor().compressobj(size=1 << 30)
    bomb = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(1 << 10)), packer.flush()])
    del tensors["ids.0.zero"]
    tensors["ids.0.zstd"] = np.frombuffer(bomb, np.uint8)
    forge_block(store, tensors, metadata)
    printed, peak = peak_of(READ, store.path)
    assert "ids.0" in printed[-1] and "longer than it should be" in printed[-1] and peak < ROOM


@pytest.mark.parametrize("how", ["zstd", "zlib"])
def test_decompressed_content_must_have_the_expected_size(how):
    content = bytes(range(256)) * 9
    packed = {"zstd": zstandard.ZstdCompressor().compress, "zlib": zlib.compress}[how](content)
    assert decompress(how, packed, len(content)) == content
    for size in (0, 1, len(content) - 1, len(content) + 1):
        with pytest.raises(PlaneError):
            decompress(how, packed, size)
    with pytest.raises(PlaneError):
        decompress(how, packed[:-9], len(content))


def test_identical_rows_are_written_so_that_they_can_be_read(tmp_path, monkeypatch):
    """Compressed, they would expand further than readers accept."""
    monkeypatch.setattr(blocks, "ALWAYS_FITS", 1000)
    n = 50_000
    ones = np.ones(n, np.float32)
    same = Block(
        np.arange(n), np.arange(n + 1), np.zeros(n, np.int32), ones, np.arange(n + 1), np.zeros(n, np.int32), 1
    )
    entry = write_block(tmp_path / "block-0-0.safetensors", same, PlaneWriter())
    assert entry.size * blocks.MOST_EXPANSION > same.nbytes
    again = read_block(tmp_path / entry.file, rows=n, nnz=n)
    np.testing.assert_array_equal(again.values, ones)
    packed, metadata = block_tensors(same, PlaneWriter())
    assert "values.0.zero" not in packed
    packed_block_of(packed, metadata)


@pytest.mark.parametrize("codec", ["gzip", "bzip2", "xz", "zstd"])
def test_compressed_text_is_never_in_memory_as_a_whole(codec, tmp_path):
    new = {
        "gzip": lambda: zlib.compressobj(wbits=31),
        "bzip2": bz2.BZ2Compressor,
        "xz": lzma.LZMACompressor,
        "zstd": zstandard.ZstdCompressor(write_content_size=False).compressobj,
    }[codec]()
    size = 200 if codec == "zstd" else 32  # MiB
    with open(tmp_path / "x", "wb") as out:
        for _ in range(size):
            out.write(new.compress(bytes(1 << 20)))
        out.write(new.flush())
    read, most = 0, 0
    with open_input(tmp_path / "x") as stream:
        while count := len(stream.read(1 << 16)):
            read, most = read + count, max(most, len(stream.raw._ready))
    assert read == size << 20 and most <= 32 << 20


@pytest.mark.parametrize("name", ["x.svm", "x.csv", "x.jsonl"])
def test_lines_without_end_are_rejected(name, tmp_path, monkeypatch):
    for module in (svmlight, tables):
        monkeypatch.setattr(module, "LONGEST_LINE", 3 << 20)
    start = "text,label\n" if name == "x.csv" else ""
    (tmp_path / name).write_bytes(gzip.compress(start.encode() + b" " * (8 << 20)))
    with pytest.raises(ParseError, match=rf"{name}:\d:1: this line is longer than 3 MiB"):
        load_svmlight(tmp_path / name) if name == "x.svm" else read_table(tmp_path / name)
    if name == "x.svm":
        with pytest.raises(ParseError, match=rf"{name}:1:1: this line is longer than 3 MiB"):
            BlockStore.create(tmp_path / "new", tmp_path / name)


# ---- The manifest and the catalogue


def test_a_large_number_of_ids_takes_no_memory(store):
    X, y = store.load()
    forge_manifest(store, next_id=1 << 62)
    again = BlockStore(store.path).load()
    assert (again[0] != X).nnz == 0 and again[1].tolist() == y.tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"next_id": 3},
        {"next_id": 1 << 64},
        {"rows": 41},
        {"rows": True},
        {"rows": 0},
        {"nnz": -1},
        {"n_features": 10**12},
        {"n_features": "12"},
        {"value_bytes": 2},
        {"multilabel": 0},
        {"catalogue": "../s/catalogue-0.safetensors"},
        {"catalogue": ["catalogue-0.safetensors"]},
        {"reading": []},
        {"reading": {"text": {"hash_bits": 62}}},
        {"reading": {"text": {"hash_bits": 3}, "text_column": 1, "label_column": "b"}},
        {"reading": {"index_base": "0"}},
        {"reading": {"normalize": "l1"}},
        {"blocks": {}},
        {"blocks": [{}]},
        {"blocks": [None]},
        {"surprise": 1},
    ],
)
def test_forged_manifests_are_rejected(changes, store):
    forge_manifest(store, **changes)
    with pytest.raises(StoreError, match=r"s/(manifest.json|catalogue-0)"):
        BlockStore(store.path)


def test_a_duplicate_block_is_rejected(store):
    entries = [vars(entry) for entry in store.manifest.blocks]
    forge_manifest(store, blocks=[entries[0], entries[0]])
    with pytest.raises(StoreError, match="twice"):
        BlockStore(store.path)


@pytest.mark.parametrize(
    "changes",
    [
        {"class_of_code": np.array([0, 1, -5], np.int32)},
        {"class_of_code": np.array([0, 1, 3], np.int32)},
        {"class_of_code": np.array([0, 1, 1], np.int32)},
        {"class_of_code": np.array([0, 1, 2], np.int64)},
        {"class_of_code": np.array([[0, 1, 2]], np.int32)},
        {"rows_of_code": np.array([-1, 20, 20])},
        {"rows_of_code": np.array([20, 20])},
        {"frequencies": Frequencies(12, np.full(12, 41), None)},
        {"frequencies": Frequencies(12, np.full(12, -1), None)},
        {"frequencies": Frequencies(13, np.full(13, 1), None)},
        {"frequencies": Frequencies(12, np.full(12, 1), np.arange(11))},
        {"frequencies": Frequencies(12, np.full(12, 1), np.arange(12)[::-1].copy())},
        {"frequencies": Frequencies(12, np.full(12, 1), np.arange(1, 13))},
        {"frequencies": Frequencies(12, np.full(12, 1), np.zeros(12, np.int64))},
        {"frequencies": Frequencies(12, np.full(12, 1), np.arange(12) - 1)},
        {"frequencies": Frequencies(12, np.full(12, 1), np.arange(12, dtype=np.int32))},
        {"removed": np.array([99])},
        {"removed": np.array([5, 5])},
        {"removed": np.array([5])},
        {"removed": np.array([0.5])},
    ],
)
def test_forged_catalogues_are_rejected(changes, store):
    forge_catalogue(store, **changes)
    with pytest.raises(StoreError, match=r"catalogue-0\.safetensors: "):
        BlockStore(store.path)


def test_labels_that_no_row_should_have_are_rejected(store):
    """The catalogue has no class for code 2, but rows have it; as an index it would be out of bounds."""
    forge_catalogue(store, classes=np.arange(2), class_of_code=np.array([0, 1, -1], np.int32))
    with pytest.raises(BlockError, match="labels that the catalogue lists as unused"):
        BlockStore(store.path).label_counts()


# ---- The lock


@pytest.mark.parametrize("kind", ["link", "broken link", "pipe", "folder"])
def test_the_lock_cannot_lead_out_of_the_folder(kind, store, tmp_path):
    lock = store.path / ".lock"
    lock.unlink(missing_ok=True)
    outside = tmp_path / "outside"
    if kind == "link":
        outside.write_text("mine")
    if "link" in kind:
        lock.symlink_to(outside)
    elif kind == "pipe":
        os.mkfifo(lock)
    else:
        lock.mkdir()
    with pytest.raises(StoreError, match=r"\.lock is not a regular file"):
        store.remove([0])
    assert outside.exists() == (kind == "link")


def test_a_pipe_in_place_of_a_block_does_not_hang(store):
    path = store.path / store.manifest.blocks[0].file
    path.unlink()
    os.mkfifo(path)
    entries = [vars(entry) for entry in store.manifest.blocks]
    forge_manifest(store, blocks=[entries[0] | {"size": 0}, *entries[1:]])
    with pytest.raises(StoreError, match="is not a file"):
        BlockStore(store.path)
