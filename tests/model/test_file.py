"""The model file: what was saved comes back, equal models give equal bytes, and damage is refused."""

import errno
import json
import mmap
import os
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp

from manyclass.data import Chain, TextFeatures
from manyclass.model import LinearModel, ModelFileError, file, load_model, save_model
from manyclass.model.weights import WideWeights

TEXTS = ["a small cat", "a large dog", "the cat and the dog", "naïve café"]


def make_model(*, sparse=False, dtype=np.float32, classes=None, text=False, K=5):
    rng = np.random.default_rng(0)
    features = TextFeatures() if text else None
    d = features.fit_transform(TEXTS).shape[1] if features else 12
    weights = rng.normal(size=(d, K)).astype(dtype)
    weights[rng.random((d, K)) < 0.5] = 0
    weights = sp.csr_matrix(weights) if sparse else weights
    classes = np.arange(K) * 10 if classes is None else np.asarray(classes)
    return LinearModel(
        weights,
        rng.normal(size=K).astype(dtype),
        classes,
        {"loss": "ww", "C": 1.0},
        {"primal": 2.5, "gap": float("inf")},
        Chain([features] if features else []),
    )


def rows(model, n=20):
    return sp.random(n, model.n_features, 0.5, format="csr", dtype=model.dtype, random_state=1)


def without_checksums(metadata):
    return {name: value for name, value in metadata.items() if name not in ("checksums", "header_checksum")}


def rewrite(path, change=lambda header: header):
    """Change the header of a file, as earlier versions wrote it: `change` gets and gives the parsed JSON."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = without_checksums(header["__metadata__"])
    header = json.dumps(change(header)).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + size :])


def rewrite_tensors(path, **changed):
    """Write the file again with other tensors, as another program might; None removes one."""
    tensors = safetensors.numpy.load_file(path)
    with safetensors.safe_open(path, "numpy") as handle:
        metadata = without_checksums(handle.metadata())
    tensors |= {name.replace("__", "."): array for name, array in changed.items()}
    tensors = {name: array for name, array in tensors.items() if array is not None}
    safetensors.numpy.save_file(tensors, path, metadata)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("text", [False, True])
def test_what_was_saved_comes_back(tmp_path, sparse, dtype, text, mmap):
    model = make_model(sparse=sparse, dtype=dtype, text=text)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m", mmap=mmap)
    assert loaded.is_sparse == sparse and loaded.dtype == dtype
    assert loaded.settings == model.settings and loaded.certificate == model.certificate
    X = rows(model)
    np.testing.assert_array_equal(loaded.scores(X), model.scores(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if text:
        np.testing.assert_array_equal(loaded.scores(TEXTS), model.scores(TEXTS))


@pytest.mark.parametrize(
    "classes",
    [
        np.array([-3, 0, 7]),
        np.array([1, 2, 3], np.uint8),
        np.array([1, 2, 3], ">i4"),
        np.array([-0.5, 0.25, np.inf]),
        np.array(["", "Straße", "動物 (noun)"]),
        np.array(["a", "a\0", "b"], dtype=object),
    ],
    ids=lambda classes: str(classes.dtype),
)
def test_labels_keep_their_type(tmp_path, classes):
    save_model(make_model(classes=classes, K=3), tmp_path / "m")
    found = load_model(tmp_path / "m").classes
    assert found.dtype.kind == classes.dtype.kind
    assert found.tolist() == classes.tolist()


def test_truth_values_keep_their_type(tmp_path):
    save_model(make_model(classes=[False, True], K=2), tmp_path / "m")
    assert load_model(tmp_path / "m").classes.dtype == bool


@pytest.mark.parametrize(
    ("labels", "named"),
    [([("a", 1), ("b", 2)], r"\('a', 1\)"), (["a", None], "None"), ([b"x", b"y"], "b'x'"), ([1, "a"], "1")],
)
def test_other_labels_are_refused_by_name(tmp_path, labels, named):
    boxed = np.empty(2, dtype=object)
    boxed[:] = labels
    with pytest.raises(TypeError, match=f"label {named}"):
        save_model(make_model(classes=boxed, K=2), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_equal_models_give_equal_bytes(tmp_path):
    for name in "ab":
        model = make_model(sparse=True, text=True)
        model.settings = dict(sorted(model.settings.items(), reverse=name == "b"))
        save_model(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path):
    save_model(make_model(sparse=True, text=True), tmp_path / "a")
    save_model(load_model(tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("K", [2, 5, 6, 7])
def test_weights_are_mapped_not_copied_and_lie_at_a_cache_line(tmp_path, sparse, dtype, K):
    save_model(make_model(sparse=sparse, dtype=dtype, classes=list("abcdefg"[:K]), K=K), tmp_path / "m")
    model = load_model(tmp_path / "m")
    weights = model.weights
    parts = [weights.data, weights.indices] if sparse else [weights]
    for part in [*parts, model.intercept]:
        assert part.flags.aligned and part.flags.c_contiguous and not part.flags.writeable
        base = part
        while isinstance(base, np.ndarray):
            base = base.base
        assert isinstance(base.obj, mmap.mmap)
    assert parts[0].ctypes.data % 64 == 0


def test_safetensors_itself_reads_the_file(tmp_path):
    model = make_model()
    save_model(model, tmp_path / "m")
    tensors = safetensors.numpy.load_file(tmp_path / "m")
    np.testing.assert_array_equal(tensors["weights"], model.weights)
    np.testing.assert_array_equal(tensors["classes"], model.classes)


def test_a_class_never_trained_is_never_predicted_after_loading(tmp_path):
    model = make_model()
    model.intercept[2] = -np.inf
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.intercept[2] == -np.inf
    assert model.classes[2] not in loaded.predict(rows(model))


# ---- Writing that fails


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    save_model(make_model(), tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*'.*m'"):
        save_model(make_model(dtype=np.float64), tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert (tmp_path / "m").read_bytes() == before


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="none/m"):
        save_model(make_model(), tmp_path / "none" / "m")


def test_settings_that_json_cannot_hold_are_refused(tmp_path):
    model = make_model()
    model.settings["odd"] = {1, 2}
    with pytest.raises(TypeError, match=r"settings holds \{1, 2\}"):
        save_model(model, tmp_path / "m")


def test_numpy_numbers_in_the_settings_become_plain(tmp_path):
    model = make_model()
    model.settings["C"] = np.float64(0.5)
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").settings["C"] == 0.5


# ---- Reading what is no model


def refused(path, reason):
    with pytest.raises(ModelFileError, match=reason) as caught:
        load_model(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"1 1:0.5\n", b"\x93NUMPY" * 100, b"\xff" * 64, b"{}" * 50])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "m"
    path.write_bytes(content)
    refused(path, "not a model file")


def test_every_truncation_is_refused(tmp_path):
    save_model(make_model(sparse=True), tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    for size in range(0, len(content), 37):
        (tmp_path / "m").write_bytes(content[:size])
        refused(tmp_path / "m", "cut short")


def test_bytes_after_the_end_are_refused(tmp_path):
    path = tmp_path / "m"
    save_model(make_model(), path)
    path.write_bytes(path.read_bytes() + b"more")
    refused(path, "not a model file")


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    safetensors.numpy.save_file({"weights": np.zeros((2, 2), np.float32)}, tmp_path / "m")
    refused(tmp_path / "m", "a safetensors file, but not a model")


@pytest.mark.parametrize(
    "settings",
    [
        {"pairs": "yes"},
        {"multilabel": 1},
        {"probability": {}},
        {"probability": "softmax"},
        {"probability": {"method": "softmax"}},
        {"probability": {"method": "magic", "slope": 1.0}},
        {"probability": {"method": "sigmoid", "slope": 1.0}},
        {"probability": {"method": "softmax", "slope": "1"}},
        {"probability": {"method": "softmax", "slope": float("nan")}},
        {"index_base": 2},
        {"index_base": "1"},
        {"n_rows": -5},
        {"n_rows": 1 << 64},
        {"text_column": ["a"]},
    ],
)
def test_settings_that_would_fail_where_they_are_used_are_refused(tmp_path, settings):
    path = tmp_path / "m"
    save_model(make_model(), path)

    def change(header):
        header["__metadata__"]["settings"] = json.dumps(json.loads(header["__metadata__"]["settings"]) | settings)
        return header

    rewrite(path, change)
    refused(path, rf"settings\.{next(iter(settings))}")


@pytest.mark.parametrize(
    ("version", "reason"), [("5", "newer version of manyclass"), ("x", "version is 'x'"), ("0", "'0'")]
)
def test_unknown_versions_are_refused(tmp_path, version, reason):
    path = tmp_path / "m"
    save_model(make_model(), path)
    rewrite(path, lambda header: header | {"__metadata__": header["__metadata__"] | {"format_version": version}})
    refused(path, reason)


def test_overlapping_tensors_are_refused(tmp_path):
    path = tmp_path / "m"
    save_model(make_model(), path)

    def overlap(header):
        header["intercept"]["data_offsets"] = [offset - 4 for offset in header["intercept"]["data_offsets"]]
        return header

    rewrite(path, overlap)
    refused(path, "not a model file")


@pytest.mark.parametrize("value", ["no json", "[1]", "[" * 100_000])
def test_settings_that_are_no_json_object_are_refused(tmp_path, value):
    path = tmp_path / "m"
    save_model(make_model(), path)
    rewrite(path, lambda header: header | {"__metadata__": header["__metadata__"] | {"settings": value}})
    refused(path, "settings")


NAN_WEIGHTS = np.full((12, 5), np.nan, np.float32)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"weights": None}, "tensor 'weights' is missing"),
        ({"intercept": None}, "tensor 'intercept' is missing"),
        ({"classes": None}, "it has no classes"),
        ({"weights": np.zeros((12, 4), np.float32)}, "4 columns of weights, but 5 classes"),
        ({"weights": np.zeros((12, 5), np.int32)}, "not a matrix of floats"),
        ({"weights": np.zeros(60, np.float32)}, "not a matrix of floats"),
        ({"weights": NAN_WEIGHTS}, "NaN or infinite"),
        ({"intercept": np.zeros(5)}, "intercept is float64"),
        ({"intercept": np.zeros(4, np.float32)}, "shape"),
        ({"intercept": np.full(5, np.inf, np.float32)}, "plus infinity"),
        ({"classes": np.array([0, 1, 1, 2, 3])}, "ascend"),
        ({"classes": np.zeros((5, 1))}, "vector"),
        ({"surprise": np.zeros(1)}, "unexpected tensors: surprise"),
    ],
)
def test_dense_models_that_contradict_themselves_are_refused(tmp_path, changed, reason):
    path = tmp_path / "m"
    save_model(make_model(), path)
    rewrite_tensors(path, **changed)
    refused(path, reason)


def sparse_parts(path):
    tensors = safetensors.numpy.load_file(path)
    return tensors["weights.indptr"], tensors["weights.indices"], tensors["weights.values"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda p, i, v: {"weights__indices": np.where(i == 4, 5, i).astype(np.int32)}, "outside 0..4"),
        (lambda p, i, v: {"weights__indices": -i}, "outside"),
        (lambda p, i, v: {"weights__indices": i[::-1].copy()}, "do not ascend"),
        (lambda p, i, v: {"weights__indices": i.astype(np.int64)}, "types"),
        (lambda p, i, v: {"weights__indptr": p[::-1].copy()}, "row pointers"),
        (lambda p, i, v: {"weights__indptr": p + 1}, "row pointers"),
        (lambda p, i, v: {"weights__indptr": p[:0]}, "row pointers"),
        (lambda p, i, v: {"weights__values": v[:-1]}, "shapes"),
        (lambda p, i, v: {"weights__values": v * np.float32(np.inf)}, "NaN or infinite"),
    ],
)
def test_sparse_models_that_contradict_themselves_are_refused(tmp_path, damage, reason):
    path = tmp_path / "m"
    save_model(make_model(sparse=True), path)
    rewrite_tensors(path, **damage(*sparse_parts(path)))
    refused(path, reason)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"classes__offsets": np.array([0, 1, 2, 3, 4, 9])}, "do not divide"),
        ({"classes__utf8": np.frombuffer(b"abcd\xff", np.uint8)}, "decode"),
        ({"text__idf": None}, "text.idf"),
        ({"text__idf": np.ones(2, np.float32)}, "not 8 floats"),
    ],
)
def test_names_and_words_that_do_not_fit_are_refused(tmp_path, changed, reason):
    path = tmp_path / "m"
    save_model(make_model(text=True, classes=list("abcde")), path)
    rewrite_tensors(path, **changed)
    refused(path, reason)


def test_words_for_another_number_of_features_are_refused(tmp_path):
    path = tmp_path / "m"
    save_model(make_model(text=True), path)
    rewrite_tensors(path, weights=np.zeros((3, 5), np.float32))
    refused(path, "TextFeatures gives 8 features, but the weights are for 3")


def test_what_cannot_be_opened_is_named_and_not_called_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match="no-such-model"):
        load_model(tmp_path / "no-such-model")
    with pytest.raises(ModelFileError, match=f"{tmp_path.name}: the folder has no shards"):
        load_model(tmp_path)


def test_label_counts_come_back_or_are_refused(tmp_path):
    model, path = make_model(K=3), tmp_path / "m"
    save_model(model, path)
    assert load_model(path).label_counts is None
    model.label_counts = np.array([4, 0, 2])
    save_model(model, path)
    np.testing.assert_array_equal(load_model(path).label_counts, [4, 0, 2])
    for wrong in (np.array([4, 0]), np.array([4, -1, 2]), np.array([4.0, 0, 2])):
        rewrite_tensors(path, label_counts=wrong)
        with pytest.raises(ModelFileError, match="label counts"):
            load_model(path)


def test_one_long_label_costs_its_own_length_only(tmp_path):
    names = [f"class {number:04}" for number in range(3000)]
    model = make_model(sparse=True, classes=np.array([*names, "z" * 50_000], dtype=object), K=3001)
    save_model(model, tmp_path / "model")
    tracemalloc.start()
    loaded = load_model(tmp_path / "model")
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < 5e6  # 600 MB in an array of fixed width
    assert loaded.classes.tolist() == model.classes.tolist()
    assert make_model(classes=names[:5]).classes.dtype == "<U10"


# ---- Parts of a file that are checked in pieces, or only in some models


def wide_model():
    model = make_model(sparse=True)
    model.weights = WideWeights(np.arange(12) * 7, model.weights, 100)
    return model


def test_the_features_of_a_wide_model_come_back(tmp_path):
    model, path = wide_model(), tmp_path / "m"
    save_model(model, path)
    with safetensors.safe_open(path, "numpy") as handle:
        assert handle.metadata()["format_version"] == "4"
    loaded = load_model(path)
    assert loaded.n_features == 100 and loaded.weights.features.tolist() == list(range(0, 84, 7))
    np.testing.assert_array_equal(loaded.scores(rows(model)), model.scores(rows(model)))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (np.append(np.arange(12) * 7.0, 100), "is float64 of shape"),
        (np.append(np.arange(11) * 7, 100), r"of shape \(12,\), not 12 features"),
        (np.append(np.arange(12) * 7, 77), "does not ascend"),
        (np.append(np.full(12, 7), 100), "does not ascend"),
        (np.append(np.arange(12) - 1, 100), "does not ascend from 0"),
    ],
)
def test_features_that_do_not_fit_are_refused(tmp_path, changed, reason):
    path = tmp_path / "m"
    save_model(wide_model(), path)
    rewrite_tensors(path, weights__features=changed)
    refused(path, reason)


def test_version_3_has_no_list_of_features(tmp_path):
    path = tmp_path / "m"
    save_model(wide_model(), path)
    rewrite(path, lambda header: header | {"__metadata__": header["__metadata__"] | {"format_version": "3"}})
    refused(path, "a list of features, which version 3")


@pytest.mark.parametrize("checked_at_once", [1, 2, 3, 7, 1000])
def test_every_sparse_weight_is_checked(tmp_path, monkeypatch, checked_at_once):
    monkeypatch.setattr(file, "CHECKED_AT_ONCE", checked_at_once)
    whole, path = tmp_path / "whole", tmp_path / "m"
    save_model(make_model(sparse=True), whole)
    load_model(whole)
    indptr, indices, values = sparse_parts(whole)
    for place in range(values.size):
        begins = place in indptr
        for tensor, value, reason in [
            ("values", np.nan, "NaN or infinite"),
            ("indices", 5, "outside 0..4"),
            ("indices", -1, "outside 0..4"),
            *([] if begins else [("indices", indices[place - 1], "do not ascend")]),
        ]:
            changed = {"values": values, "indices": indices}[tensor].copy()
            changed[place] = value
            path.write_bytes(whole.read_bytes())
            rewrite_tensors(path, **{f"weights__{tensor}": changed})
            refused(path, reason)


@pytest.mark.parametrize("checked_at_once", [1, 7, 60, 1000])
def test_every_dense_weight_is_checked(tmp_path, monkeypatch, checked_at_once):
    monkeypatch.setattr(file, "CHECKED_AT_ONCE", checked_at_once)
    path = tmp_path / "m"
    save_model(make_model(), path)
    for place in range(60):
        weights = np.zeros(60, np.float32)
        weights[place] = np.inf
        rewrite_tensors(path, weights=weights.reshape(12, 5))
        refused(path, "NaN or infinite")


def pairs_model(columns):
    return LinearModel(
        np.ones((3, columns), np.float32), np.zeros(columns, np.float32), np.arange(5), {"pairs": True}, {}, Chain([])
    )


def test_a_model_of_pairs_has_a_column_for_each(tmp_path):
    save_model(pairs_model(10), tmp_path / "m")
    assert load_model(tmp_path / "m").weights.shape == (3, 10)
    rewrite_tensors(tmp_path / "m", weights=np.ones((3, 5), np.float32), intercept=np.zeros(5, np.float32))
    refused(tmp_path / "m", "5 columns of weights, but 10 pairs of 5 classes")


def test_what_looks_like_a_model(tmp_path):
    path = tmp_path / "m"
    save_model(make_model(), path)
    assert file.looks_like_model(path)
    content = path.read_bytes()
    others = (b"", content[:8], content[:9], b"1 1:0.5 2:0.5\n", content[:8] + b"[" + content[9:])
    for other in (*others, b"\xff" * 8 + content[8:], (100).to_bytes(8, "little") + b"{" + bytes(91)):
        path.write_bytes(other)
        assert not file.looks_like_model(path)
    path.write_bytes((99).to_bytes(8, "little") + b"{" + bytes(91))
    assert file.looks_like_model(path)


def test_the_certificate_can_be_read_alone(tmp_path):
    path = tmp_path / "m"
    save_model(make_model(), path)
    assert file.read_certificate(path) == {"primal": 2.5, "gap": float("inf")}
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match=f"^{path}: not a model file, or one cut short "):
        file.read_certificate(path)
    with pytest.raises(ModelFileError, match="has no shards"):
        file.read_certificate(tmp_path)
    safetensors.numpy.save_file({"weights": np.zeros((2, 2), np.float32)}, path)
    with pytest.raises(ModelFileError, match="not a model; pass a file written"):
        file.read_certificate(path)


@pytest.mark.parametrize(
    "weights", [make_model().weights.T.copy().T, sp.csr_matrix(make_model().weights)[:, [4, 3, 2, 1, 0]]]
)
def test_weights_in_any_order_are_saved(tmp_path, weights):
    model = make_model()
    model.weights = weights
    save_model(model, tmp_path / "m")
    found = load_model(tmp_path / "m").weights
    np.testing.assert_array_equal(sp.csr_matrix(found).toarray(), sp.csr_matrix(weights).toarray())
