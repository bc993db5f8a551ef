"""A model in several files, each with some of the classes, so that processes can write in parallel.

| file | contents |
|---|---|
| `shard-0-of-4-1f0c9a2b.manyclass` | a model file of the first classes; the first shard has the steps |
| `shards.json` | the names of all shards, in the order of their classes; a certificate, if each shard has its own |

The index is written last and completes the model; shards of an earlier model are removed afterwards. The token in the
names tells models apart, so that a new model never overwrites files that an index refers to.
"""

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Chain
from ..data.json_content import parse_object
from ..data.labels import join_labels
from ..data.streams import open_atomic
from .linear import LinearModel
from .weights import JoinedWeights

INDEX = "shards.json"
SHARDS = "shard-*-of-*.manyclass"
NAME = re.compile(r"shard-[\w-]{1,99}\.manyclass", re.ASCII)
# Temporary files that `open_atomic` leaves behind if its process is killed.
LEFTOVERS = (f".{SHARDS}.*", f".{INDEX}.*")
FORMAT = "manyclass shards"
VERSION = 1


def shard_of(model: LinearModel, shard: int, shards: int) -> LinearModel:
    """Return the part of a model with the classes of one shard."""
    K = model.n_classes
    begin, end = shard * K // shards, (shard + 1) * K // shards
    return replace(
        model,
        weights=model.matrix[:, begin:end],
        intercept=model.intercept[begin:end],
        classes=model.classes[begin:end],
        chain=model.chain if shard == 0 else Chain(),
        label_counts=None if model.label_counts is None else model.label_counts[begin:end],
        tree=None,
    )


def shard_names(model: LinearModel, shards: int) -> list[str]:
    """Return the file names, which are the same in every process with the same model."""
    told = json.dumps(
        [model.settings, model.certificate, model.n_classes, model.n_features], sort_keys=True, default=str
    )
    token = hashlib.blake2b(told.encode(), digest_size=4).hexdigest()
    return [f"shard-{shard}-of-{shards}-{token}.manyclass" for shard in range(shards)]


@dataclass(frozen=True)
class ShardIndex:
    """Contents of the index of a folder."""

    shards: list[Path]  # in the order of their classes
    certificate: dict[str, Any] | None = None  # of the whole model, if each shard has its own
    has_checksum: bool = False  # of the index itself, which was verified


def holds_shards(folder: Path) -> bool:
    """Whether a folder has shards, of a complete model or not."""
    return any(folder.glob(SHARDS))


def write_index(folder: Path, names: list[str], certificate: dict[str, Any] | None = None) -> None:
    """Write the index, then remove the remains of another model or of a killed process."""
    content: dict[str, Any] = {"format": FORMAT, "format_version": VERSION, "shards": names}
    if certificate is not None:
        content["certificate"] = certificate
    content["checksum"] = _checksum(content)
    with open_atomic(folder / INDEX) as out:
        out.write(json.dumps(content, indent=1).encode())
    for path in (path for pattern in (SHARDS, *LEFTOVERS) for path in folder.glob(pattern)):
        if path.name not in names:
            with suppress(OSError):
                path.unlink()


def read_index(folder: str | os.PathLike[str]) -> ShardIndex:
    """Read the index of a folder of shards; ValueError if the folder does not hold a complete model."""
    path = Path(folder) / INDEX
    if not path.exists():
        raise ValueError(f"the folder has no {INDEX}, so it is not a model, or not a complete one")
    try:
        content = parse_object(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{INDEX} is not valid JSON ({error})") from error
    if content.get("format") != FORMAT or content.get("format_version") != VERSION:
        raise ValueError(f"{INDEX} was not written by manyclass, or by a newer version")
    # Earlier versions wrote no checksum.
    if content.get("checksum", _checksum(content)) != _checksum(content):
        raise ValueError(f"{INDEX} has changed since it was written")
    names, certificate = content.get("shards"), content.get("certificate")
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and NAME.fullmatch(n) for n in names):
        raise ValueError(f"{INDEX} does not name the shards")
    if not isinstance(certificate, dict | None):
        raise ValueError(f"the certificate in {INDEX} is a {type(certificate).__name__}, not a JSON object")
    missing = [name for name in names if not (Path(folder) / name).is_file()]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ValueError(f"{len(missing)} of {len(names)} shards {verb} missing: {', '.join(missing)}")
    return ShardIndex([Path(folder) / name for name in names], certificate, "checksum" in content)


def _checksum(content: dict[str, Any]) -> str:
    covered = {name: value for name, value in content.items() if name != "checksum"}
    return hashlib.blake2b(json.dumps(covered, sort_keys=True).encode(), digest_size=8).hexdigest()


def join_shards(parts: list[LinearModel], index: ShardIndex) -> LinearModel:
    """Join shards into one model without copying the weights; ValueError if they do not belong to the same model."""
    first = parts[0]
    for part, path in zip(parts, index.shards, strict=True):
        if part.settings != first.settings or (index.certificate is None and part.certificate != first.certificate):
            raise ValueError("the shards belong to different models")
        if (part.n_features, part.dtype) != (first.n_features, first.dtype) or part.pairs:
            raise ValueError(
                f"{path.name} has {part.n_features} features in {part.dtype}, but the first shard has "
                f"{first.n_features} in {first.dtype}; shards divide a model by classes, not by pairs"
            )
    classes = join_labels([part.classes for part in parts])
    if not (classes[:-1] < classes[1:]).all():
        raise ValueError("the classes of the shards do not ascend from one to the next")
    counts = [part.label_counts for part in parts if part.label_counts is not None]
    return replace(
        first,
        weights=JoinedWeights([part.weights for part in parts]),
        intercept=np.concatenate([part.intercept for part in parts]),
        classes=classes,
        certificate=first.certificate if index.certificate is None else index.certificate,
        label_counts=np.concatenate(counts) if len(counts) == len(parts) else None,
        tree=None,
    )


def stored_bytes(path: Path) -> int:
    """Return the size of a model file, or the total size of its shards."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)
