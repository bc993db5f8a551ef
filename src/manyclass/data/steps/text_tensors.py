"""The layout of text features in model files of version 1, which had no other steps.

A chain of only `TextFeatures` or only `HashedText` is still written in this layout, which older readers know.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..hashed_text import HashedText
from ..json_content import parse_object
from ..text_features import TextFeatures
from .chain import Chain
from .formats import StoredStep

PREFIX = "text."
OPTIONS, HASHING = "text.options", "text.hashing"
# Names in this layout of the arrays of a `TextFeatures`.
ARRAYS = {"vocabulary.utf8": "text.vocabulary", "vocabulary.offsets": "text.offsets", "idf": "text.idf"}


def text_tensors(chain: Chain) -> dict[str, np.ndarray] | None:
    """Convert a chain to arrays, or return None if this layout cannot hold it."""
    if len(chain) != 1 or type(chain[0]) not in (TextFeatures, HashedText):
        return None
    (stored,) = chain.store()
    parameters = np.frombuffer(json.dumps(stored.parameters, sort_keys=True).encode(), np.uint8)
    if stored.name == HashedText.__name__:
        return {HASHING: parameters}
    return {ARRAYS[name]: array for name, array in stored.arrays.items()} | {OPTIONS: parameters}


def chain_of_text_tensors(tensors: Mapping[str, np.ndarray]) -> Chain:
    """Rebuild a chain from the arrays of `text_tensors`. Without such arrays, the chain is empty."""
    if not any(name.startswith(PREFIX) for name in tensors):
        return Chain()
    if HASHING in tensors:
        return Chain.restore([StoredStep(HashedText.__name__, _read_options(tensors[HASHING]))])
    arrays = {name: tensors[stored] for name, stored in ARRAYS.items()}
    return Chain.restore([StoredStep(TextFeatures.__name__, _read_options(tensors[OPTIONS]), {}, arrays)])


def _read_options(tensor: np.ndarray) -> dict[str, Any]:
    try:
        return parse_object(tensor.tobytes())
    except ValueError as error:
        raise ValueError(f"the options of the text features are damaged: {error}") from error
