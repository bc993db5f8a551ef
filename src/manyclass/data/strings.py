"""Convert strings to two plain arrays, as stored in a safetensors file, and back."""

import itertools
from collections.abc import Iterable

import numpy as np


def string_arrays(strings: Iterable[str], errors: str = "surrogatepass") -> tuple[np.ndarray, np.ndarray]:
    """Return the strings as concatenated UTF-8, with lone surrogates (as in JSON) by `errors`, and their offsets."""
    encoded = [string.encode("utf-8", errors) for string in strings]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def read_strings(utf8: np.ndarray, offsets: np.ndarray, what: str, errors: str = "surrogatepass") -> list[str]:
    """Restore the strings from the arrays of `string_arrays`; `what` they are appears in error messages."""
    if utf8.dtype != np.uint8 or offsets.dtype != np.int64 or utf8.ndim != 1 or offsets.ndim != 1:
        raise ValueError(
            f"the {what} must be vectors of uint8 and int64, got {utf8.dtype} of shape {utf8.shape} and "
            f"{offsets.dtype} of shape {offsets.shape}"
        )
    if offsets.size < 1 or offsets[0] != 0 or offsets[-1] != utf8.size or (np.diff(offsets) < 0).any():
        raise ValueError(f"the {offsets.size} offsets do not divide the {utf8.size} bytes of the {what}")
    content = utf8.tobytes()
    try:
        return [content[begin:end].decode("utf-8", errors) for begin, end in itertools.pairwise(offsets.tolist())]
    except UnicodeDecodeError as error:
        raise ValueError(f"the {what} are not UTF-8 ({error})") from error
