"""The compiled core, in the fastest build that this processor runs.

`core` is the chosen module; `MANYCLASS_ISA` (baseline, avx2, avx512) forces one, for tests and bug reports.
"""

import importlib
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from .processor import supported_builds

if TYPE_CHECKING:
    from . import core

BUILDS = ("avx512", "avx2", "baseline")


def choose_build(wanted: str | None) -> str:
    """Return the build named `wanted`, or without a name the best one that is installed and runs here."""
    installed = [name for name in BUILDS if find_spec(f"{__name__}.{name}")]
    usable = [name for name in supported_builds() if name in installed]
    if wanted and wanted not in BUILDS:
        raise ImportError(f"MANYCLASS_ISA={wanted!r} is unknown; choose one of {', '.join(BUILDS)}")
    if wanted and wanted not in usable:
        raise ImportError(
            f"MANYCLASS_ISA={wanted!r} is not installed or not supported by this processor; "
            f"choose one of {', '.join(usable)}"
        )
    if not usable:
        names = ", ".join(installed)
        raise ImportError(f"manyclass was built for {names} only, which this processor does not support")
    return wanted or usable[0]


isa = choose_build(os.environ.get("MANYCLASS_ISA"))
if not TYPE_CHECKING:
    core = importlib.import_module(f".{isa}", __name__)


def native(core: Any, name: str, dtype: np.dtype) -> Any:
    """Return the class of the core called `name`, for a value type."""
    return getattr(core, f"{name}{'32' if np.dtype(dtype) == np.float32 else '64'}")
