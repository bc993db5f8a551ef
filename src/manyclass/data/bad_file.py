"""The one kind of error for files that cannot be used."""


class BadFileError(ValueError):
    """A file that is not what it should be; the message names the file, the place in it, and the reason."""
