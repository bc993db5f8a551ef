"""A store holds exactly the rows that were converted, in any number of blocks, and damage is noticed."""

import itertools
import json
import os

import numpy as np
import pytest
import scipy.sparse as sp
from csr_rows import assert_same
from hypothesis import given
from hypothesis import strategies as st

from manyclass.data import load_svmlight, load_xmc, save_svmlight, save_xmc
from manyclass.data.block_file import COUNTS, Block, BlockError, block_tensors, join_blocks, packed_block_of
from manyclass.data.block_store import BlockStore, StoreError
from manyclass.data.compression import COMPRESSIONS, PlaneWriter
from manyclass.data.conversion import Conversion, shuffled
from manyclass.data.row_parts import Place, TextRows

MEMORY = 64 << 20


def block_of(tensors, metadata):
    return packed_block_of(tensors, metadata).unpack()


def rows(n=300, d=50, K=7, seed=0, dtype=np.float32):
    X = sp.random(n, d, 0.1, format="csr", dtype=np.float64, random_state=seed).astype(dtype)
    return X, np.random.default_rng(seed).integers(-2, K - 2, n) * 10


def convert(path, folder, *, xmc=False, dtype=np.float32, memory=MEMORY, **options):
    paths = path if isinstance(path, list) else [path]
    return Conversion(TextRows(paths, xmc=xmc, dtype=dtype), folder, memory=memory, **options).run()


def all_rows(store):
    """Return the rows of all blocks in input order: a matrix, label codes, and offsets of each row's labels."""
    block = join_blocks([store.read(number) for number in range(store.n_blocks)])
    block = block.take(np.argsort(block.ids))
    assert block.ids.tolist() == list(range(store.n_rows))
    return block.as_csr(store.n_features), block.labels, block.label_ptr


@pytest.mark.parametrize("multilabel", [False, True])
def test_matrices_in_parts_make_the_store_of_one_matrix(multilabel, tmp_path):
    X, y = rows()
    if multilabel:
        y = sp.random(300, 7, 0.3, format="csr", random_state=1)
        y.data[:] = 1
    bounds = [0, 10, 10, 150, 300]
    parts = ((X[a:b], y[a:b]) for a, b in itertools.pairwise(bounds) if b > a)
    whole = BlockStore.create(tmp_path / "whole", X, y, blocks=5)
    in_parts = BlockStore.create(tmp_path / "parts", parts, blocks=5)
    for entry in whole.manifest.blocks:
        assert (tmp_path / "parts" / entry.file).read_bytes() == (tmp_path / "whole" / entry.file).read_bytes()
    whole.remove([3, 299])
    left = np.setdiff1d(np.arange(300), [3, 299])
    found, labels = whole.load()
    assert_same(found, X[left])
    if multilabel:
        assert (labels != y[left]).nnz == 0
    else:
        np.testing.assert_array_equal(labels, y[left])
    save_svmlight(X, np.arange(300), tmp_path / "x.svm")
    assert BlockStore.create(tmp_path / "file", tmp_path / "x.svm").n_rows == in_parts.n_rows
    with pytest.raises(ValueError, match="pass y"):
        BlockStore.create(tmp_path / "no", X)
    with pytest.raises(TypeError, match="part 0 must be a pair"):
        BlockStore.create(tmp_path / "no", [X])
    with pytest.raises(StoreError, match="store already"):
        BlockStore.create(tmp_path / "whole", X, np.zeros(300))


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("blocks", [None, 1, 2, 7, 40])
def test_a_store_holds_the_rows_of_the_text(blocks, dtype, compression, tmp_path):
    X, y = rows(dtype=dtype)
    save_svmlight(X, y, tmp_path / "x.svm")
    store = convert(tmp_path / "x.svm", tmp_path / "s", blocks=blocks, dtype=dtype, compression=compression)
    expected, labels = load_svmlight(tmp_path / "x.svm", dtype=dtype)
    found, codes, label_ptr = all_rows(store)
    assert_same(found, expected)
    np.testing.assert_array_equal(store.classes[codes], labels)
    assert label_ptr.tolist() == list(range(301)) and not store.manifest.multilabel
    np.testing.assert_array_equal(store.frequencies, np.bincount(expected.indices, minlength=expected.shape[1]))
    assert store.n_blocks == (blocks or 1) and store.nnz == expected.nnz
    assert list(store.verify()) == []
    assert sorted(os.listdir(tmp_path / "s")) == sorted(
        [
            ".lock",
            "manifest.json",
            "catalogue-0.safetensors",
            *(f"block-0-{b}.safetensors" for b in range(blocks or 1)),
        ]
    )


def test_rows_are_dealt_at_random_and_by_the_seed(tmp_path):
    X, y = rows(4000, 20, 4)
    save_svmlight(X[np.argsort(y, kind="stable")], np.sort(y), tmp_path / "sorted.svm")
    stores = [convert(tmp_path / "sorted.svm", tmp_path / f"s{k}", blocks=8, seed=k // 2) for k in range(3)]
    ids = [[store.read(b).ids.tolist() for b in range(8)] for store in stores]
    assert ids[0] == ids[1] != ids[2]
    for b in range(8):
        shares = np.bincount(stores[0].read(b).labels, minlength=4) / stores[0].read(b).n_rows
        np.testing.assert_allclose(shares, 0.25, atol=0.1)


def test_labels_of_several_kinds(tmp_path):
    X, _ = rows(60, 30)
    Y = sp.random(60, 5, 0.3, format="csr", random_state=1)
    Y.data[:] = 1
    save_xmc(X, Y, tmp_path / "x.txt")
    store = convert(tmp_path / "x.txt", tmp_path / "s", xmc=True, blocks=3)
    found, codes, label_ptr = all_rows(store)
    expected, indicator = load_xmc(tmp_path / "x.txt")
    assert_same(found, expected[:, : found.shape[1]])
    np.testing.assert_array_equal(store.classes[codes], indicator.indices)
    np.testing.assert_array_equal(label_ptr, indicator.indptr)
    assert store.manifest.multilabel and store.manifest.index_base == 0
    (tmp_path / "real.svm").write_text("1 1:1\n2.5 2:1\n1 1:3\n")
    assert convert(tmp_path / "real.svm", tmp_path / "r").classes.tolist() == [1.0, 2.5]


def test_several_files_are_one(tmp_path):
    X, y = rows()
    for name, part in (("a.svm", slice(0, 100)), ("b.svm.gz", slice(100, 101)), ("c.svm", slice(101, 300))):
        save_svmlight(X[part], y[part], tmp_path / name)
    store = convert([tmp_path / name for name in ("a.svm", "b.svm.gz", "c.svm")], tmp_path / "s", blocks=3)
    found, codes, _ = all_rows(store)
    assert_same(found, X[:, : found.shape[1]])
    np.testing.assert_array_equal(store.classes[codes], y)


@pytest.mark.parametrize("xmc", [False, True])
def test_reading_resumes_at_the_end_of_any_part(xmc, tmp_path, monkeypatch):
    monkeypatch.setattr("manyclass.data.row_parts.TEXT_AT_ONCE", 2000)
    monkeypatch.setattr("manyclass.data.row_parts.CHUNK", 700)
    X, y = rows()
    if xmc:
        save_xmc(X, sp.csr_matrix((np.ones(300), (np.arange(300), y - y.min()))), tmp_path / "x.svm")
    else:
        save_svmlight(X, y, tmp_path / "x.svm")
    source = TextRows([tmp_path / "x.svm", tmp_path / "x.svm"], xmc=xmc)
    parts = list(source.parts())
    assert len(parts) > 10
    for k in (0, 3, len(parts) // 2, len(parts) - 2):
        rest = list(source.parts(parts[k].end))
        joined = [np.concatenate([part.values for part in some]) for some in (parts[k + 1 :], rest)]
        np.testing.assert_array_equal(*joined)
    assert parts[-1].end == Place(2)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2**40), st.floats(width=32, allow_nan=False)), max_size=6), max_size=9
    ),
    st.sampled_from(list(COMPRESSIONS)),
)
def test_blocks_are_read_back_to_the_last_bit(lines, compression):
    lines = [sorted(dict(line).items()) for line in lines]
    entries = [entry for line in lines for entry in line]
    block = Block(
        ids=np.arange(len(lines)) * 3 + 2,
        indptr=np.cumsum([0, *map(len, lines)]),
        indices=np.array([index for index, _ in entries], np.int64),
        values=np.array([value for _, value in entries], np.float32),
        label_ptr=np.arange(len(lines) + 1) * 2,
        labels=np.arange(2 * len(lines), dtype=np.int32),
        n_features=2**40 + 1,
    )
    again = block_of(*block_tensors(block, PlaneWriter(compression)))
    for name in ("ids", "indptr", "indices", "values", "label_ptr", "labels"):
        found, expected = getattr(again, name), getattr(block, name)
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes(), name


def random_block(seed, lengths, index_type):
    rng = np.random.default_rng(seed)
    indices = [np.sort(rng.choice(9000, length, replace=False)) for length in lengths]
    n = len(lengths)
    values = rng.choice(rng.standard_normal([1, 2, 5, 16, 17, 300][seed % 6]), sum(lengths))
    return Block(
        ids=np.cumsum(rng.integers(1, 400, n)),
        indptr=np.cumsum([0, *lengths]),
        indices=np.concatenate([*indices, np.empty(0)]).astype(index_type),
        values=values.astype(np.float32),
        label_ptr=np.arange(n + 1),
        labels=rng.integers(0, 300, n).astype(np.int32),
        n_features=9000,
    )


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize(
    "lengths", [[4096, 0, 4096], [4095, 1, 1, 0, 0, 8191], [0, 9000, 0], [100, 4096, 3996, 4097], [7] * 1500, []]
)
def test_rows_may_end_anywhere(lengths, index_type):
    """Planes are joined in parts, and rows may cross the boundaries between parts."""
    for seed in range(6):
        block = random_block(seed, lengths, index_type)
        again = block_of(*block_tensors(block, PlaneWriter()))
        np.testing.assert_array_equal(again.indices, block.indices)
        np.testing.assert_array_equal(again.values, block.values)


def test_memory_is_reused_only_when_it_is_free():
    blocks = [random_block(seed, [9000] * 9, np.int32) for seed in range(8)]
    stored = [block_tensors(block, PlaneWriter()) for block in blocks]
    held = [block_of(*tensors) for tensors in stored]
    parts = [block.values[5000:5010] for block in held]
    del held
    for tensors in stored:
        block_of(*tensors)
    for part, block in zip(parts, blocks, strict=True):
        np.testing.assert_array_equal(part, block.values[5000:5010])


# ---- Damage


def damaged(tensors, metadata, rng):
    """Return the arrays and metadata of a block with one array or one count changed."""
    tensors = {name: array.copy() for name, array in tensors.items()}
    name = str(rng.choice(list(tensors)))
    array = tensors[name]
    match rng.integers(6):
        case 0 if array.size:
            array[rng.integers(array.size)] ^= rng.integers(1, 256, dtype=np.uint8)
        case 1:
            tensors[name] = array[: array.size // 2]
        case 2:
            tensors[name] = np.concatenate([array, array, [7]]).astype(np.uint8)
        case 3:
            tensors[name] = array.astype(np.float64)
        case 4:
            plane = name.rpartition(".")[0]
            tensors[f"{plane}.palette"] = rng.integers(0, 256, rng.integers(0, 20), dtype=np.uint8)
        case 5:
            count = str(rng.choice(list(COUNTS)))
            metadata = metadata | {count: str(rng.choice([-1, 0, 1, 8, 10**6, 2**62]))}
    return tensors, metadata


@pytest.mark.parametrize("seed", range(6))
def test_any_damaged_block_is_rejected_or_consistent(seed):
    block = random_block(seed, [40, 0, 300, 1], np.int64 if seed % 2 else np.int32)
    written = block_tensors(block, PlaneWriter(list(COMPRESSIONS)[seed % 3]))
    rng, refused = np.random.default_rng(seed), 0
    for _ in range(150):
        try:
            found = block_of(*damaged(*written, rng))
        except BlockError:
            refused += 1
            continue
        assert found.indptr[-1] == found.indices.size == found.values.size
        assert found.label_ptr[-1] == found.labels.size
        for begin, end in itertools.pairwise(found.indptr.tolist()):
            row = found.indices[begin:end]
            assert (np.diff(row) > 0).all() and (row >= 0).all() and (row < found.n_features).all()
    assert refused > 50


@pytest.fixture
def store(tmp_path):
    X, y = rows()
    save_svmlight(X, y, tmp_path / "x.svm")
    return convert(tmp_path / "x.svm", tmp_path / "s", blocks=4)


def test_missing_truncated_and_foreign_files_are_named(store, tmp_path):
    path = store.path / "block-0-2.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(StoreError, match=f"block-0-2.safetensors has {len(content) - 1} bytes instead of"):
        BlockStore(store.path)
    path.unlink()
    with pytest.raises(StoreError, match=r"block-0-2.safetensors is missing; restore it"):
        BlockStore(store.path)
    path.write_bytes(content)
    (store.path / "block-0-1.safetensors").write_bytes(b"x" * store.manifest.blocks[1].size)
    assert [problem.partition(": ")[2] for problem in BlockStore(store.path).verify()] == [
        "its content has changed since it was written"
    ]
    with pytest.raises(BlockError, match=r"block-0-1.safetensors: .*; restore it"):
        BlockStore(store.path).read(1)
    with pytest.raises(StoreError, match="does not exist; create a store"):
        BlockStore(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="is a file"):
        BlockStore(tmp_path / "x.svm")


@pytest.mark.parametrize("place", range(0, 2000, 37))
def test_no_byte_of_a_block_can_change_unnoticed_or_do_harm(place, store):
    path = store.path / "block-0-0.safetensors"
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 0x15
    path.write_bytes(content)
    opened = BlockStore(store.path)
    assert len(list(opened.verify())) == 1
    try:
        block = opened.read(0)
        assert block.indices.size == 0 or block.indices.max() < opened.n_features
    except BlockError as error:
        assert "block-0-0.safetensors" in str(error)


def test_a_folder_that_is_in_use_is_left_alone(store, tmp_path):
    with pytest.raises(StoreError, match="is a store already"):
        convert(tmp_path / "x.svm", store.path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("all my work")
    with pytest.raises(StoreError, match="is not empty"):
        convert(tmp_path / "x.svm", tmp_path / "other")
    assert (tmp_path / "other" / "thesis.txt").read_text() == "all my work"


def test_malformed_text_is_rejected_with_its_line(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:1\n2 1:x\n")
    with pytest.raises(ValueError, match=r"x.svm:2:5: expected a number"):
        convert(tmp_path / "x.svm", tmp_path / "s")
    with pytest.raises(StoreError, match="has no manifest"):
        BlockStore(tmp_path / "s")


def test_a_conversion_does_not_resume_with_other_settings(tmp_path):
    X, y = rows()
    save_svmlight(X, y, tmp_path / "x.svm")
    (tmp_path / "s").mkdir()
    settings = Conversion(TextRows([tmp_path / "x.svm"]), tmp_path / "s", memory=MEMORY)._settings
    journal = {"settings": settings | {"seed": 3}, "place": {}, "blocks": []}
    (tmp_path / "s" / "conversion.json").write_text(json.dumps(journal))
    with pytest.raises(StoreError, match="interrupted conversion with different seed; repeat it"):
        convert(tmp_path / "x.svm", tmp_path / "s")


def test_hashes_look_random():
    bins = shuffled(np.arange(100_000), 7) % np.uint64(100)
    counts = np.bincount(bins.astype(int), minlength=100)
    assert counts.min() > 800 and counts.max() < 1200
