"""After appending and removing rows, a store equals one made of the remaining rows."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from manyclass.data import BlockStore, save_svmlight
from manyclass.data.block_file import join_blocks
from manyclass.data.conversion import Conversion
from manyclass.data.manifest import Manifest, StoreError
from manyclass.data.matrix_rows import MatrixRows
from manyclass.data.row_parts import TextRows
from manyclass.data.store_lock import writing

MEMORY = 64 << 20


def rows(n, d=30, K=5, seed=0):
    X = sp.random(n, d, 0.2, format="csr", random_state=seed).astype(np.float32)
    return X, np.random.default_rng(seed).integers(0, K, n)


def make(folder, X, y, **options):
    return Conversion(MatrixRows(X, y), folder, memory=MEMORY, **options).run()


def content(store):
    """Return ids, rows and labels in id order."""
    block = join_blocks([store.read(number) for number in range(store.n_blocks)])
    block = block.take(np.argsort(block.ids))
    return block.ids, block.as_csr(store.n_features), store.classes[block.labels]


def assert_holds(store, ids, X, y):
    found = content(store)
    assert found[0].tolist() == list(ids)
    assert found[1].shape == X.shape and (found[1] != X).nnz == 0
    assert found[2].tolist() == list(y)
    assert store.n_rows == X.shape[0] and store.nnz == X.nnz
    assert store.classes.tolist() == sorted(set(y))
    np.testing.assert_array_equal(store.frequencies, np.bincount(X.indices, minlength=X.shape[1]))
    assert list(store.verify()) == []


def assert_counts(store, X):
    """Check the frequencies, without an array of all features."""
    found = store.catalogue.frequencies
    features, counts = np.unique(X.indices, return_counts=True)
    assert found.features.tolist() == features.tolist() and found.counts.tolist() == counts.tolist()
    assert (store.path / store.manifest.catalogue).stat().st_size < 1 << 20


def test_very_many_features_are_listed_only_if_they_occur(tmp_path):
    X, y = rows(60)
    X = sp.csr_matrix((X.data, X.indices * np.int64(3_000_000), X.indptr), (60, 100_000_000))
    store = make(tmp_path / "store", X[:40], y[:40], blocks=3)
    assert_counts(store, X[:40])
    wider = sp.csr_matrix((X.data, X.indices + np.int64(1), X.indptr), (60, 100_000_001))
    store.append(wider[40:], y[40:])
    X.resize(60, 100_000_001)
    X = sp.vstack([X[:40], wider[40:]], "csr")
    assert_counts(store, X)
    store.remove([0, 7, *range(30, 50)])
    kept = np.setdiff1d(np.arange(60), [0, 7, *range(30, 50)])
    assert_counts(store, X[kept])
    found, labels = store.load()
    assert (found != X[kept][:, : found.shape[1]]).nnz == 0 and labels.tolist() == y[kept].tolist()


@pytest.mark.parametrize("many", [1, 29, 31])
@pytest.mark.parametrize("too_many", [1, 3, 100])
def test_listed_counts_are_those_of_all_features(many, too_many, tmp_path, monkeypatch):
    monkeypatch.setattr("manyclass.data.frequencies.MANY", many)
    monkeypatch.setattr("manyclass.data.frequencies.TOO_MANY", too_many)
    X, y = rows(60)
    last = sp.csr_matrix(([1.0], ([0], [99])), (60, 100), dtype=np.float32)
    X = sp.hstack([X, last], "csr")
    store = make(tmp_path / "store", X[:40], y[:40], blocks=3).append(X[40:], y[40:]).remove([3, 50])
    kept = np.setdiff1d(np.arange(60), [3, 50])
    assert_holds(store, kept, X[kept], y[kept])


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


@settings(max_examples=25)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 40), st.integers(5, 50)),
            st.tuples(st.just("remove"), st.integers(0, 10**6), st.floats(0.05, 0.6)),
            st.tuples(st.just("block"), st.integers(0, 10**6), st.just(0)),
        ),
        max_size=6,
    )
)
def test_any_changes_leave_a_store_of_the_remaining_rows(tmp_path_factory, changes):
    folder = tmp_path_factory.mktemp("store") / "s"
    X, y = rows(60)
    store = make(folder, X, y, blocks=4)
    ids, X = np.arange(60), sp.csr_matrix(X)
    next_id = 60
    for step, (kind, number, more) in enumerate(changes):
        if kind == "append":
            new, labels = rows(number, more, 8, seed=step + 1)
            store.append(new, labels, seed=step)
            width = max(more, X.shape[1])
            for part in (new, X):
                part.resize(part.shape[0], width)
            X, y = sp.vstack([X, new], "csr"), np.concatenate([y, labels])
            ids = np.concatenate([ids, np.arange(next_id, next_id + number)])
            next_id += number
            continue
        if kind == "remove":
            going = ids[np.random.default_rng(number).random(ids.size) < more]
            change = {"rows": going}
        else:
            block = number % store.n_blocks
            going, change = store.read(block).ids, {"blocks": [block]}
        left = ~np.isin(ids, going)
        if not left.any():
            with pytest.raises(StoreError, match="would be left"):
                store.remove(**change)
            continue
        assert store.remove(**change) is store
        ids, X, y = ids[left], X[left], y[left]
    assert_holds(BlockStore(folder), ids, X, y)
    assert_holds(store, ids, X, y)
    assert set(os.listdir(folder)) == store.manifest.files | {"manifest.json", ".lock"}


def test_blocks_never_change(tmp_path):
    store = make(tmp_path / "s", *rows(100), blocks=3)
    before = {name: data for name, data in snapshot(store.path).items() if name.startswith("block")}
    store.append(*rows(50, seed=1)).remove(rows=[3, 120]).append(*rows(20, seed=2))
    assert store.manifest.generation == 3
    after = snapshot(store.path)
    assert {name: after[name] for name in before} == before
    assert {name.split("-")[1] for name in after if name.startswith("block")} == {"0", "1", "3"}


def test_files_are_appended_as_the_store_was_made(tmp_path):
    X, y = rows(80, 20)
    save_svmlight(X[:50], y[:50], tmp_path / "a.svm")
    save_svmlight(X[50:], y[50:], tmp_path / "b.svm.gz")
    store = Conversion(TextRows([tmp_path / "a.svm"]), tmp_path / "s", memory=MEMORY).run()
    store.append([tmp_path / "b.svm.gz"])
    assert_holds(store, range(80), X, y)
    (tmp_path / "zero.svm").write_text("1 0:1 3:2\n")
    before = snapshot(store.path)
    with pytest.raises(ValueError, match=r"zero.svm:1:3: index 0, but features are counted from 1"):
        store.append(tmp_path / "zero.svm")
    assert snapshot(store.path) == before


def test_streams_of_unknown_length(tmp_path, monkeypatch):
    """The rows are dealt to many bins, and several bins share a block."""
    monkeypatch.setattr("manyclass.data.conversion.LEAST_MEMORY", 0)
    monkeypatch.setattr("manyclass.data.matrix_rows.ROWS_AT_ONCE", 100)
    X, y = rows(3000)
    store = Conversion(MatrixRows(X, y), tmp_path / "s", memory=250_000).run()
    assert_holds(store, range(3000), X, y)
    sizes = [entry.nnz for entry in store.manifest.blocks]
    assert 20 < store.n_blocks < 120 and max(sizes) < 3 * np.median(sizes)
    assert all((np.diff(store.read(number).ids) > 0).all() for number in range(store.n_blocks))


def test_strings_stay_strings(tmp_path):
    X, y = rows(60)
    names = np.array(["pear", "fig", "äpfel", "kiwi", "plum"])[y]
    store = make(tmp_path / "s", X, names, blocks=2)
    more, labels = rows(10, seed=1)
    store.append(more, np.array(["fig", "date"])[labels % 2])
    assert content(store)[2].tolist() == [*names, *np.array(["fig", "date"])[labels % 2]]
    with pytest.raises(ValueError, match="the label 0 is a number, but others are strings"):
        store.append(*rows(10))
    gone = np.flatnonzero(names == "pear")
    assert "pear" not in store.remove(gone).classes
    assert "pear" in store.append(X[:1], ["pear"]).classes


def test_missing_rows_and_blocks_cannot_be_removed(tmp_path):
    store = make(tmp_path / "s", *rows(60), blocks=4)
    store.remove([5, 7]).remove(blocks=[1])
    before = snapshot(store.path)
    for change, message in (
        ({"rows": [5]}, "row 5 of .* was already removed"),
        ({"rows": [1, 60, 99]}, "has no row 60, 99; ids are from 0 to 59"),
        ({"rows": [-1]}, "has no row -1"),
        ({"blocks": [3]}, "has no block 3; its blocks are 0 to 2"),
        ({"blocks": [0, 1, 2]}, "would be left"),
    ):
        with pytest.raises(StoreError, match=message):
            store.remove(**change)
    assert snapshot(store.path) == before
    assert store.remove().manifest.generation == 2


def test_invalid_rows_cannot_be_appended(tmp_path):
    store = make(tmp_path / "s", *rows(60))
    X, y = rows(10)
    for arguments, message in (
        ((X,), "pass y"),
        ((X, y[:5]), "X has 10 rows, but y has 5"),
        ((X, np.full(10, np.nan)), "is NaN"),
        ((["x.svm"], y), "pass y only with a matrix"),
    ):
        with pytest.raises(ValueError, match=message):
            store.append(*arguments)
    with pytest.raises(FileNotFoundError):
        store.append(tmp_path / "none.svm")
    assert BlockStore(store.path).manifest == store.manifest


def test_only_one_process_writes_at_a_time(tmp_path):
    store = make(tmp_path / "s", *rows(60))
    with writing(store.path):
        for change in (lambda: store.append(*rows(5)), lambda: store.remove([1])):
            with pytest.raises(StoreError, match="is being written by another process"):
                change()
    assert store.remove([1]).n_rows == 59


def test_a_complete_append_is_not_repeated(tmp_path, monkeypatch):
    """An append killed right after writing the manifest is finished by repeating the call, without adding rows."""
    X, y = rows(60)
    for name, part in (("a.svm", slice(0, 30)), ("b.svm", slice(30, 60))):
        save_svmlight(X[part], y[part], tmp_path / name)
    store = Conversion(TextRows([tmp_path / "a.svm"]), tmp_path / "s", memory=MEMORY).run()
    write, journals = Manifest.write, []

    def watched(manifest, folder):
        write(manifest, folder)
        journals.append((folder / "conversion.json").read_bytes())

    monkeypatch.setattr(Manifest, "write", watched)
    store.append(tmp_path / "b.svm")
    monkeypatch.undo()
    (store.path / "conversion.json").write_bytes(journals[0])
    assert_holds(store.append(tmp_path / "b.svm"), range(60), X, y)
    assert not (store.path / "conversion.json").exists()
    assert store.append(tmp_path / "b.svm").n_rows == 90
