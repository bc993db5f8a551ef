"""Models that are written while they are trained: shards of classes, in any order, which may be resumed."""

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
    """A folder that becomes a model when all of its classes are there.

    Processes may have a writer each for the same folder, and add what is theirs.

    Parameters
    ----------
    folder : str or path-like
        Made if it does not exist. What `load_model` reads, once `finish` was called.
    n_classes, n_features : int
        Of the whole model.
    settings : dict
        How it is trained; plain values that JSON can hold.
    chain : Chain
        The steps from raw input to the rows that the weights are for. The first shard has them.
    data : str
        What tells the training rows from others, if shards from before must not be mixed with those of other rows.
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
        """Write the classes from `first_class` on; the file appears when it is complete.

        Parameters
        ----------
        first_class : int
            The position of its first class among all.
        part : LinearModel
            A model of some consecutive classes, for all features. Its settings and steps are those of the writer.
        """
        if not 0 <= first_class <= first_class + part.n_classes <= self._n_classes:
            raise ValueError(
                f"classes {first_class} to {first_class + part.n_classes - 1} of a model with {self._n_classes}"
            )
        if part.n_features != self._n_features:
            raise ValueError(f"a shard with {part.n_features} features of a model with {self._n_features}")
        chain = self._chain if first_class == 0 else Chain()
        save_shard(replace(part, settings=self._settings, chain=chain), self._path(first_class))

    def done(self) -> list[tuple[int, int, dict[str, Any]]]:
        """The ranges of classes that are there, as (begin, end, certificate), in order; damaged files do not count.

        Of shards that overlap, those of an interrupted fit with other ranges, the first counts.
        """
        return [(begin, end, certificate) for begin, end, certificate, _ in self._valid()]

    def others(self) -> bool:
        """Whether there are shards of other models in the folder."""
        return any(not path.name.endswith(self._suffix) for path in self._folder.glob(SHARDS))

    def finish(self, certificate: dict[str, Any] | None = None) -> None:
        """Write the index, which makes the folder a model.

        Parameters
        ----------
        certificate : dict, optional
            Of the whole model. Without one all shards must have the same.

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
        # As many digits as there can be: names are in the order of the classes.
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
