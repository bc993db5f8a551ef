"""The compiled core, in the fastest build that this processor runs.

`core` is the chosen module; `MANYCLASS_ISA` (baseline, avx2, avx512) forces one, for tests and bug reports.
"""

import importlib
import os
from types import ModuleType

from . import baseline  # type: ignore[attr-defined]

BUILDS = ("avx512", "avx2", "baseline")


def choose_build(wanted: str | None) -> ModuleType:
    """Import the build named `wanted`, or without a name the best one that exists and runs here."""
    supported = baseline.supported_builds()
    if wanted:
        if wanted not in BUILDS:
            raise ImportError(f"MANYCLASS_ISA={wanted!r} is unknown; choose one of {', '.join(BUILDS)}")
        if wanted not in supported:
            raise ImportError(f"MANYCLASS_ISA={wanted!r}, but this processor runs only: {', '.join(supported)}")
        return importlib.import_module(f".{wanted}", __name__)
    for name in BUILDS:
        if name in supported:
            try:
                return importlib.import_module(f".{name}", __name__)
            except ModuleNotFoundError:  # an architecture for which only the baseline is built
                continue
    return baseline


core = choose_build(os.environ.get("MANYCLASS_ISA"))
isa = core.__name__.rpartition(".")[2]
