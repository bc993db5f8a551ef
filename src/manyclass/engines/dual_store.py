"""The dual variables of all blocks: in memory while there is room, else in files.

Any of them, of whatever moment, are feasible: a fit goes on from all of them together, with the weights that they
have. So files that a killed process has left are as good as a checkpoint, each being written in one step; and rows
may have come or gone in between.
"""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..data.json_content import parse_object
from ..data.streams import open_atomic, remove_leftovers
from ..data.tensor_file import TensorFile, tensor_file_content
from ..solvers import Variables
from .checkpoint import CheckpointError, CheckpointFolder
from .own_folder import OwnFolder, remove_abandoned

ABOUT = "variables.json"
SUFFIX = ".variables"


def holds_checkpoint(folder: str | os.PathLike[str]) -> bool:
    """Whether a fit, from disk or memory, can go on from what is in a folder."""
    return bool(CheckpointFolder(folder).generations()) or any(Path(folder).glob(f"*{SUFFIX}"))


class DualStore:
    """Variables by the name of their block, with the ids of the rows they belong to.

    Parameters
    ----------
    about : dict
        What they are variables of; those of something else are refused.
    beside : path
        The folder of the store: what there is no room for goes to a folder in it, which is removed with this object.
    folder : path, optional
        Where they are to be found after the process has ended, and what there is no room for.
    every : float
        Seconds after which what is in memory only is written to that folder.
    resume : bool
        Begin with what is in the folder. Without it the folder is emptied.
    """

    def __init__(
        self,
        about: dict[str, Any],
        beside: Path,
        folder: str | os.PathLike[str] | None = None,
        *,
        every: float = 600.0,
        resume: bool = False,
    ):
        self.about = about
        self._room = 0
        self._beside, self._every = beside, every
        self._folder = None if folder is None else Path(folder)
        self._own: OwnFolder | None = None
        self._held: dict[str, Variables] = {}
        self._unwritten: set[str] = set()
        self._written_at = time.monotonic()
        self.nbytes = 0  # of memory
        remove_abandoned(beside)
        if self._folder is not None:
            self._open(self._folder, resume)

    def _open(self, folder: Path, resume: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for names in (f"*{SUFFIX}", ABOUT):
            remove_leftovers(folder, names)
        try:
            found = parse_object((folder / ABOUT).read_bytes())
        except FileNotFoundError:
            found = None
        except ValueError as error:
            raise CheckpointError(f"{folder / ABOUT}: {error}; remove the folder to begin anew") from error
        if found is None and any(folder.glob(f"*{SUFFIX}")):
            raise CheckpointError(f"{folder} has variables, but no {ABOUT} to say of what; name another folder")
        for left in folder.glob(f".*{SUFFIX}.*"):  # by a process that was killed while it wrote
            left.unlink()
        if found is not None and resume:
            different = [name for name in self.about if found.get(name) != self.about[name]]
            if different:
                raise CheckpointError(
                    f"{folder} holds the variables of another fit: different are "
                    + ", ".join(f"{name} ({found.get(name)}, here {self.about[name]})" for name in different)
                )
            return
        for old in folder.glob(f"*{SUFFIX}"):
            old.unlink()
        with open_atomic(folder / ABOUT) as out:
            out.write(json.dumps(self.about).encode())

    @property
    def room(self) -> int:
        """Bytes of memory that they may take; what has no room goes to files."""
        return self._room

    @room.setter
    def room(self, size: int) -> None:
        self._room = size
        while self.nbytes > size:
            self.set_aside([next(reversed(self._held))])

    @property
    def lasting(self) -> bool:
        """Whether they are to be found after the process has ended."""
        return self._folder is not None

    def put(self, block: str, ids: np.ndarray, variables: Variables) -> None:
        """Keep the variables of a block."""
        self._drop(block)
        kept = variables | {"ids": ids}
        size = _bytes(kept)
        if self.nbytes + size > self.room:
            self._write(block, kept)
        else:
            self._held[block] = kept
            self.nbytes += size
            self._unwritten.add(block)
        if self._folder is not None and time.monotonic() - self._written_at > self._every:
            self.flush()

    def get(self, block: str) -> Variables | None:
        """Those of a block, `ids` among them, or None if there are none.

        Raises
        ------
        ValueError
            If a file is damaged.
        """
        if block in self._held:
            return self._held[block]
        folder = self._where
        if folder is None:
            return None
        path = folder / f"{block}{SUFFIX}"
        try:
            found = dict(TensorFile(path, mmap=False, verified=True))
        except FileNotFoundError:
            return None
        except ValueError as error:
            reason = str(error).removeprefix(f"{path}: ")
            raise CheckpointError(f"{path}: {reason}; remove it, and its rows begin anew") from error
        if "ids" not in found:
            raise CheckpointError(f"{path}: it does not say of which rows it is; remove it, and they begin anew")
        return found

    @property
    def _where(self) -> Path | None:
        """The folder of the files, if there is one by now."""
        return self._own.path if self._own is not None else self._folder

    def holds(self, blocks: Iterable[str]) -> bool:
        """Whether variables are kept of any of these blocks."""
        return not set(blocks).isdisjoint(self.names())

    def names(self) -> list[str]:
        """Of all blocks that variables are kept of."""
        folder = self._where
        in_files = [] if folder is None else [path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}")]
        return sorted({*self._held, *in_files})

    def set_aside(self, blocks: Iterable[str]) -> None:
        """Keep the variables of these blocks in files alone: they are not needed soon."""
        for block in blocks:
            if block in self._unwritten:
                self._write(block, self._held[block])
            self._drop(block)

    def remove(self, blocks: Iterable[str]) -> None:
        """Forget the variables of these blocks."""
        folder = self._where
        for block in blocks:
            self._drop(block)
            if folder is not None:
                (folder / f"{block}{SUFFIX}").unlink(missing_ok=True)

    def flush(self) -> None:
        """Write what is in memory only, if there is a folder for it."""
        if self._folder is None:
            return
        for block in sorted(self._unwritten):
            self._write(block, self._held[block])
        self._unwritten.clear()
        self._written_at = time.monotonic()

    def close(self) -> None:
        """Forget what no folder was named for."""
        self._held.clear()
        self.nbytes = 0
        if self._own is not None:
            self._own.remove()
            self._own = None

    def __del__(self) -> None:
        self.close()

    def _drop(self, block: str) -> None:
        self.nbytes -= _bytes(self._held.pop(block, {}))
        self._unwritten.discard(block)

    def _write(self, block: str, kept: Variables) -> None:
        if self._folder is None and self._own is None:
            self._own = OwnFolder(self._beside)
        folder = self._where
        assert folder is not None
        with open_atomic(folder / f"{block}{SUFFIX}", durable=folder is self._folder) as out:
            out.writelines(tensor_file_content(kept, {}, checked=True))


def _bytes(variables: Variables) -> int:
    return sum(array.nbytes for array in variables.values())
