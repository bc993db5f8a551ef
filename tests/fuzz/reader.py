"""The interface of a reader to fuzz, and when an input counts as failed."""

import logging
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mutation import Mutate

from manyclass.data.bad_file import BadFileError


@dataclass(frozen=True)
class Reader:
    """A reader of files.

    Attributes
    ----------
    name : str
    seeds : callable
        Returns small inputs in the current format, which are read without error.
    mutate : callable
        Changes an input.
    read : callable
        Reads an input and uses the result; it may write to the given folder.
    """

    name: str
    seeds: Callable[[], list[bytes]]
    mutate: Mutate
    read: Callable[[bytes, Path], None]


def check(reader: Reader, data: bytes) -> bool:
    """Read an input, and return whether it was accepted.

    A file that cannot be used has to raise BadFileError, with its name. All other exceptions are failures and passed
    on, including a BadFileError that hides a lack of memory.
    """
    folder = Path(tempfile.mkdtemp(dir=SCRATCH))
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(data, folder)
        return True
    except BadFileError as error:
        if _of_memory(error):
            raise
        if str(folder) not in str(error) and "<BytesIO>" not in str(error):
            raise AssertionError(f"the message does not name the file: {error}") from error
        return False
    finally:
        logging.disable(logging.NOTSET)
        shutil.rmtree(folder, ignore_errors=True)


def _of_memory(error: BaseException | None) -> bool:
    return error is not None and (isinstance(error, MemoryError) or _of_memory(error.__cause__ or error.__context__))


# In memory if the system has this folder.
SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None
