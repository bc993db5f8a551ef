"""Smaller models: what is kept, how far it is from the weights, and the file that holds it."""

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp

from manyclass.model import LinearModel, load_model, save_model
from model.test_file import make_model, refused, rewrite, rewrite_tensors, rows


def weights_of(model):
    return model.matrix.toarray() if model.is_sparse else model.matrix


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_half_precision_is_the_nearest_there_is(sparse, dtype):
    model = make_model(sparse=sparse, dtype=dtype)
    np.testing.assert_array_equal(
        weights_of(model.compress("float16")), weights_of(model).astype(np.float16).astype(np.float32)
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_integers_are_within_half_a_step_of_each_class(sparse):
    model = make_model(sparse=sparse)
    before, after = weights_of(model), weights_of(model.compress("int8"))
    step = np.abs(before).max(axis=0) / 127
    assert (np.abs(after - before) <= step * 0.501).all()
    np.testing.assert_allclose(np.abs(after).max(axis=0), np.abs(before).max(axis=0), rtol=1e-6)


@pytest.mark.parametrize("dtype", [None, "float16", "int8"])
def test_small_weights_are_dropped_and_no_others(dtype):
    model = make_model()
    before, after = weights_of(model), weights_of(model.compress(dtype, prune=0.5))
    np.testing.assert_array_equal(after != 0, np.abs(before) >= 0.5)


@pytest.mark.parametrize("dtype", [None, "int8"])
def test_the_largest_weights_of_a_class_are_kept(dtype):
    model = make_model(sparse=True)
    before, after = weights_of(model), weights_of(model.compress(dtype, keep=3))
    for c in range(model.n_classes):
        kept = np.flatnonzero(after[:, c])
        assert len(kept) == min(3, np.count_nonzero(before[:, c]))
        assert np.abs(before[kept, c]).min() >= np.abs(np.delete(before[:, c], kept)).max()


def test_pruned_weights_have_the_smaller_layout():
    model = make_model()
    assert not model.compress().is_sparse
    pruned = model.compress(prune=1.5)
    assert pruned.is_sparse and pruned.nbytes < model.nbytes
    assert pruned.settings["compression"] == {"dtype": None, "prune": 1.5, "keep": None}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [({"dtype": "int4"}, "'int4'"), ({"prune": -1}, "prune"), ({"prune": np.nan}, "prune"), ({"keep": 0}, "keep")],
)
def test_what_cannot_be_asked_for(asked, reason):
    with pytest.raises(ValueError, match=reason):
        make_model().compress(**asked)


def test_weights_too_large_for_half_precision_are_refused():
    model = LinearModel(np.full((2, 2), 1e5, np.float32), np.zeros(2, np.float32), np.arange(2))
    with pytest.raises(ValueError, match="does not fit in float16"):
        model.compress("float16")
    np.testing.assert_allclose(weights_of(model.compress("int8")), 1e5)


def test_a_one_vs_one_model_votes_as_before():
    rng = np.random.default_rng(0)
    model = LinearModel(
        rng.normal(size=(6, 10)).astype(np.float32), np.zeros(10, np.float32), np.arange(5), {"pairs": True}
    )
    X = sp.random(30, 6, 0.5, format="csr", random_state=0)
    assert (model.compress("float16").predict(X) == model.predict(X)).mean() > 0.9


# ---- The file


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("text", [False, True])
def test_a_compressed_model_comes_back_as_it_was(tmp_path, dtype, text, mmap):
    model = make_model(text=text, classes=list("abcde")).compress(dtype)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m", mmap=mmap)
    assert loaded.weights.values.dtype == dtype and loaded.weights.values.ctypes.data % 64 in (0, 16, 32, 48)
    X = rows(model)
    assert loaded.scores(X).tobytes() == model.scores(X).tobytes()
    save_model(loaded, tmp_path / "again")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()


def test_compressed_files_are_smaller(tmp_path):
    model = make_model(sparse=True, K=2000)
    sizes = []
    for dtype in (None, "float16", "int8"):
        save_model(model.compress(dtype), tmp_path / "m")
        with safetensors.safe_open(tmp_path / "m", "numpy") as handle:
            sizes.append(handle.get_tensor("weights.values").nbytes + handle.get_tensor("weights.indices").nbytes)
            assert handle.metadata()["format_version"] == ("2" if dtype else "1")
    assert sizes[1] == sizes[0] / 2 and sizes[2] < sizes[0] * 3 / 8 + 1


def stored(path, name):
    return safetensors.numpy.load_file(path)[name]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: {"weights__scale": None}, "tensor 'weights.scale' is missing"),
        (lambda path: {"weights__scale": np.ones(4, np.float32)}, "scale is float32 of shape"),
        (lambda path: {"weights__scale": np.ones(5)}, "scale is float64"),
        (lambda path: {"weights__scale": np.array([1, 1, np.nan, 1, 1], np.float32)}, "scales are NaN"),
        (lambda path: {"weights__scale": np.array([1, 1, 1, 1, -1], np.float32)}, "negative"),
        (lambda path: {"intercept": np.zeros(5, np.float16)}, "intercept is float16"),
        (lambda path: {"weights__indices": stored(path, "weights.indices") + np.uint16(60000)}, "outside 0..4"),
        (lambda path: {"weights__indices": stored(path, "weights.indices")[::-1].copy()}, "do not ascend"),
        (lambda path: {"weights__indices": stored(path, "weights.indices").astype(np.int16)}, "types"),
        (lambda path: {"weights__values": stored(path, "weights.values").astype(np.float32)}, "types"),
        (lambda path: {"weights__values": stored(path, "weights.values").astype(np.uint8)}, "types"),
        (lambda path: {"weights__values": stored(path, "weights.values").astype(np.float16)}, "unexpected tensors"),
    ],
)
def test_compressed_models_that_contradict_themselves_are_refused(tmp_path, damage, reason):
    path = tmp_path / "m"
    save_model(make_model().compress("int8"), path)
    rewrite_tensors(path, **damage(path))
    refused(path, reason)


def test_half_precision_that_is_not_finite_is_refused(tmp_path):
    save_model(make_model().compress("float16"), tmp_path / "m")
    values = stored(tmp_path / "m", "weights.values")
    rewrite_tensors(tmp_path / "m", weights__values=np.full_like(values, np.inf))
    refused(tmp_path / "m", "NaN or infinite")


def test_version_1_holds_no_narrow_weights(tmp_path):
    save_model(make_model().compress("int8"), tmp_path / "m")
    rewrite(
        tmp_path / "m", lambda header: header | {"__metadata__": header["__metadata__"] | {"format_version": "1"}}
    )
    refused(tmp_path / "m", "version 1")
