"""The layout of text features in files of version 1, which knew no other steps.

A chain of nothing but `TextFeatures` or `HashedText` is still written so: older readers know it.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..hashed_text import HashedText
from ..json_content import parse_json
from ..text_features import TextFeatures
from .chain import Chain
from .formats import StoredStep

PREFIX = "text."
OPTIONS, HASHING = "text.options", "text.hashing"
# What the arrays of a `TextFeatures` are called here.
ARRAYS = {"vocabulary.utf8": "text.vocabulary", "vocabulary.offsets": "text.offsets", "idf": "text.idf"}


def text_tensors(chain: Chain) -> dict[str, np.ndarray] | None:
    """Give a chain as arrays alone, or None if they cannot hold it."""
    if len(chain) != 1 or type(chain[0]) not in (TextFeatures, HashedText):
        return None
    (stored,) = chain.store()
    parameters = np.frombuffer(json.dumps(stored.parameters, sort_keys=True).encode(), np.uint8)
    if stored.name == HashedText.__name__:
        return {HASHING: parameters}
    return {ARRAYS[name]: array for name, array in stored.arrays.items()} | {OPTIONS: parameters}


def chain_of_text_tensors(tensors: Mapping[str, np.ndarray]) -> Chain:
    """Rebuild what `text_tensors` gave; no such arrays are no steps.

    Raises
    ------
    ValueError
        If an array is missing or the arrays do not fit together.
    """
    if not any(name.startswith(PREFIX) for name in tensors):
        return Chain()
    if HASHING in tensors:
        return Chain.restore([StoredStep(HashedText.__name__, _read_options(tensors[HASHING]))])
    arrays = {name: tensors[stored] for name, stored in ARRAYS.items()}
    return Chain.restore([StoredStep(TextFeatures.__name__, _read_options(tensors[OPTIONS]), {}, arrays)])


def _read_options(tensor: np.ndarray) -> dict[str, Any]:
    try:
        options = parse_json(tensor.tobytes())
    except ValueError as error:
        raise ValueError(f"the options of the text features are no JSON ({error})") from error
    if not isinstance(options, dict):
        raise ValueError(f"the options of the text features are {options!r}, not a JSON object")
    return options
