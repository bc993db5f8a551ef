"""Store a chain in a safetensors file: the steps as JSON, and their arrays under names that begin with `steps.`."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..json_content import parse_json
from .chain import Chain
from .formats import StoredStep

ENTRIES = {"step", "parameters", "learned"}


def chain_content(chain: Chain) -> tuple[str, dict[str, np.ndarray]]:
    """Return the steps of a chain as JSON, and their arrays."""
    stored = chain.store()
    steps = [{"step": one.name, "parameters": one.parameters, "learned": one.learned} for one in stored]
    arrays = {
        f"steps.{place}.{name}": array for place, one in enumerate(stored) for name, array in one.arrays.items()
    }
    return json.dumps(steps, sort_keys=True), arrays


def chain_fingerprint(chain: Chain) -> str:
    """Return a string that identifies a chain."""
    steps, arrays = chain_content(chain)
    digest = hashlib.blake2b(steps.encode(), digest_size=16)
    for array in arrays.values():
        digest.update(array.data)
    return digest.hexdigest()


def read_chain(text: str, arrays: Mapping[str, np.ndarray]) -> Chain:
    """Rebuild a chain from JSON and the arrays of a file, which may hold other arrays too."""
    try:
        steps = parse_json(text)
    except ValueError as error:
        raise ValueError(f"the steps are not JSON ({error})") from error
    if not isinstance(steps, list) or not steps:
        raise ValueError(f"the steps are {steps!r}, not a list with at least one step")
    return Chain.restore(_stored(place, step, arrays) for place, step in enumerate(steps))


def _stored(place: int, step: Any, arrays: Mapping[str, np.ndarray]) -> StoredStep:
    fits = isinstance(step, dict) and set(step) == ENTRIES and isinstance(step["step"], str)
    if not fits or not isinstance(step["parameters"], dict) or not isinstance(step["learned"], dict):
        raise ValueError(f"step {place} is {step!r}, which lacks a name, parameters or learned values")
    return StoredStep(step["step"], step["parameters"], step["learned"], _Named(arrays, f"steps.{place}."))


class _Named(Mapping[str, np.ndarray]):
    """The arrays whose names begin with a prefix, which is removed. They are read only when used."""

    def __init__(self, arrays: Mapping[str, np.ndarray], prefix: str):
        self._arrays, self._prefix = arrays, prefix

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in self._arrays if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return f"{self._prefix}{name}" in self._arrays
