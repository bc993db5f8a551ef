"""Files are written completely or not at all, with the right permissions."""

import os
import stat
import threading

import numpy as np
import pytest

from manyclass import MulticlassSVC, load_model, save_model
from manyclass.data.streams import open_atomic, open_output

WRITERS = [open_atomic, open_output]


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def write(path, content, opened=open_output):
    with opened(path) as out:
        out.write(content)


@pytest.fixture
def umask():
    """Set the umask of the process for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("opened", WRITERS)
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_gets_the_permissions_of_any_new_file(tmp_path, umask, opened, mask, mode):
    umask(mask)
    write(tmp_path / "new", b"x", opened)
    assert mode_of(tmp_path / "new") == mode


def test_the_umask_is_never_changed(tmp_path, monkeypatch):
    def refuse(_):
        raise AssertionError("another thread would make its files with this umask")

    monkeypatch.setattr(os, "umask", refuse)
    write(tmp_path / "new", b"x")
    write(tmp_path / "new", b"y")


@pytest.mark.parametrize("opened", WRITERS)
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, umask, opened, mode):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(mode)
    with opened(path) as out:
        # The temporary file must not be readable by anybody else either.
        (temporary,) = (entry for entry in tmp_path.iterdir() if entry.name != "old")
        assert mode_of(temporary) & ~mode & 0o077 == 0
        out.write(b"new")
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("opened", WRITERS)
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path, opened):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    os.chown(path, 1234, 5678)
    path.chmod(0o640)
    write(path, b"new", opened)
    status = os.stat(path)
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 5678, 0o640)


def test_a_group_that_cannot_be_kept_gets_no_more_than_others(tmp_path, monkeypatch):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o640)

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    real = os.stat(path)
    monkeypatch.setattr(os, "lstat", lambda _: os.stat_result([*real[:5], real.st_gid + 1, *real[6:10]]))
    write(path, b"new", open_atomic)
    assert mode_of(path) == 0o600


# ---- Links and devices


def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "model").write_bytes(b"old")
    (tmp_path / "link").symlink_to("far/model")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "model").read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "link", "model"]


def test_a_broken_link_creates_its_target(tmp_path):
    (tmp_path / "link").symlink_to("later")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "later").read_bytes() == b"new"


def test_open_atomic_never_writes_through_a_link(tmp_path):
    (tmp_path / "precious").write_bytes(b"mine")
    (tmp_path / "manifest.json").symlink_to("precious")
    write(tmp_path / "manifest.json", b"new", open_atomic)
    assert (tmp_path / "precious").read_bytes() == b"mine"
    assert not (tmp_path / "manifest.json").is_symlink()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(tmp_path / "pipe", b"predictions")
    reader.join()
    assert read == [b"predictions"] and stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


def test_a_folder_is_rejected(tmp_path):
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        write(tmp_path, b"x")


def test_models_keep_mode_and_link(tmp_path):
    rng = np.random.default_rng(0)
    model = MulticlassSVC().fit(rng.standard_normal((20, 3)), np.arange(20) % 3).model_
    save_model(model, tmp_path / "real")
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to("real")
    save_model(model, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and mode_of(tmp_path / "real") == 0o600
    assert load_model(tmp_path / "link").n_classes == 3


@pytest.mark.parametrize("opened", WRITERS)
@pytest.mark.parametrize("name", ["old", "old.gz"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, opened, name):
    (tmp_path / name).write_bytes(b"old")

    def fail():
        with opened(tmp_path / name) as out:
            out.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"old")]
