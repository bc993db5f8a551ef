"""Readers of files that this package writes: models, shards, stores and checkpoints."""

import functools
import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import bundles
import numpy as np
import scipy.sparse as sp
from mutation import mutate_bytes, mutate_json_text, mutate_tensors
from reader import SCRATCH, Reader
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from manyclass import OneVsRestSVC, load_model, save_model
from manyclass.data import BlockStore, TextFeatures, UnitRows
from manyclass.data.matrix import UnfitRowError
from manyclass.engines import DiskEngine
from manyclass.estimators import estimator_for
from manyclass.model import LinearModel
from manyclass.model.file import read_certificate, save_shard
from manyclass.model.from_estimator import model_of
from manyclass.model.shards import shard_of, write_index

Files = dict[str, bytes]


@functools.cache
def _rows() -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.random(24, 10, 0.4, "csr", np.float64, rng)
    return X, np.arange(24) % 4


def _made(write: Callable[[Path], Any]) -> bytes:
    """Return what a function writes to a path, as an input."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / "it"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits that stop early
            write(path)
        return bundles.pack_folder(path) if path.is_dir() else path.read_bytes()


def _mutate_files(data: bytes, rng: Random, seal: Callable[[Files], None]) -> bytes:
    """Change one file of a folder, and its size and checksum in the manifest."""
    files = bundles.unpack(data)
    if not files:
        return mutate_bytes(data, rng)
    name = rng.choice(list(files))
    match rng.randrange(30):
        case 0:
            return mutate_bytes(data, rng)
        case 1:
            files[rng.choice((*files, "x"))] = files.pop(name)
        case 2:
            files[name] = files[rng.choice(list(files))]
        case _:
            files[name] = (mutate_json_text if name.endswith(".json") else mutate_tensors)(files[name], rng)
    if rng.random() < 0.95:
        # The manifest may be too damaged.
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            seal(files)
    return bundles.pack(files)


def _digest(content: bytes, size: int = 64) -> str:
    return hashlib.blake2b(content, digest_size=size).hexdigest()


# ---- Models


@functools.cache
def _models() -> list[LinearModel]:
    X, y = _rows()
    texts = [f"word{i % 4} some{i % 3}" for i in range(24)]
    names = np.array(["a", "bé", "c", "d"])[y]
    plain = OneVsRestSVC().fit(X, names).model_
    sparse = estimator_for("ppd_hinge").fit(X, y).model_
    steps = [TextFeatures(), HashingVectorizer(n_features=16), TfidfVectorizer()]
    pipelines = [make_pipeline(step, OneVsRestSVC()).fit(texts, y) for step in steps]
    pipelines.append(make_pipeline(MaxAbsScaler(), UnitRows(), estimator_for("logistic", max_iter=5000)).fit(X, y))
    pairs = estimator_for("ovo_hinge").fit(X, y).model_
    return [plain, pairs, sparse, sparse.compress("int8"), *map(model_of, pipelines)]


def _model_seeds() -> list[bytes]:
    return [_made(functools.partial(save_model, model)) for model in _models()]


def _use(path: Path) -> None:
    read_certificate(path)
    model = load_model(path, mmap=False)
    X: Any = ["word1 some2", ""] if model.chain.takes_text else sp.eye(2, model.n_features, format="csr")
    with suppress(UnfitRowError):  # steps may turn these rows into numbers that are too large
        model.predict_topk(X, min(3, model.n_classes))
        if model.settings.get("probability") is not None:
            model.probabilities(X)


def _read_model(data: bytes, folder: Path) -> None:
    path = folder / "model.manyclass"
    path.write_bytes(data)
    _use(path)


MODEL = Reader("model", _model_seeds, mutate_tensors, _read_model)


def _write_shards(model: LinearModel, folder: Path) -> None:
    folder.mkdir()
    names = [f"shard-{number}-of-2-00.manyclass" for number in range(2)]
    for number, name in enumerate(names):
        save_shard(shard_of(model, number, 2), folder / name)
    write_index(folder, names, {"gap": 0.5})


def _seal_shards(files: Files) -> None:
    index = json.loads(files["shards.json"])
    if index.pop("checksum", None) is not None:
        told = json.dumps(index, sort_keys=True).encode()
        files["shards.json"] = json.dumps(index | {"checksum": _digest(told, 8)}).encode()


def _read_shards(data: bytes, folder: Path) -> None:
    bundles.write(bundles.unpack(data), folder / "model")
    _use(folder / "model")


SHARDS = Reader(
    "shards",
    lambda: [_made(functools.partial(_write_shards, model)) for model in (_models()[0], _models()[2], _models()[4])],
    lambda data, rng: _mutate_files(data, rng, _seal_shards),
    _read_shards,
)

# ---- Stores


def _write_store(kind: str, path: Path) -> None:
    X, y = _rows()
    if kind == "sets":
        BlockStore.create(path, X, sp.csr_matrix(np.eye(4, dtype=int)[y]), blocks=2, compression="zlib")
    else:
        store = BlockStore.create(path, X, np.array(list("abcd"))[y], blocks=2, dtype=np.dtype(kind))
        if kind == "float64":
            store.remove(np.array([3, 4, 20]))


def _seal_store(files: Files) -> None:
    manifest = json.loads(files["manifest.json"])
    for entry in manifest["blocks"]:
        if entry["file"] in files:
            content = files[entry["file"]]
            entry |= {"size": len(content), "checksum": _digest(content)}
    manifest["catalogue_checksum"] = _digest(files[manifest["catalogue"]])
    files["manifest.json"] = json.dumps(manifest).encode()


def _read_store(data: bytes, folder: Path) -> None:
    bundles.write(bundles.unpack(data), folder / "store")
    store = BlockStore(folder / "store")
    list(store.verify())
    store.label_counts()
    store.load()
    loss = "hinge" if store.manifest.multilabel else "ww"
    estimator_for(loss, max_iter=2, engine=DiskEngine(memory="64MB")).fit(store)


STORE = Reader(
    "store",
    lambda: [_made(functools.partial(_write_store, kind)) for kind in ("float32", "float64", "sets")],
    lambda data, rng: _mutate_files(data, rng, _seal_store),
    _read_store,
)

# ---- Checkpoints

LOSSES = ("ww", "llw", "maxent", "max_margin", "hinge", "squared_hinge", "ovo_hinge", "ppd_hinge")
LOSS = "loss.txt"  # a file next to the checkpoint, with the loss of the fit


def _fit(loss: str, folder: Path, resume: bool = True) -> None:
    options = {"solver": "leagues"} if loss == "leagues" else {}
    estimator = estimator_for("ww" if loss == "leagues" else loss, max_iter=3, tol=1e-6, **options)
    estimator.set_params(checkpoint=folder, every=0, resume=resume, n_jobs=1).fit(*_rows())


def _checkpoint_seeds() -> list[bytes]:
    seeds = []
    for loss in LOSSES:
        files = bundles.unpack(_made(lambda folder, loss=loss: _fit(loss, folder, resume=False)))
        newest = max(int(name[1:].partition(".")[0].split("-")[1]) for name in files)
        kept = {name: content for name, content in files.items() if f"checkpoint-{newest}" in name}
        seeds.append(bundles.pack(kept | {LOSS: loss.encode()}))
    return seeds


def _seal_checkpoint(files: Files) -> None:
    for name in [name for name in files if name.endswith(".json")]:
        content = json.loads(files[name])["content"]
        for part in content["parts"]:
            if part["file"] in files:
                part |= {"size": len(files[part["file"]]), "checksum": _digest(files[part["file"]])}
        checksum = _digest(json.dumps(content, sort_keys=True).encode())
        files[name] = json.dumps({"checksum": checksum, "content": content}).encode()


def _read_checkpoint(data: bytes, folder: Path) -> None:
    files = bundles.unpack(data)
    loss = files.pop(LOSS, b"").decode("ascii", "replace")
    bundles.write(files, folder / "checkpoint")
    _fit(loss if loss in LOSSES else "ww", folder / "checkpoint")


CHECKPOINT = Reader(
    "checkpoint", _checkpoint_seeds, lambda data, rng: _mutate_files(data, rng, _seal_checkpoint), _read_checkpoint
)
