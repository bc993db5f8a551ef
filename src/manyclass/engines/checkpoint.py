"""Folder of checkpoints, from which a fit can resume after its process has ended.

| file | contents |
|---|---|
| `checkpoint-7-0.safetensors` | arrays of rank 0 in generation 7 |
| `checkpoint-7.json` | manifest of generation 7: its parts with their checksums, and the engine's own data |

Every file is written under a temporary name and renamed when complete. The manifest is written last: a generation
exists once its manifest does. The previous generation is kept, and read if the newest is damaged.
"""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data.bad_file import BadFileError
from ..data.checksums import checksum_of, write_checked, wrong_size
from ..data.json_content import Count, as_declared, parse_object, shown
from ..data.streams import open_atomic
from ..data.tensor_file import TensorFile, tensor_file_content

FORMAT = "manyclass checkpoint"
VERSION = 3  # 3: the progress of a solver as one object
# A leading dot and a trailing suffix mark a temporary file of `open_atomic`.
FILE = re.compile(r"\.?checkpoint-(\d+)(-\d+)?\.(json|safetensors)(\.\w+)?")
MANIFEST = re.compile(r"checkpoint-(\d+)\.json")


class CheckpointError(BadFileError):
    """Raised if a folder's checkpoints cannot be used; the message names the folder and the reason."""


@dataclass(frozen=True)
class Part:
    """A file of a generation, as listed in its manifest."""

    file: str
    size: Count
    checksum: str


@dataclass(frozen=True)
class _Content:
    """Content of a manifest."""

    format: str
    format_version: Count
    generation: Count
    parts: list[Part]
    info: dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """A generation read from disk."""

    generation: int
    info: dict[str, Any]  # as passed to `commit`
    parts: list[dict[str, np.ndarray]]  # arrays of each rank, memory-mapped


class CheckpointFolder:
    """The checkpoints of one fit; files with other names in the folder are left alone.

    Every rank calls `write_part`; when all have returned, one rank calls `commit`.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._last_good: int | None = None  # last generation read or written by this object

    # ---- Writing

    def next_generation(self) -> int:
        """Return a number larger than that of any existing file, complete or not."""
        return 1 + max((generation for generation, _ in self._files()), default=0)

    def write_part(self, generation: int, rank: int, tensors: dict[str, np.ndarray]) -> Part:
        """Write the arrays of one rank, for the commit of a generation. After an OSError no partial file is left."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / f"checkpoint-{generation}-{rank}.safetensors"
        arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
        with open_atomic(file) as out:
            size, checksum = write_checked(out, tensor_file_content(arrays, {"format": FORMAT}))
        return Part(file.name, size, checksum)

    def commit(self, generation: int, parts: Sequence[Part], info: dict[str, Any]) -> None:
        """Write the manifest of a generation, then remove all but this and the previous good generation.

        `info` is JSON data, in which NaN and infinity are allowed. Raises OSError if a part is missing or the
        manifest cannot be flushed to disk.
        """
        content = asdict(_Content(FORMAT, VERSION, generation, list(parts), info))
        text = json.dumps({"checksum": _checksum(content), "content": content}, indent=1)
        for part in parts:
            if not (self.path / part.file).exists():
                raise OSError(f"{part.file} of another rank is missing; do all hosts share this folder?")
        with open_atomic(self._manifest(generation)) as out:
            out.write(text.encode())
        kept = {generation, self._last_good}
        self._last_good = generation
        # Keep newer files: another rank may already be writing its next part.
        self._remove(lambda number, path: number <= generation and (number not in kept or path.name[0] == "."))

    def discard(self, generation: int) -> None:
        """Remove the files of a generation that could not be committed."""
        self._remove(lambda number, path: number == generation)

    def _remove(self, unwanted: Callable[[int, Path], bool]) -> None:
        with suppress(OSError):  # leftover files do no harm
            # Manifests first: none may refer to parts that are gone.
            for number, path in sorted(self._files(), key=lambda found: found[1].suffix != ".json"):
                if unwanted(number, path):
                    path.unlink()

    # ---- Reading

    def generations(self) -> list[int]:
        """Return the existing generations, newest first."""
        return sorted((number for number, path in self._files() if MANIFEST.fullmatch(path.name)), reverse=True)

    def read(self) -> Stored | None:
        """Read the newest intact generation, or return None if there is no checkpoint.

        Raises CheckpointError if there are checkpoints but none is intact.
        """
        found: list[str] = []
        for generation in self.generations():
            try:
                stored = self._read(generation)
            except (OSError, ValueError) as error:
                found.append(f"checkpoint {generation}: {error}")
                continue
            if found:
                message = f"{self.path}: {'; '.join(found)}. Resuming from the earlier checkpoint {generation}"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
            self._last_good = generation
            return stored
        if found:
            raise CheckpointError(
                f"{self.path}: no checkpoint is intact ({'; '.join(found)}); remove the folder to start again"
            )
        return None

    def _read(self, generation: int) -> Stored:
        manifest = self._manifest(generation)
        written = parse_object(manifest.read_bytes())
        content = written.get("content")
        if not isinstance(content, dict) or written.get("checksum") != _checksum(content):
            raise ValueError(f"the checksum of {manifest.name} is wrong")
        if content.get("format") != FORMAT or content.get("format_version") != VERSION:
            found = f"{shown(content.get('format'))}, {shown(content.get('format_version'))}"
            raise ValueError(f"{manifest.name} has the format {found}")
        declared = as_declared(_Content, content)
        for part in declared.parts:
            if not re.fullmatch(rf"checkpoint-{generation}-[0-9]{{1,9}}\.safetensors", part.file):
                raise ValueError(f"{shown(part.file)} is not a part of checkpoint {generation}")
        return Stored(generation, declared.info, [self._read_part(part) for part in declared.parts])

    def _read_part(self, part: Part) -> dict[str, np.ndarray]:
        path = self.path / part.file
        if reason := wrong_size(path, part.size):
            raise ValueError(f"{part.file} {reason}")
        if checksum_of(path) != part.checksum:
            raise ValueError(f"the checksum of {part.file} is wrong")
        return dict(TensorFile(path))

    # ---- Names

    def _manifest(self, generation: int) -> Path:
        return self.path / f"checkpoint-{generation}.json"

    def _files(self) -> Iterator[tuple[int, Path]]:
        """Yield the generation and path of every checkpoint file, including temporary ones."""
        if not self.path.is_dir():
            return
        for path in self.path.iterdir():
            if match := FILE.fullmatch(path.name):
                yield int(match[1]), path


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode()).hexdigest()
