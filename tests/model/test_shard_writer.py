"""Models written shard by shard: the same predictions as in one file, and what is there counts after a stop."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from manyclass.data import Chain
from manyclass.model import LinearModel, ModelFileError, ShardWriter, load_model, save_model
from model.test_file import make_model, rows

K = 40


def part_of(model, begin, end):
    return replace(
        model,
        weights=model.weights[:, begin:end],
        intercept=model.intercept[begin:end],
        classes=model.classes[begin:end],
        certificate={"gap": begin / K},
        chain=Chain(),
    )


def ranges(writer):
    return [(begin, end) for begin, end, _ in writer.done()]


def writer_of(model, folder, **more):
    return ShardWriter(folder, model.n_classes, model.n_features, model.settings, chain=model.chain, **more)


def write(model, folder, bounds):
    writer = writer_of(model, folder)
    for begin, end in reversed(list(pairwise(bounds))):
        writer.add(begin, part_of(model, begin, end))
    return writer


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bounds", [[0, K], [0, 7, 8, 31, K], list(range(K + 1))])
def test_shards_predict_what_one_file_predicts(tmp_path, sparse, bounds):
    model = make_model(sparse=sparse, text=True, K=K)
    write(model, tmp_path / "shards", bounds).finish({"gap": 0.5})
    save_model(replace(model, certificate={"gap": 0.5}), tmp_path / "one")
    one, shards = load_model(tmp_path / "one"), load_model(tmp_path / "shards")
    X = rows(model)
    for k in (1, 3, K):
        for found, wanted in zip(shards.topk(X, k), one.topk(X, k), strict=True):
            assert found.tobytes() == wanted.tobytes()
    assert shards.scores(X).tobytes() == one.scores(X).tobytes()
    np.testing.assert_array_equal(shards.predict(X), one.predict(X))
    assert shards.n_parts == len(bounds) - 1 and shards.certificate == one.certificate == {"gap": 0.5}
    assert shards.density == one.density and shards.chain.takes_text
    save_model(shards, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_of_shards_stay_in_their_files(tmp_path, sparse):
    model = make_model(sparse=sparse, K=K)
    write(model, tmp_path / "m", [0, 7, K]).finish({})
    loaded = load_model(tmp_path / "m")
    for part in loaded.weights.parts:
        for array in [part.values, part.indices, part.indptr] if sparse else [part]:
            assert not array.flags.writeable and not array.flags.owndata
    assert loaded.scorer.classes == K


def test_compressed_shards(tmp_path):
    model = make_model(sparse=True, K=K)
    writer = writer_of(model, tmp_path / "m")
    for begin, end in pairwise([0, 7, 30, K]):
        writer.add(begin, part_of(model, begin, end).compress("int8"))
    writer.finish({})
    X = rows(model)
    whole = model.compress("int8")
    assert load_model(tmp_path / "m").scores(X).tobytes() == whole.scores(X).tobytes()


def test_what_is_there_counts_and_what_is_damaged_does_not(tmp_path):
    model = make_model(K=K)
    writer = write(model, tmp_path / "m", [0, 10, 20, 30, K])
    assert ranges(writer) == [(0, 10), (10, 20), (20, 30), (30, K)]
    damaged = sorted((tmp_path / "m").iterdir())[1]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    again = writer_of(model, tmp_path / "m")
    assert ranges(again) == [(0, 10), (20, 30), (30, K)]
    with pytest.raises(ValueError, match="classes 10 to 19 are in no shard"):
        again.finish({})
    with pytest.raises(ModelFileError, match=r"has no shards\.json"):
        load_model(tmp_path / "m")
    again.add(10, part_of(model, 10, 20))
    again.finish({})
    np.testing.assert_array_equal(load_model(tmp_path / "m").matrix, model.weights)


def test_shards_of_other_settings_or_rows_do_not_count(tmp_path):
    model = make_model(K=K)
    write(model, tmp_path / "m", [0, K])
    assert writer_of(replace(model, settings={"C": 2.0}), tmp_path / "m").done() == []
    assert writer_of(model, tmp_path / "m", data="other rows").done() == []
    assert ranges(writer_of(model, tmp_path / "m")) == [(0, K)]


def test_of_overlapping_shards_the_first_counts(tmp_path):
    model = make_model(K=K)
    writer = write(model, tmp_path / "m", [0, 10, 20])
    writer.add(5, part_of(model, 5, 12))
    assert ranges(writer) == [(0, 10), (10, 20)]


def test_a_finished_model_replaces_the_one_before(tmp_path):
    model = make_model(K=K)
    write(model, tmp_path / "m", [0, 10, K]).finish({})
    other = replace(model, weights=-model.weights, settings={"C": 3.0})
    write(other, tmp_path / "m", [0, 20, K]).finish({})
    np.testing.assert_array_equal(load_model(tmp_path / "m").matrix, other.weights)
    assert len(list((tmp_path / "m").iterdir())) == 3


def test_what_killed_processes_have_left_is_removed(tmp_path):
    model = make_model(K=K)
    writer = write(model, tmp_path / "m", [0, 10, K])
    shard = next((tmp_path / "m").iterdir()).name
    for name in (f".{shard}.abc", ".shards.json.def", ".mine"):
        (tmp_path / "m" / name).write_bytes(b"half")
    assert ranges(writer) == [(0, 10), (10, K)]
    writer.finish({})
    assert sorted(path.name[:6] for path in (tmp_path / "m").iterdir()) == [".mine", "shard-", "shard-", "shards"]


@pytest.mark.parametrize(("first", "end"), [(-1, 3), (K - 1, K + 2)])
def test_classes_outside_the_model_are_refused(tmp_path, first, end):
    model = make_model(K=K)
    part = part_of(model, 0, end - first)
    with pytest.raises(ValueError, match=f"the model has only {K} classes"):
        writer_of(model, tmp_path / "m").add(first, part)


def test_shards_that_do_not_fit_together_are_refused(tmp_path):
    model = make_model(K=K)
    writer = write(model, tmp_path / "m", [0, 20])
    with pytest.raises(ValueError, match="the part has 3 features, but the model has 12"):
        writer.add(20, LinearModel(np.zeros((3, 20), np.float32), np.zeros(20, np.float32), model.classes[20:]))
    writer.add(20, replace(part_of(model, 20, K), classes=model.classes[:20]))
    writer.finish({})
    with pytest.raises(ModelFileError, match="do not ascend"):
        load_model(tmp_path / "m")
    writer.add(20, part_of(replace(model, weights=model.weights.astype(float), intercept=np.zeros(K)), 20, K))
    with pytest.raises(ModelFileError, match="in float64, but the first shard has 12 in float32"):
        load_model(tmp_path / "m")
