"""Models in several files: together they are the model that one file would hold."""

import json
import threading
import tracemalloc

import numpy as np
import pytest

from manyclass.model import ModelFileError, load_model, save_model
from manyclass.model.file import read_certificate
from manyclass.peers import MPIEngine
from model.test_file import make_model


class Threads(MPIEngine):
    """Threads in the place of processes; as much of them as writing needs."""

    def __init__(self, rank, size, shared):
        self.rank, self.size, self._shared = rank, size, shared

    def peers(self):
        return self

    def gather(self, value):
        self._shared["values"][self.rank] = value
        self._shared["barrier"].wait(10)
        values = list(self._shared["values"])
        self._shared["barrier"].wait(10)
        return values


def save_together(model, path, size):
    shared = {"barrier": threading.Barrier(size), "values": [None] * size}
    errors = [None] * size

    def write(rank):
        try:
            save_model(model, path, engine=Threads(rank, size, shared))
        except Exception as error:
            errors[rank] = error

    threads = [threading.Thread(target=write, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("sparse", [False, True])
def test_shards_are_read_as_the_model_that_one_file_holds(sparse, size, tmp_path):
    model = make_model(sparse=sparse, text=True, K=5)
    model.label_counts = np.arange(5)
    assert save_together(model, tmp_path / "shards", size) == [None] * size
    save_model(model, tmp_path / "one")
    save_model(load_model(tmp_path / "shards"), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "one").read_bytes()
    assert len(list((tmp_path / "shards").iterdir())) == size + 1
    assert read_certificate(tmp_path / "shards") == model.certificate


def test_a_model_of_pairs_is_not_divided(tmp_path):
    model = make_model()
    model.settings["pairs"] = True
    for error in save_together(model, tmp_path / "shards", 2):
        assert isinstance(error, ValueError) and "save it from a single process" in str(error)
    assert not (tmp_path / "shards").exists()


def test_a_new_model_takes_the_place_of_the_old_one(tmp_path):
    save_together(make_model(K=5), tmp_path / "m", 4)
    model = make_model(K=6)
    save_together(model, tmp_path / "m", 2)
    assert len(list((tmp_path / "m").iterdir())) == 3
    np.testing.assert_array_equal(load_model(tmp_path / "m").matrix, model.weights)


def test_what_is_not_whole_is_refused(tmp_path):
    folder = tmp_path / "m"
    save_together(make_model(), folder, 3)
    shard = next(folder.glob("shard-1-*"))
    content = shard.read_bytes()
    shard.unlink()
    with pytest.raises(ModelFileError, match=r"m: 1 of 3 shards is missing: shard-1-of-3-\w+\.manyclass"):
        load_model(folder)
    shard.write_bytes(content[:-1])
    with pytest.raises(ModelFileError, match="shard-1-of-3"):
        load_model(folder)
    shard.write_bytes(content)
    (folder / "shards.json").unlink()
    with pytest.raises(ModelFileError, match=r"has no shards\.json"):
        load_model(folder)


def test_shards_of_different_models_are_refused(tmp_path):
    save_together(make_model(), tmp_path / "a", 2)
    other = make_model()
    other.certificate["gap"] = 0.5
    save_together(other, tmp_path / "b", 2)
    from_other = next((tmp_path / "b").glob("shard-1-*"))
    next((tmp_path / "a").glob("shard-1-*")).write_bytes(from_other.read_bytes())
    with pytest.raises(ModelFileError, match="different models"):
        load_model(tmp_path / "a")


def test_an_index_cannot_name_files_elsewhere(tmp_path):
    save_together(make_model(), tmp_path / "m", 2)
    index = tmp_path / "m" / "shards.json"
    content = json.loads(index.read_text().replace("shard-0", "../shard-0"))
    with pytest.raises(ModelFileError, match="has changed since it was written"):
        index.write_text(json.dumps(content))
        load_model(tmp_path / "m")
    del content["checksum"]
    index.write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match="does not name the shards"):
        load_model(tmp_path / "m")


def test_every_process_hears_of_a_failure(tmp_path):
    (tmp_path / "file").write_text("")
    errors = save_together(make_model(), tmp_path / "file", 2)
    assert all(isinstance(error, OSError) and "rank 0" in str(error) for error in errors)


def test_one_long_label_costs_its_own_length_only(tmp_path):
    names = np.array([*(f"class {number:04}" for number in range(3000)), "z" * 50_000], dtype=object)
    assert save_together(make_model(sparse=True, classes=names, K=3001), tmp_path / "shards", 2) == [None] * 2
    tracemalloc.start()
    loaded = load_model(tmp_path / "shards")
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < 5e6  # 600 MB in an array of fixed width
    assert loaded.classes.tolist() == names.tolist()
