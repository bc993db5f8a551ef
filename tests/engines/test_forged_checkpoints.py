"""Checkpoints with correct checksums and wrong contents are rejected by name, and never crash."""

import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from losses import make, text_like
from sklearn.exceptions import ConvergenceWarning

from manyclass import BlockStore
from manyclass.data.tensor_file import TensorFile, tensor_file_content
from manyclass.engines import CheckpointError, CheckpointFolder, checkpoint
from manyclass.engines.dual_store import ABOUT, SUFFIX, DualStore
from manyclass.engines.own_folder import PREFIX, OwnFolder

FITS = {
    "cs": {"loss": "cs"},
    "maxent": {"loss": "maxent"},
    "leagues": {"loss": "ww", "solver": "leagues"},
    "max_margin": {"loss": "max_margin"},
    "hinge": {"loss": "hinge"},
    "ppd": {"loss": "ppd_squared_hinge"},
}


def fit(folder, name, tol=1e-2, **parameters):
    X, y = text_like(60, 30, 5)
    return make(**FITS[name], tol=tol, checkpoint=folder, resume=True, **parameters).fit(X, y)


def interrupted(folder, name):
    """Stop a fit; return its checkpoint folder and contents."""
    with pytest.warns(ConvergenceWarning):
        fit(folder, name, tol=1e-12, max_iter=2)
    found = CheckpointFolder(folder)
    stored = found.read()
    assert stored is not None
    return found, stored


def forged(array, rng):
    """Return a damaged copy of the array."""
    match rng.integers(7):
        case 0:
            return array[: array.size // 2]
        case 1:
            return np.concatenate([array.reshape(-1)] * 2)
        case 2:
            return array.astype(np.float64 if array.dtype != np.float64 else np.int32)
        case 3 if array.dtype.kind == "f":
            return np.full_like(array, np.nan)
        case 4 if array.dtype.kind in "iu" and array.size:
            changed = array.copy()
            changed.reshape(-1)[rng.integers(array.size)] = np.iinfo(array.dtype).max
            return changed
        case 5 if array.dtype.kind in "iu" and array.size:
            changed = array.copy()
            changed.reshape(-1)[rng.integers(array.size)] = np.iinfo(array.dtype).min
            return changed
        case _:
            return array.reshape(1, -1)


@pytest.mark.parametrize("name", FITS)
def test_forged_arrays_are_refused_or_do_no_harm(name, tmp_path):
    folder, stored = interrupted(tmp_path, name)
    arrays = {name: array.copy() for name, array in stored.parts[0].items()}
    rng, refused = np.random.default_rng(0), 0
    for changed in [*arrays, *rng.choice(list(arrays), 12)]:
        part = folder.write_part(1000, 0, arrays | {changed: forged(arrays[changed], rng)})
        folder.commit(1000, [part], stored.info)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # it may not converge
                again = fit(tmp_path, name, max_iter=50)
        except CheckpointError as error:
            assert str(tmp_path) in str(error) and "checkpoint 1000" in str(error)
            refused += 1
        except ValueError:  # detected later
            refused += 1
        else:
            assert np.isfinite(again.certificate_.gap)
    assert refused > len(arrays) / 3
    folder.commit(1000, [folder.write_part(1000, 0, arrays)], stored.info)
    assert fit(tmp_path, name).certificate_.gap <= 1e-2


@pytest.mark.parametrize("name", FITS)
def test_a_checkpoint_without_an_array_is_refused(name, tmp_path):
    folder, stored = interrupted(tmp_path, name)
    needed = next(n for n in ("status", "rule") if n in stored.parts[0])
    for content in (None, b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"current": 1e400, "said": 3}'):
        arrays = {n: array for n, array in stored.parts[0].items() if n != needed}
        if content is not None:
            arrays[needed] = np.frombuffer(content, np.uint8)
        folder.commit(1000, [folder.write_part(1000, 0, arrays)], stored.info)
        if (needed, content) == ("rule", b"{}"):  # a fit that has not started
            continue
        with pytest.raises(CheckpointError, match="checkpoint 1000 does not fit"):
            fit(tmp_path, name)


INFOS = {
    "fingerprint is missing": {"fingerprint": None},
    "seconds is 'long'": {"seconds": "long"},
    "phases is \\[\\]": {"phases": []},
    "history\\[0\\] is 3": {"history": [3]},
}


@pytest.mark.parametrize("found", INFOS)
def test_forged_information_is_refused(found, tmp_path):
    folder, stored = interrupted(tmp_path, "hinge")
    info = {name: value for name, value in (stored.info | INFOS[found]).items() if value is not None}
    folder.commit(1000, [folder.write_part(1000, 0, stored.parts[0])], info)
    with pytest.raises(CheckpointError, match=f"checkpoint 1000 is damaged \\({found}\\)"):
        fit(tmp_path, "hinge")


@pytest.mark.parametrize(
    "forge",
    [
        lambda content: content["parts"][0].update(file="../outside.safetensors"),
        lambda content: content["parts"][0].update(file="/etc/passwd"),
        lambda content: content["parts"][0].update(file="checkpoint-2-0.safetensors"),
        lambda content: content["parts"][0].update(size=-1),
        lambda content: content["parts"][0].pop("size"),
        lambda content: content.update(parts={}),
        lambda content: content.update(parts=[[]]),
        lambda content: content.update(info=7),
        lambda content: content.pop("info"),
        lambda content: content.update(more=1),
        lambda content: content.update(generation="1"),
    ],
)
def test_a_manifest_may_only_name_its_own_files(forge, tmp_path):
    folder = CheckpointFolder(tmp_path / "c")
    folder.commit(1, [folder.write_part(1, 0, {"a": np.arange(3)})], {})
    (tmp_path / "outside.safetensors").write_bytes((tmp_path / "c" / "checkpoint-1-0.safetensors").read_bytes())
    path = tmp_path / "c" / "checkpoint-1.json"
    content = json.loads(path.read_text())["content"]
    forge(content)
    path.write_text(json.dumps({"checksum": checkpoint._checksum(content), "content": content}))
    with pytest.raises(CheckpointError, match=r"/c: no checkpoint is intact \(checkpoint 1: "):
        CheckpointFolder(tmp_path / "c").read()


# ---- Fits from disk


@pytest.fixture
def store(tmp_path):
    X, y = text_like(60, 30, 5)
    return BlockStore.create(tmp_path / "s", X.astype(np.float32), y, blocks=2)


def test_variables_of_blocks_are_checked(store, tmp_path):
    folder = tmp_path / "c"
    make("hinge", checkpoint=folder, engine="disk", tol=1e-3).fit(store)
    path = next(folder.glob(f"*{SUFFIX}"))
    arrays, content = dict(TensorFile(path)), path.read_bytes()
    for forged_content in (b"", content[:-1], content[:-1] + bytes([content[-1] ^ 1]), os.urandom(300)):
        path.write_bytes(forged_content)
        with pytest.raises(CheckpointError, match=f"{path.name}: .*remove it"):
            make("hinge", checkpoint=folder, engine="disk", tol=1e-3, resume=True).fit(store)
    path.write_bytes(b"".join(tensor_file_content({n: a for n, a in arrays.items() if n != "ids"}, {})))
    with pytest.raises(CheckpointError, match=f"{path.name} does not say which rows"):
        make("hinge", checkpoint=folder, engine="disk", tol=1e-3, resume=True).fit(store)
    (folder / ABOUT).write_text("[" * 100_000)
    with pytest.raises(CheckpointError, match=f"{ABOUT}: .*nested too deeply"):
        make("hinge", checkpoint=folder, engine="disk", tol=1e-3, resume=True).fit(store)


KILLED = """
import sys, time
from pathlib import Path
from manyclass.engines.own_folder import OwnFolder
folder = OwnFolder(Path(sys.argv[1]))
(folder.path / "block-0-0.variables").write_text("much")
print(folder.path.name, flush=True)
time.sleep(600)
"""


def test_the_next_fit_removes_the_folder_of_a_killed_one(store):
    with subprocess.Popen([sys.executable, "-c", KILLED, str(store.path)], stdout=subprocess.PIPE) as process:
        name = process.stdout.readline().decode().strip()
        DualStore({}, store.path)
        assert [path.name for path in store.path.glob(f"{PREFIX}*")] == [name]  # kept while its owner lives
        process.send_signal(signal.SIGKILL)
    make("hinge", engine="disk").fit(store)
    assert not list(store.path.glob(f"{PREFIX}*"))


def test_an_own_folder_is_gone_with_its_owner(tmp_path):
    folder = OwnFolder(tmp_path)
    (folder.path / "a").write_text("b")
    folder.remove()
    assert not list(tmp_path.iterdir())
