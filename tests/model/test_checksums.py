"""Not one bit of a model can change unnoticed: loading finds most of what matters, verifying everything."""

import json
import zlib

import numpy as np
import pytest
import safetensors.numpy
from typer.testing import CliRunner

from manyclass import OneVsRestSVC, load_model, save_model
from manyclass.cli.app import app
from manyclass.data import TextFeatures
from manyclass.data.tensor_file import TensorFile
from manyclass.model import ModelFileError
from manyclass.model.file import save_shard, verify_model
from manyclass.model.shards import shard_names, shard_of, write_index

TEXTS = [f"word{i} word{i % 7} word{i % 5} common" for i in range(60)]


@pytest.fixture(scope="module")
def model():
    features = TextFeatures()
    fitted = OneVsRestSVC(tol=0.1).fit(features.fit_transform(TEXTS), [f"class {i % 9}" for i in range(60)])
    fitted.model_.chain = type(fitted.model_.chain)([features])
    return fitted.model_


def flipped(content, bit):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def noticed(check, path):
    try:
        check(path)
    except ModelFileError as error:
        assert str(path) in str(error)
        return True
    return False


def places_of_weights(path):
    """Where in the file the arrays of the weights are, in bytes."""
    file = TensorFile(path)
    offsets = [file._begin + np.array(e.data_offsets) for n, e in file._entries.items() if n.startswith("weights")]
    return [range(*bounds) for bounds in offsets]


@pytest.mark.parametrize("kind", ["dense", "sparse", "compressed"])
def test_300_single_bits_that_flip_are_all_noticed(kind, model, tmp_path):
    path = tmp_path / "m"
    saved = {"dense": model, "sparse": model.compress(prune=0.2), "compressed": model.compress("int8")}[kind]
    save_model(saved, path)
    verify_model(path)
    content, weights = path.read_bytes(), places_of_weights(path)
    first_kb = np.arange(8 * 1000)
    rng = np.random.default_rng()
    bits = np.concatenate([rng.choice(8 * len(content), 200), rng.choice(first_kb, 100)])
    silent = 0
    for bit in bits.tolist():
        path.write_bytes(flipped(content, bit))
        assert noticed(verify_model, path), bit
        in_weights = any(bit // 8 in place for place in weights)
        loaded = not noticed(load_model, path)
        assert not loaded or in_weights, bit
        silent += loaded
    assert silent < len(bits)
    path.write_bytes(content)
    verify_model(path)


def test_every_bit_of_the_names_of_the_checksums_counts(model, tmp_path):
    """Without them the file would pass for one of an earlier version."""
    path = tmp_path / "m"
    save_model(model, path)
    content = path.read_bytes()
    for name in (b'"checksums"', b'"header_checksum"', b'"__metadata__"'):
        begin = content.index(name)
        for bit in range(8 * begin, 8 * (begin + len(name) + 11)):
            path.write_bytes(flipped(content, bit))
            assert noticed(load_model, path), bit


def test_equal_models_are_equal_files_and_the_checksums_are_crc32(model, tmp_path):
    for name in ("a", "b"):
        save_model(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    save_model(load_model(tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    file = TensorFile(tmp_path / "a")
    assert json.loads(file.metadata["checksums"]) == {name: f"{zlib.crc32(file[name]):08x}" for name in file}


def without_checksums(path):
    """Write a file as earlier versions did."""
    file = TensorFile(path)
    metadata = {name: value for name, value in file.metadata.items() if "checksum" not in name}
    arrays = {name: np.array(file[name]) for name in file}
    safetensors.numpy.save_file(arrays, path, metadata)


def test_files_without_checksums_load_and_cannot_be_verified(model, tmp_path):
    save_model(model, tmp_path / "m")
    without_checksums(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(TEXTS).tolist() == model.predict(TEXTS).tolist()
    with pytest.raises(ModelFileError, match="no checksums"):
        verify_model(tmp_path / "m")
    save_model(load_model(tmp_path / "m"), tmp_path / "m")
    verify_model(tmp_path / "m")


@pytest.fixture
def shards(model, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    names = shard_names(model, 3)
    for shard, name in enumerate(names):
        save_shard(shard_of(model, shard, 3), folder / name)
    write_index(folder, names, {"gap": 0.001, "message": "converged"})
    return folder


def test_bits_of_shards_are_noticed(shards):
    verify_model(shards)
    rng = np.random.default_rng()
    for path in sorted(shards.iterdir()):
        content = path.read_bytes()
        for bit in rng.choice(8 * len(content), 60).tolist():
            path.write_bytes(flipped(content, bit))
            with pytest.raises(ModelFileError, match="shards"):
                verify_model(shards)
        path.write_bytes(content)
    verify_model(shards)
    for path in shards.glob("shard-0*"):
        without_checksums(path)
    load_model(shards)
    with pytest.raises(ModelFileError, match="no checksums"):
        verify_model(shards)


def test_the_command_line_verifies(model, shards, tmp_path):
    path = tmp_path / "m.manyclass"
    save_model(model, path)
    for good in (path, shards):
        done = CliRunner().invoke(app, ["inspect", str(good), "--verify"])
        assert done.exit_code == 0 and "verified\tall checksums match" in done.stdout
    path.write_bytes(flipped(path.read_bytes(), 8 * places_of_weights(path)[0].start + 3))
    assert CliRunner().invoke(app, ["inspect", str(path)]).exit_code == 0
    done = CliRunner().invoke(app, ["inspect", str(path), "--verify"])
    assert done.exit_code == 2 and "weights" in done.stderr and "has changed since it was written" in done.stderr
