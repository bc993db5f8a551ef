"""Base class of errors about files that cannot be used."""


class BadFileError(ValueError):
    """A file is malformed or damaged; the message names the file, the place in it and the reason."""
