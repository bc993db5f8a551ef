"""Training from a store reaches the optimum of training in memory, whatever the blocks, the memory and mishaps."""

import os
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from losses import make, text_like
from sklearn.base import clone
from stored_fits import (
    assert_certificate_follows_from_formulas,
    assert_same_bits,
    memory_needed,
    store_of,
    variables_of,
)

from manyclass import BlockStore, DiskEngine, MulticlassSVC, OneVsOneSVC, OneVsRestSVC, select_C
from manyclass.data.block_file import BlockError
from manyclass.data.compression import PlaneWriter
from manyclass.data.conversion import write_block
from manyclass.data.dealing import shuffled
from manyclass.engines import DualStore
from manyclass.engines.stored_rows import folds_of

LOSSES = ["ww", "cs", "llw", "mmr", "rm", "adm", "atm", "ats", "maxent", "hinge", "squared_hinge", "logistic"]
SLOW = ("adm", "atm")
ROOM = "40MB"


def disk(**options):
    return DiskEngine(**{"memory": ROOM} | options)


@pytest.mark.parametrize("blocks", [1, 2, 7, 40])
@pytest.mark.parametrize("loss", LOSSES)
def test_any_number_of_blocks_gives_the_optimum_of_memory(loss, blocks, tmp_path):
    X, y = text_like(150, 90, 6, seed=blocks)
    tol = 1e-2 if loss in SLOW else 1e-4
    store = store_of(X, y, tmp_path / "s", blocks)
    assert store.n_blocks == blocks
    parameters = {"dtype": "float64", "max_iter": 20_000, "n_jobs": 1}
    fitted = make(loss, tol=tol, engine=disk(), warm_start=True, **parameters).fit(store)
    best = make(loss, tol=1e-2 if loss in SLOW else 1e-6, **parameters).fit(X, y).certificate_
    found = fitted.certificate_
    assert found.exit_reason == "converged" and found.gap <= tol
    assert found.primal >= best.dual * (1 - 1e-12) and found.dual <= best.primal * (1 + 1e-12)
    assert_certificate_follows_from_formulas(fitted, store, loss, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_bits_do_not_depend_on_threads(loss, tmp_path):
    X, y = text_like(300, 200, 40, seed=3)
    store = store_of(X, y, tmp_path / "s", 12, np.float32)
    engine = disk(memory="1MB" if loss in ("ww", "cs", "hinge", "squared_hinge") else ROOM, blocks_per_batch=3)
    models = [make(loss, tol=0.3, n_jobs=n, engine=engine).fit(store) for n in (1, 2, 4)]
    assert_same_bits(models)


def least_memory(estimator, store):
    """Return the memory that a fit asks for, in bytes."""
    with pytest.raises(ValueError, match="is not enough") as refused:
        clone(estimator).set_params(engine=disk(memory=1)).fit(store)
    return memory_needed(str(refused.value))


def test_little_memory_does_not_take_many_more_passes(tmp_path):
    """The constant feature is in all rows: each block alone would fit it in its own way, again and again."""
    X, y = text_like(1500, 300, 5, seed=2)
    store = store_of(X[:1000], y[:1000], tmp_path / "s", 12)
    store.append(X[1000:], y[1000:])
    estimator = MulticlassSVC("cs", tol=1e-2)
    passes = clone(estimator).set_params(engine=disk(memory=least_memory(estimator, store))).fit(store).n_iter_
    assert passes <= 2 * clone(estimator).fit(X, y).n_iter_


@pytest.mark.parametrize("loss", ["ww", "maxent", "squared_hinge", "logistic"])
def test_little_memory_moves_variables_to_files(loss, tmp_path, monkeypatch):
    X, y = text_like(300, 200, 40, seed=4)
    store = store_of(X, y, tmp_path / "s", 12)
    estimator = make(loss, tol=1e-3, dtype="float64", max_iter=5000)
    limit = least_memory(estimator, store)
    written, write = [], DualStore._write
    monkeypatch.setattr(DualStore, "_write", lambda s, *a: (written.append(a[0]), write(s, *a))[1])
    fitted = estimator.set_params(engine=disk(memory=limit)).fit(store)
    assert written, "no variables were written: there is too much memory"
    best = make(loss, tol=1e-6, dtype="float64", max_iter=5000).fit(X, y).certificate_
    assert fitted.certificate_.gap <= 1e-3
    assert fitted.certificate_.primal >= best.dual and fitted.certificate_.dual <= best.primal
    del fitted
    assert [path.name for path in (tmp_path / "s").iterdir() if "variables" in path.name] == []


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_rows_with_any_number_of_labels(loss, tmp_path):
    X, _ = text_like(120, 60, 5, seed=5)
    Y = sp.random(120, 5, 0.3, format="csr", random_state=1).astype(bool).astype(int)
    Y = sp.diags(np.arange(120) != 7, dtype=int) @ Y
    Y.eliminate_zeros()
    store = store_of(X, Y, tmp_path / "s", 6)
    assert store.manifest.multilabel
    parameters = {"tol": 1e-6, "dtype": "float64", "max_iter": 5000}
    fitted = make(loss, engine=disk(), **parameters).fit(store)
    assert fitted.model_.label_counts.tolist() == Y.sum(axis=0).A1.tolist()
    assert fitted.model_.settings["n_rows"] == 120
    found = fitted.certificate_
    # One class against the others is half of a problem with two classes.
    each = [make(loss, **parameters).fit(X, Y[:, c].toarray().ravel()).certificate_ for c in range(5)]
    assert found.primal == pytest.approx(sum(one.primal for one in each) / 2, rel=2e-6)
    assert found.dual == pytest.approx(sum(one.dual for one in each) / 2, rel=2e-6)
    with pytest.raises(ValueError, match="one-vs-rest"):
        MulticlassSVC("cs").fit(store)


def test_empty_rows_weights_of_classes_and_rows(tmp_path):
    X, y = text_like(120, 60, 5, seed=6)
    X = sp.vstack([X, sp.csr_matrix((3, 60))]).tocsr()
    y = np.append(y, [0, 1, 2])
    store = store_of(X, y, tmp_path / "s", 6)
    weight = np.random.default_rng(0).uniform(0, 2, 123)
    weight[::7] = 0
    parameters = {"tol": 1e-6, "dtype": "float64", "fit_intercept": False, "class_weight": {1: 3.0}}
    for loss in ("cs", "ww", "maxent", "squared_hinge", "logistic"):
        here = make(loss, engine=disk(), **parameters).fit(store, sample_weight=weight).certificate_
        there = make(loss, **parameters).fit(X, y, weight).certificate_
        assert here.primal == pytest.approx(there.primal, rel=3e-6), loss
        assert here.dual == pytest.approx(there.dual, rel=3e-6), loss


@pytest.mark.parametrize("options", [{"rounds": 1}, {"rounds": "tol"}, {"rounds": "auto"}, {"blocks_per_batch": 1}])
@pytest.mark.parametrize("loss", ["cs", "squared_hinge"])
def test_every_way_to_visit_blocks(loss, options, tmp_path):
    X, y = text_like(150, 90, 6, seed=7)
    store = store_of(X, y, tmp_path / "s", 10)
    best = make(loss, tol=1e-6, dtype="float64").fit(X, y).certificate_.primal
    found = make(loss, tol=1e-4, dtype="float64", engine=disk(**options)).fit(store).certificate_
    assert found.gap <= 1e-4 and found.primal == pytest.approx(best, rel=2e-4)


# ---- Added and removed rows


@pytest.mark.parametrize("loss", ["ww", "maxent", "hinge", "squared_hinge", "logistic"])
def test_removed_rows_leave_nothing_behind(loss, tmp_path):
    X, y = text_like(1000, 330, 6, seed=8)
    store = store_of(X, y, tmp_path / "s", 20)
    estimator = make(loss, tol=1e-2, dtype="float64", warm_start=True, engine=disk(), max_iter=5000)
    estimator.fit(store)
    gone = np.random.default_rng(0).permutation(1000)[:10]
    store.remove(gone)
    block = store.read(3).ids
    store.remove(blocks=[3])
    warm = estimator.fit(store)
    cold = make(loss, tol=1e-2, dtype="float64", engine=disk(), max_iter=5000).fit(store)
    alpha, found = variables_of(warm, store, loss), warm.certificate_
    assert not alpha[gone].any() and not alpha[block].any()
    assert_certificate_follows_from_formulas(warm, store, loss, X, y)  # on the remaining rows
    assert found.gap <= 1e-2 and found.primal >= cold.certificate_.dual
    assert warm.n_iter_ < cold.n_iter_


@pytest.mark.parametrize("loss", ["cs", "llw", "maxent", "hinge", "squared_hinge"])
def test_a_warm_start_learns_added_rows_in_fewer_passes(loss, tmp_path):
    X, y = text_like(1010, 330, 6, seed=9)
    store = store_of(X[:1000], y[:1000], tmp_path / "s", 20)
    estimator = make(loss, tol=1e-2, dtype="float64", warm_start=True, engine=disk(), max_iter=5000)
    estimator.fit(store)
    store.append(X[1000:], y[1000:])
    warm = estimator.fit(store)
    cold = make(loss, tol=1e-2, dtype="float64", engine=disk(), max_iter=5000).fit(store)
    everything = make(loss, tol=1e-4, dtype="float64", max_iter=5000).fit(X, y).certificate_
    assert warm.certificate_.gap <= 1e-2
    assert warm.certificate_.primal >= everything.dual and warm.certificate_.dual <= everything.primal
    assert warm.n_iter_ < cold.n_iter_


@pytest.mark.parametrize("loss", ["ww", "maxent", "squared_hinge"])
def test_new_classes_start_from_scratch(loss, tmp_path):
    X, y = text_like(220, 90, 6, seed=9)
    store = store_of(X[:200], y[:200], tmp_path / "s", 10)
    estimator = make(loss, tol=1e-4, dtype="float64", warm_start=True, engine=disk(), max_iter=5000)
    estimator.fit(store)
    store.append(X[200:], y[200:] - 10)  # sorted before all others, which get new codes
    found = estimator.fit(store)
    labels = np.append(y[:200], y[200:] - 10)
    best = make(loss, tol=1e-6, dtype="float64", max_iter=5000).fit(X, labels).certificate_.primal
    assert found.certificate_.gap <= 1e-4 and found.certificate_.primal == pytest.approx(best, rel=2e-4)


# ---- Prediction and selection of C


def test_rows_of_a_store_are_predicted_in_the_order_of_their_ids(tmp_path):
    X, y = text_like(200, 90, 6, seed=10)
    store = store_of(X, y, tmp_path / "s", 10)
    store.remove([5, 17])
    left = np.setdiff1d(np.arange(200), [5, 17])
    fitted = OneVsRestSVC(engine=disk()).fit(store)
    np.testing.assert_array_equal(fitted.predict(store), fitted.predict(X[left]))
    for found, expected in zip(fitted.predict_topk(store, 3), fitted.predict_topk(X[left], 3), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert fitted.score(store) == fitted.score(X[left], y[left])


@pytest.mark.parametrize("loss", ["cs", "maxent", "squared_hinge"])
def test_folds_are_left_out(loss, tmp_path):
    X, y = text_like(240, 90, 5, seed=11)
    store = store_of(X, y, tmp_path / "s", 8)
    estimator = make(loss, tol=1e-5, dtype="float64", engine=disk(), max_iter=5000)
    found = select_C(estimator, store, Cs=[1.0, 0.1], cv=3)
    assert found.converged.all() and found.gaps.max() <= 1e-5
    fold = folds_of(np.arange(240), 3, 0)
    for place, C in enumerate([0.1, 1.0]):
        for f in range(3):
            alone = make(loss, C=C, tol=1e-5, dtype="float64", max_iter=5000)
            alone.fit(X[fold != f], y[fold != f])
            right = np.mean(alone.predict(X[fold == f]) == y[fold == f])
            # Both are within 1e-5 of the same optimum, so a row or two may differ.
            assert found.accuracies[place, f] == pytest.approx(right, abs=2.5 / np.sum(fold == f))


def test_a_path_of_penalties(tmp_path):
    X, y = text_like(150, 90, 6, seed=12)
    store = store_of(X, y, tmp_path / "s", 6)
    for loss in ("ww", "maxent", "hinge", "logistic"):
        for fitted in make(loss, tol=1e-3, dtype="float64", engine=disk()).path(store, Cs=[3.0, 0.1, 1.0]):
            best = make(loss, C=fitted.C, tol=1e-5, dtype="float64").fit(X, y).certificate_
            assert fitted.certificate_.gap <= 1e-3
            assert fitted.certificate_.primal >= best.dual and fitted.certificate_.dual <= best.primal


# ---- Rejected input


def test_what_is_refused(tmp_path):
    X, y = text_like(60, 40, 4, seed=13)
    store = store_of(X, y, tmp_path / "s", 4)
    with pytest.raises(ValueError, match="contains the labels"):
        OneVsRestSVC().fit(store, y)
    with pytest.raises(ValueError, match="convert the rows"):
        OneVsRestSVC(engine="disk").fit(X, y)
    with pytest.raises(ValueError, match="OneVsOneSVC cannot train from a store"):
        OneVsOneSVC().fit(store)
    with pytest.raises(ValueError, match="solver='dual'"):
        OneVsRestSVC(solver="newton").fit(store)
    with pytest.raises(ValueError, match="engine='joblib' needs rows in memory"):
        OneVsRestSVC(engine="joblib").fit(store)
    with pytest.raises(ValueError, match="60 finite numbers"):
        OneVsRestSVC().fit(store, sample_weight=np.ones(3))
    for wrong in ({"memory": "much"}, {"rounds": 0}, {"rounds": "twice"}, {"blocks_per_batch": 0}):
        with pytest.raises(ValueError, match=r"size|rounds|blocks_per_batch"):
            DiskEngine(**wrong)
    one = store_of(X, np.zeros(60), tmp_path / "one", 2)
    with pytest.raises(ValueError, match="only one class"):
        MulticlassSVC().fit(one)


def test_a_damaged_block_is_named(tmp_path):
    X, y = text_like(60, 40, 4, seed=13)
    store = store_of(X, y, tmp_path / "s", 4)
    path = tmp_path / "s" / store.manifest.blocks[2].file
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = os.urandom(len(content) - len(content) // 2)
    path.write_bytes(content)
    with pytest.raises(BlockError, match=path.name):
        OneVsRestSVC(engine=disk()).fit(BlockStore(tmp_path / "s"))


@pytest.mark.parametrize("wrong", ["descending", "too large"])
def test_invalid_features_are_reported_with_their_file(wrong, tmp_path):
    X, y = text_like(60, 40, 4, seed=13)
    store = store_of(X, y, tmp_path / "s", 4)
    block = store.read_with_removed(2)
    indices = block.indices.copy()
    first = slice(block.indptr[0], block.indptr[1])
    indices[first] = indices[first][::-1] if wrong == "descending" else indices[first] + 40
    path = tmp_path / "s" / store.manifest.blocks[2].file
    write_block(path, replace(block, indices=indices), PlaneWriter())
    with pytest.raises(BlockError, match=f"{path.name}.*(ascend|large)"):
        OneVsRestSVC(engine=disk()).fit(store)


# ---- Variables in files


def test_variables_of_another_fit_are_rejected(tmp_path):
    X, y = text_like(100, 40, 4, seed=15)
    store = store_of(X, y, tmp_path / "s", 4)
    OneVsRestSVC("hinge", engine=disk(), checkpoint=tmp_path / "folder").fit(store)
    with pytest.raises(ValueError, match=r"variables of another fit.*loss"):
        OneVsRestSVC("squared_hinge", engine=disk(), checkpoint=tmp_path / "folder", resume=True).fit(store)
    again = OneVsRestSVC("hinge", engine=disk(), checkpoint=tmp_path / "folder", resume=True).fit(store)
    assert again.n_iter_ == 1
    cut = next((tmp_path / "folder").glob("*.variables"))
    cut.write_bytes(cut.read_bytes()[:-5])
    with pytest.raises(ValueError, match=cut.name):
        OneVsRestSVC("hinge", engine=disk(), checkpoint=tmp_path / "folder", resume=True).fit(store)


def test_folds_do_not_follow_blocks():
    ids = np.arange(10_000)
    bins = shuffled(ids, 0) % np.uint64(40)
    fold = folds_of(ids, 5, 0)
    counts = np.array([[np.sum((bins == b) & (fold == f)) for f in range(5)] for b in range(40)])
    assert counts.min() > 20


def test_the_blocks_per_batch_are_still_accepted_under_their_old_name():
    with pytest.warns(DeprecationWarning, match=r"use DiskEngine\(blocks_per_batch"):
        engine = DiskEngine(together=3)
    assert engine == DiskEngine(blocks_per_batch=3) and replace(engine, memory="2GB").blocks_per_batch == 3
