"""A model in several files, each with some of the classes: processes write theirs side by side.

| file | what it holds |
|---|---|
| `shard-0-of-4-1f0c9a2b.manyclass` | a model file of the first classes; the text features are in the first shard |
| `shards.json` | the names of all shards, in the order of their classes |

The index comes last and makes the model exist; shards of an earlier one are removed after that. The letters in the
names tell models apart, so that a new one never overwrites files that an index names.
"""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.streams import open_atomic
from .linear import LinearModel

INDEX = "shards.json"
FORMAT = "manyclass shards"
VERSION = 1


def shard_of(model: LinearModel, shard: int, shards: int) -> LinearModel:
    """The part of a model that has some of its classes."""
    K = model.n_classes
    begin, end = shard * K // shards, (shard + 1) * K // shards
    return replace(
        model,
        weights=model.weights[:, begin:end],
        intercept=model.intercept[begin:end],
        classes=model.classes[begin:end],
        text=model.text if shard == 0 else None,
        label_counts=None if model.label_counts is None else model.label_counts[begin:end],
        tree=None,
    )


def shard_names(model: LinearModel, shards: int) -> list[str]:
    """The names of the files, the same in every process that has the same model."""
    told = json.dumps(
        [model.settings, model.certificate, model.n_classes, model.n_features], sort_keys=True, default=str
    )
    token = hashlib.blake2b(told.encode(), digest_size=4).hexdigest()
    return [f"shard-{shard}-of-{shards}-{token}.manyclass" for shard in range(shards)]


def write_index(folder: Path, names: list[str]) -> None:
    """Make the model exist, then remove what is left of another one."""
    content = {"format": FORMAT, "format_version": VERSION, "shards": names}
    with open_atomic(folder / INDEX) as out:
        out.write(json.dumps(content, indent=1).encode())
    for path in folder.glob("shard-*-of-*.manyclass"):
        if path.name not in names:
            with suppress(OSError):
                path.unlink()


def read_index(folder: str | os.PathLike[str]) -> list[Path]:
    """Where the shards of a model are.

    Raises
    ------
    ValueError
        If the folder holds no model, or not all of one.
    """
    path = Path(folder) / INDEX
    if not path.exists():
        raise ValueError(f"a folder without {INDEX}, so not a model, or one that was not written to its end")
    content = json.loads(path.read_text())
    if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("format_version") != VERSION:
        raise ValueError(f"{INDEX} is not of manyclass, or of a newer one")
    names = content.get("shards")
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and Path(n).name == n for n in names):
        raise ValueError(f"{INDEX} does not name the shards")
    missing = [name for name in names if not (Path(folder) / name).exists()]
    if missing:
        raise ValueError(f"{', '.join(missing)} of {len(names)} shards is missing")
    return [Path(folder) / name for name in names]


def join_shards(parts: list[LinearModel]) -> LinearModel:
    """One model of all classes.

    Raises
    ------
    ValueError
        If the parts are not of one model.
    """
    first = parts[0]
    for part in parts[1:]:
        if (part.settings, part.certificate) != (first.settings, first.certificate):
            raise ValueError("the shards are of different models")
    weights: Any
    if any(part.is_sparse for part in parts):
        weights = sp.hstack([sp.csr_matrix(part.weights) for part in parts], format="csr")
    else:
        weights = np.hstack([part.weights for part in parts])
    intercept = np.concatenate([part.intercept for part in parts])
    classes = np.concatenate([part.classes for part in parts])
    counts = [part.label_counts for part in parts if part.label_counts is not None]
    return replace(
        first,
        weights=weights,
        intercept=intercept,
        classes=classes,
        label_counts=np.concatenate(counts) if len(counts) == len(parts) else None,
        tree=None,
    )


def stored_bytes(path: Path) -> int:
    """The size of a model's file, or of its shards together."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)
