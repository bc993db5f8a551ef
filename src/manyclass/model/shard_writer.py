"""Write a model during training as shards of classes, in any order and resumable."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data import Chain
from .file import ModelFileError, read_model_file, save_shard
from .linear import LinearModel
from .shards import SHARDS, write_index


class ShardWriter:
    """A folder of shards that becomes a model once it has all classes.

    Several processes may each have a writer for the same folder and add their own shards.

    Parameters
    ----------
    folder : str or path-like
        Created if it does not exist. `load_model` can read it after `finish`.
    n_classes, n_features : int
        Size of the whole model.
    settings : dict
        How the model is trained; JSON-serialisable values.
    chain : Chain
        The preprocessing steps from raw input to the rows that are scored. Stored in the first shard.
    data : str
        Identifies the training rows, so that shards of fits to different rows are not mixed.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        n_classes: int,
        n_features: int,
        settings: dict[str, Any],
        *,
        chain: Chain | None = None,
        data: str = "",
    ):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._n_classes, self._n_features = n_classes, n_features
        self._settings, self._chain = json.loads(json.dumps(settings)), chain or Chain()
        told = json.dumps([settings, n_classes, n_features, data], sort_keys=True)
        token = hashlib.blake2b(told.encode(), digest_size=4).hexdigest()
        self._suffix = f"-of-{n_classes}-{token}.manyclass"

    def add(self, first_class: int, part: LinearModel) -> None:
        """Write the classes from `first_class` on. The file appears only when it is complete.

        Parameters
        ----------
        first_class : int
            Position of the first class of `part` among all classes.
        part : LinearModel
            A model of consecutive classes, with all features. Its settings and steps are replaced by the writer's.
        """
        if not 0 <= first_class <= first_class + part.n_classes <= self._n_classes:
            raise ValueError(
                f"the part has classes {first_class} to {first_class + part.n_classes - 1}, but the model "
                f"has only {self._n_classes} classes"
            )
        if part.n_features != self._n_features:
            raise ValueError(f"the part has {part.n_features} features, but the model has {self._n_features}")
        chain = self._chain if first_class == 0 else Chain()
        save_shard(replace(part, settings=self._settings, chain=chain), self._path(first_class))

    def done(self) -> list[tuple[int, int, dict[str, Any]]]:
        """Return the ranges of finished classes as (begin, end, certificate), in order, ignoring damaged files.

        If shards overlap, because an interrupted fit used other ranges, the first one counts.
        """
        return [(begin, end, certificate) for begin, end, certificate, _ in self._valid()]

    def others(self) -> bool:
        """Whether the folder has shards of other models."""
        return any(not path.name.endswith(self._suffix) for path in self._folder.glob(SHARDS))

    def finish(self, certificate: dict[str, Any] | None = None) -> None:
        """Write the index, which makes the folder a model.

        Parameters
        ----------
        certificate : dict, optional
            Certificate of the whole model. If not given, all shards must have the same one.

        Raises
        ------
        ValueError
            If classes are missing.
        """
        found = self._valid()
        reached = 0
        for begin, end in [*((begin, end) for begin, end, *_ in found), (self._n_classes, self._n_classes)]:
            if begin != reached:
                raise ValueError(f"{self._folder}: classes {reached} to {begin - 1} are in no shard; train them")
            reached = end
        write_index(self._folder, [name for *_, name in found], certificate)

    def _path(self, first_class: int) -> Path:
        # Padded with zeros so that names sort in the order of the classes.
        digits = len(str(self._n_classes))
        return self._folder / f"shard-{first_class:0{digits}}{self._suffix}"

    def _valid(self) -> list[tuple[int, int, dict[str, Any], str]]:
        found: list[tuple[int, int, dict[str, Any], str]] = []
        for path in sorted(self._folder.glob(f"shard-*{self._suffix}")):
            number = path.name.removeprefix("shard-").removesuffix(self._suffix)
            if not number.isdecimal() or path != self._path(int(number)):
                continue
            begin = int(number)
            try:
                part = read_model_file(path)
            except ModelFileError:
                continue
            end = begin + part.n_classes
            fits = part.settings == self._settings and part.n_features == self._n_features and end <= self._n_classes
            if fits and (not found or begin >= found[-1][1]):
                found.append((begin, end, part.certificate, path.name))
        return found
