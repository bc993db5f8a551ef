"""Synthetic text has the requested shape, and its rows do not depend on the block size."""

import numpy as np
import pytest
import scipy.sparse as sp
from csr_rows import assert_same
from sklearn.preprocessing import normalize

from manyclass.data import iter_text_like, make_text_like
from manyclass.data.synthetic import PRESETS

SMALL = {"n": 3000, "n_test": 500, "d": 20_000, "K": 300, "nnz": 60}


@pytest.fixture(scope="module")
def small():
    return make_text_like("lshtc-small", **SMALL)


def test_shapes_types_and_rows_of_length_one(small):
    X, y, X_test, y_test = small
    assert X.shape == (3000, 20_000) and X_test.shape == (500, 20_000)
    assert X.dtype == np.float32 and X.has_canonical_format and y.dtype == np.int64
    assert set(y) == set(range(300)) and set(y_test) <= set(range(300))
    for rows in (X, X_test):
        np.testing.assert_allclose(rows.multiply(rows).sum(axis=1), 1, rtol=1e-5)
        assert abs(rows.nnz / rows.shape[0] - 60) < 6
    assert X.data.min() > 0


@pytest.mark.parametrize("preset", ["lshtc-small", "bench-1k"])
def test_presets_look_like_text(preset):
    X, y, X_test, _ = make_text_like(preset)
    shape = PRESETS[preset]
    assert X.shape == (shape.n, shape.d) and X_test.shape == (shape.n_test, shape.d)
    assert abs(X.nnz / shape.n / shape.nnz - 1) < 0.05
    document_frequency = np.bincount(X.indices, minlength=shape.d)
    assert 0.25 <= np.mean(document_frequency == 1) <= 0.4
    sizes = np.bincount(y, minlength=shape.K)
    assert sizes.min() >= 1 and sizes.max() > 5 * sizes.mean()


def test_presets_have_the_published_shapes():
    shapes = {name: (s.n, s.n_test, s.K, s.d) for name, s in PRESETS.items()}
    assert shapes["lshtc-small"] == (4_463, 1_858, 1_139, 51_033)
    assert shapes["lshtc-large"] == (128_710, 34_880, 12_294, 381_581)
    assert shapes["lshtc-2012"] == (383_408, 103_435, 11_947, 575_555)
    assert shapes["lshtc-2011"] == (394_754, 104_263, 27_875, 594_158)


@pytest.mark.parametrize("rows_per_block", [1, 700, 1024, 1025, 10_000])
@pytest.mark.parametrize("split", ["train", "test"])
def test_rows_do_not_depend_on_the_block_size(small, rows_per_block, split):
    X, y = small[:2] if split == "train" else small[2:]
    blocks = list(iter_text_like("lshtc-small", rows_per_block=rows_per_block, split=split, **SMALL))
    assert all(block.shape[0] == rows_per_block for block, _ in blocks[:-1])
    rows = sp.vstack([block for block, _ in blocks], format="csr")
    assert_same(rows, X)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in blocks]), y)


def test_seeds_choose_the_data_and_global_generators_do_not(small):
    np.random.seed(1)
    again = make_text_like("lshtc-small", **SMALL)
    assert (again[0] != small[0]).nnz == 0
    other = make_text_like("lshtc-small", seed=1, **SMALL)
    assert (other[0] != small[0]).nnz > 0


def test_classes_can_be_learned_but_not_perfectly():
    X, y, X_test, y_test = make_text_like("lshtc-small")
    K = PRESETS["lshtc-small"].K
    centroids = normalize(sp.csr_matrix((np.ones(y.size), (y, np.arange(y.size))), shape=(K, y.size)) @ X)
    error = np.mean((X_test @ centroids.T).toarray().argmax(axis=1) != y_test)
    assert 0.4 < error < 0.7


def test_wrong_arguments():
    with pytest.raises(ValueError, match="choose one of lshtc-small"):
        make_text_like("dmoz")
    with pytest.raises(ValueError, match="training row per class"):
        make_text_like("lshtc-small", n=10, K=11)
    with pytest.raises(ValueError, match="quarter of d"):
        make_text_like("lshtc-small", d=100, nnz=50)
    with pytest.raises(ValueError, match="split"):
        iter_text_like("lshtc-small", split="valid")
    with pytest.raises(ValueError, match="rows_per_block"):
        iter_text_like("lshtc-small", rows_per_block=0)


def test_no_test_rows():
    _, _, X_test, y_test = make_text_like("lshtc-small", **{**SMALL, "n_test": 0})
    assert X_test.shape == (0, 20_000) and y_test.shape == (0,)
