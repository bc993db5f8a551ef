"""Base class of errors about files that cannot be used."""

import os


class BadFileError(ValueError):
    """A file is malformed or damaged; the message names the file, the place in it and the reason."""


def without_name(error: Exception, path: str | os.PathLike[str]) -> str:
    """Return the message of an error without the file name at its beginning."""
    return str(error).removeprefix(f"{os.fspath(path)}: ")
