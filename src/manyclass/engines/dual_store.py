"""Dual variables of all blocks: in memory while there is room, otherwise in files.

Variables written at different times are still feasible together: a fit starts from whatever it finds and computes the
weights that belong to it. So the files of a killed process, each written atomically, are as good as a checkpoint, and
rows may have been added or removed since.
"""

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..data.json_content import parse_object
from ..data.streams import open_atomic, remove_leftovers
from ..data.tensor_file import TensorFile, tensor_file_content
from ..solvers import Variables
from .checkpoint import CheckpointError, CheckpointFolder
from .fingerprint import differences
from .own_folder import OwnFolder, remove_abandoned

ABOUT = "variables.json"
SUFFIX = ".variables"


def holds_checkpoint(folder: str | os.PathLike[str]) -> bool:
    """Whether a fit, from disk or from memory, can resume from this folder."""
    return bool(CheckpointFolder(folder).generations()) or any(Path(folder).glob(f"*{SUFFIX}"))


class DualStore:
    """Dual variables by block name, with the ids of their rows.

    Parameters
    ----------
    about : dict
        What the variables belong to. A folder with variables of something else is rejected.
    beside : path
        Folder of the store. Without `folder`, variables that do not fit in memory go to a temporary folder in it,
        which is removed with this object.
    folder : path, optional
        Folder in which the variables remain after the process ends, written `every` so many seconds.
    resume : bool
        Start with the variables in `folder`; otherwise remove them.
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
        self.nbytes = 0  # in memory
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
            raise CheckpointError(f"{folder / ABOUT}: {error}; remove the folder to start again") from error
        if found is None and any(folder.glob(f"*{SUFFIX}")):
            raise CheckpointError(
                f"{folder} has variables, but no {ABOUT} that describes them; choose another folder"
            )
        for left in folder.glob(f".*{SUFFIX}.*"):  # of a process that was killed while writing
            left.unlink()
        if found is not None and resume:
            if different := differences(found, self.about):
                raise CheckpointError(
                    f"{folder} holds the variables of another fit: {', '.join(different)}; resume with the original "
                    "data and parameters, or choose another folder"
                )
            return
        for old in folder.glob(f"*{SUFFIX}"):
            old.unlink()
        with open_atomic(folder / ABOUT) as out:
            out.write(json.dumps(self.about).encode())

    @property
    def room(self) -> int:
        """Bytes of memory that the variables may use."""
        return self._room

    @room.setter
    def room(self, size: int) -> None:
        self._room = size
        while self.nbytes > size:
            self.set_aside([next(reversed(self._held))])

    @property
    def lasting(self) -> bool:
        """Whether the variables remain after the process ends."""
        return self._folder is not None

    def put(self, block: str, ids: np.ndarray, variables: Variables) -> None:
        """Store the variables of a block."""
        self._drop(block)
        held = variables | {"ids": ids}
        size = _bytes(held)
        if self.nbytes + size > self.room:
            self._write(block, held)
        else:
            self._held[block] = held
            self.nbytes += size
            self._unwritten.add(block)
        if self._folder is not None and time.monotonic() - self._written_at > self._every:
            self.flush()

    def get(self, block: str) -> Variables | None:
        """Return the variables of a block, including `ids`, or None if there are none."""
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
            raise CheckpointError(f"{path}: {reason}; remove it to train its rows from scratch") from error
        if "ids" not in found:
            raise CheckpointError(f"{path} does not say which rows it is for; remove it to train them from scratch")
        return found

    @property
    def _where(self) -> Path | None:
        """The folder of the files, if there is one yet."""
        return self._own.path if self._own is not None else self._folder

    def holds(self, blocks: Iterable[str]) -> bool:
        """Whether there are variables for any of these blocks."""
        return not set(blocks).isdisjoint(self.names())

    def names(self) -> list[str]:
        """Return the names of all blocks that have variables."""
        folder = self._where
        in_files = [] if folder is None else [path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}")]
        return sorted({*self._held, *in_files})

    def set_aside(self, blocks: Iterable[str]) -> None:
        """Move the variables of these blocks from memory to files."""
        for block in blocks:
            if block in self._unwritten:
                self._write(block, self._held[block])
            self._drop(block)

    def remove(self, blocks: Iterable[str]) -> None:
        """Delete the variables of these blocks."""
        folder = self._where
        for block in blocks:
            self._drop(block)
            if folder is not None:
                (folder / f"{block}{SUFFIX}").unlink(missing_ok=True)

    def flush(self) -> None:
        """Write variables that are only in memory to the lasting folder, if there is one."""
        if self._folder is None:
            return
        for block in sorted(self._unwritten):
            self._write(block, self._held[block])
        self._unwritten.clear()
        self._written_at = time.monotonic()

    def close(self) -> None:
        """Delete everything outside the lasting folder."""
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

    def _write(self, block: str, held: Variables) -> None:
        if self._folder is None and self._own is None:
            self._own = OwnFolder(self._beside)
        folder = self._where
        assert folder is not None
        with open_atomic(folder / f"{block}{SUFFIX}", durable=folder is self._folder) as out:
            out.writelines(tensor_file_content(held, {}, checked=True))


def variables_of_rows(
    stored: Variables, ids: np.ndarray, only_rows: Callable[[Variables, np.ndarray, int], Variables]
) -> Variables:
    """Return stored variables without their ids, restricted to these rows by `only_rows` (see `Stream.only_rows`)."""
    variables = {name: array for name, array in stored.items() if name != "ids"}
    if np.array_equal(stored["ids"], ids):
        return variables
    here = np.flatnonzero(np.isin(stored["ids"], ids))
    if here.size != ids.size:
        raise ValueError("the stored variables do not belong to the rows of their block; remove them to start again")
    return only_rows(variables, here, stored["ids"].size)


def _bytes(variables: Variables) -> int:
    return sum(array.nbytes for array in variables.values())
