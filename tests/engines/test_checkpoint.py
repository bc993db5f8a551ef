"""Checkpoint folders: generations are complete or absent, damage is detected, and failures do not stop the fit."""

import errno
import json
import logging
import os

import numpy as np
import pytest
from losses import make, text_like
from under_mpirun.fits import files_of_at_most

from manyclass import save_model
from manyclass.data import streams
from manyclass.engines import CheckpointError, CheckpointFolder, checkpoint, recorder

ARRAYS = {
    "weights": np.linspace(0, 1, 1000, dtype=np.float32),
    "numbers": np.array([np.nan, np.inf, -0.0]),
    "nothing": np.empty(0, np.int64),
}


def write(folder, generation, **info):
    part = folder.write_part(generation, 0, ARRAYS)
    folder.commit(generation, [part], info)
    return folder.path / part.file


def names(folder):
    return sorted(path.name for path in folder.path.iterdir())


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_short(path):
    os.truncate(path, path.stat().st_size - 1)


def remove(path):
    path.unlink()


def put_another_in_its_place(path):
    path.write_bytes(b"something else")


DAMAGES = [flip_a_byte, cut_short, remove, put_another_in_its_place]


# ---- The folder


def test_arrays_and_information_come_back(tmp_path):
    folder = CheckpointFolder(tmp_path / "made" / "when needed")
    parts = [folder.write_part(1, rank, {"rank": np.array([rank])} | ARRAYS) for rank in range(3)]
    assert CheckpointFolder(folder.path).read() is None  # nothing before the commit
    folder.commit(1, parts, {"history": [{"gap": float("nan"), "primal": 0.1 + 0.2}]})
    stored = CheckpointFolder(folder.path).read()
    assert stored.generation == 1
    assert [part["rank"].item() for part in stored.parts] == [0, 1, 2]
    for name, array in ARRAYS.items():
        assert stored.parts[2][name].tobytes() == array.tobytes()
        assert stored.parts[2][name].dtype == array.dtype
    [row] = stored.info["history"]
    assert np.isnan(row["gap"]) and row["primal"] == 0.1 + 0.2


def test_the_last_two_are_kept_and_nothing_else_is_touched(tmp_path):
    folder = CheckpointFolder(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".checkpoint-1.json.k2j3").write_text("left behind by a process that was killed")
    (tmp_path / "checkpoint-1-0.safetensors").write_text("a part that was never committed")
    assert folder.read() is None
    for _ in range(4):
        write(folder, folder.next_generation())
    assert folder.generations() == [5, 4]
    parts = ["checkpoint-4-0.safetensors", "checkpoint-5-0.safetensors"]
    assert names(folder) == sorted([*parts, "checkpoint-4.json", "checkpoint-5.json", "notes.txt"])


@pytest.mark.parametrize(
    ("what", "damage"),
    [("checkpoint-2-0.safetensors", damage) for damage in DAMAGES]
    + [("checkpoint-2.json", damage) for damage in DAMAGES if damage is not remove],
)
def test_the_previous_one_is_read_if_the_newest_is_damaged(what, damage, tmp_path):
    folder = CheckpointFolder(tmp_path)
    for generation in (1, 2):
        write(folder, generation, number=generation)
    damage(tmp_path / what)
    again = CheckpointFolder(tmp_path)
    with pytest.warns(RuntimeWarning, match=r"checkpoint 2: .*Resuming from the earlier checkpoint 1"):
        assert again.read().info == {"number": 1}
    # It is now the last good one, whatever else is in the folder.
    write(again, again.next_generation(), number=3)
    assert again.generations() == [3, 1]
    damage(tmp_path / "checkpoint-3-0.safetensors")
    with pytest.warns(RuntimeWarning):
        assert CheckpointFolder(tmp_path).read().info == {"number": 1}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_error_says_what_is_wrong_if_none_is_intact(damage, tmp_path):
    folder = CheckpointFolder(tmp_path)
    for generation in (1, 2):
        damage(write(folder, generation))
    with pytest.raises(CheckpointError, match=r"checkpoint 2: .*checkpoint-2-0.*checkpoint 1: .*remove the folder"):
        CheckpointFolder(tmp_path).read()


def test_a_manifest_of_another_program_is_not_a_checkpoint(tmp_path):
    (tmp_path / "checkpoint-1.json").write_text(json.dumps({"weights": "model.bin"}))
    with pytest.raises(CheckpointError, match="no checkpoint is intact"):
        CheckpointFolder(tmp_path).read()


# ---- Fits


def fit(folder=None, loss="ww", X=None, y=None, **parameters):
    if X is None:
        X, y = text_like()
    if folder is not None:
        parameters |= {"checkpoint": folder}
    return make(loss, **({"tol": 1e-3} | parameters)).fit(X, y)


def file_of(fitted, tmp_path):
    save_model(fitted.model_, tmp_path / "model")
    return (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("loss", ["ww", "maxent", "hinge", "ovo_logistic"])
def test_checkpoints_do_not_change_the_model(loss, tmp_path):
    expected = file_of(fit(loss=loss), tmp_path)
    assert file_of(fit(tmp_path / "c", loss, every=0), tmp_path) == expected
    assert CheckpointFolder(tmp_path / "c").generations()


def test_a_folder_without_a_checkpoint_is_a_start(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "manyclass"):
        fit(tmp_path / "c", resume=True)
    assert "holds no checkpoint yet" in caplog.text


def test_a_checkpoint_is_never_overwritten_unasked(tmp_path):
    fit(tmp_path, every=0)
    with pytest.raises(ValueError, match=r"resume=True.*remove the folder"):
        fit(tmp_path)
    with pytest.raises(ValueError, match="is a file"):
        fit(next(tmp_path.iterdir()))


def test_resuming_without_a_folder_is_an_error():
    with pytest.raises(ValueError, match="checkpoint="):
        fit(resume=True)


OTHERS = {
    "loss": {"loss": "cs"},
    "C": {"C": 2.0},
    "dtype": {"dtype": "float64"},
    "random_state": {"random_state": 1},
    "constant feature": {"fit_intercept": False},
    "feature_reduction": {"feature_reduction": True},
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_problem_is_refused_by_name(name, tmp_path):
    fit(tmp_path, every=0)
    with pytest.raises(ValueError, match=rf"another problem: {name} \(.*, here .*\); "):
        fit(tmp_path, resume=True, **OTHERS[name])


def test_another_number_of_leagues_is_refused(tmp_path):
    fit(tmp_path, every=0, solver="leagues")
    with pytest.raises(ValueError, match=r"another problem: leagues \(4, here 3\); resume with the original data"):
        fit(tmp_path, resume=True, solver="leagues", leagues=3)
    fit(tmp_path, resume=True, solver="leagues", leagues=4)


def test_other_rows_and_labels_are_refused(tmp_path):
    X, y = text_like()
    fit(tmp_path, X=X, y=y, every=0)
    other = X.copy()
    other.data[0] *= 1.001
    with pytest.raises(ValueError, match="another problem: rows of X; "):
        fit(tmp_path, X=other, y=y, resume=True)
    with pytest.raises(ValueError, match="another problem: labels; "):
        fit(tmp_path, X=X, y=np.append(y[1:], y[0]), resume=True)
    with pytest.raises(ValueError, match=r"another problem: C \("):
        make("ww", tol=1e-3, checkpoint=tmp_path, resume=True).fit(X, y, sample_weight=1.0 + (y == 0))
    # The same values in another layout are the same rows.
    fit(tmp_path, X=X.toarray(), y=y, resume=True)


def test_another_build_of_the_core_is_a_warning(tmp_path, monkeypatch):
    fit(tmp_path, every=0)
    monkeypatch.setattr(recorder, "isa", "another")
    with pytest.warns(RuntimeWarning, match="bits may differ"):
        fit(tmp_path, resume=True)


def test_history_times_and_passes_continue(tmp_path):
    with pytest.warns(UserWarning, match="max_iter"):
        first = fit(tmp_path, tol=1e-6, dtype="float64", max_iter=3)
    second = fit(tmp_path, tol=1e-6, dtype="float64", resume=True)
    assert second.n_iter_ > 3 == first.n_iter_
    epochs = [row["epochs"] for row in second.history_]
    assert epochs == list(range(1, second.n_iter_[0] + 1))
    assert second.history_[:2] == first.history_[:2]
    assert second.times_["total"] > second.history_[-1]["seconds"] > first.history_[-2]["seconds"]


# ---- Write errors


def test_a_folder_that_cannot_be_made_is_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    expected = file_of(fit(), tmp_path)
    with pytest.warns(RuntimeWarning, match=r"Not a directory.*training continues") as seen:
        fitted = fit(tmp_path / "file" / "folder", every=0)
    assert len(seen) == 1
    assert file_of(fitted, tmp_path) == expected


def test_a_file_that_may_not_grow_leaves_nothing_behind(tmp_path):
    """As on a full disk, writing fails in the middle of a file."""
    expected = file_of(fit(), tmp_path)
    with files_of_at_most(5_000), pytest.warns(RuntimeWarning, match=r"File too large.*training continues"):
        fitted = fit(tmp_path / "c", every=0)
    assert list((tmp_path / "c").iterdir()) == []
    assert file_of(fitted, tmp_path) == expected


@pytest.mark.parametrize("failing", ["part", "manifest", "names"])
def test_a_disk_that_is_full_for_a_while(failing, tmp_path, monkeypatch):
    """Existing checkpoints stay intact, and a later attempt succeeds."""
    plain, sync = checkpoint.open_atomic, streams.sync_folder
    calls = []

    def full(path):
        calls.append(1)
        if 3 <= len(calls) <= 8:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

    def open_atomic(path):
        if path.suffix == (".json" if failing == "manifest" else ".safetensors") and failing != "names":
            full(path)
        return plain(path)

    def synced(path):
        if failing == "names" and path.name == "c":
            full(path)
        sync(path)

    monkeypatch.setattr(checkpoint, "open_atomic", open_atomic)
    monkeypatch.setattr(streams, "sync_folder", synced)
    expected = file_of(fit(tol=1e-4), tmp_path)
    stored = []
    write_one = recorder.Recorder.write

    def write_and_look(self, *arguments):
        write_one(self, *arguments)
        found = CheckpointFolder(tmp_path / "c").read()
        stored.append(None if found is None else found.generation)

    monkeypatch.setattr(recorder.Recorder, "write", write_and_look)
    with pytest.warns(RuntimeWarning, match="No space left on device") as seen:
        fitted = fit(tmp_path / "c", every=0, tol=1e-4)
    assert len(seen) == 1
    assert file_of(fitted, tmp_path) == expected
    assert len(calls) > 10 and None not in stored
    assert stored == sorted(stored) and stored[-1] > stored[3]
    assert len(list((tmp_path / "c").iterdir())) == 4
