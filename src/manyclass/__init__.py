"""Linear classifiers for thousands of classes, with a certificate for every fit.

Names are imported when first used, so that loading a model does not load the code that trains one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data import BlockStore
    from .engines import DiskEngine
    from .estimators import (
        CalibratedClassifier,
        DiSMEC,
        EdgeOfGridWarning,
        MaxEnt,
        MulticlassSVC,
        OneVsOneLogistic,
        OneVsOneSVC,
        OneVsRestLogistic,
        OneVsRestSVC,
        PDSparse,
        PPDSparse,
        UnfinishedFitError,
        select_C,
    )
    from .model import LinearModel, load_model, save_model

__version__ = "0.1.0"

__all__ = [
    "BlockStore",
    "CalibratedClassifier",
    "DiSMEC",
    "DiskEngine",
    "EdgeOfGridWarning",
    "LinearModel",
    "MaxEnt",
    "MulticlassSVC",
    "OneVsOneLogistic",
    "OneVsOneSVC",
    "OneVsRestLogistic",
    "OneVsRestSVC",
    "PDSparse",
    "PPDSparse",
    "UnfinishedFitError",
    "__version__",
    "load_model",
    "save_model",
    "select_C",
]

# Where the public names are. A name is looked up in this order, so that none loads more than it needs.
_HOMES = ("data", "model", "engines", "estimators")
_SUBMODULES = (*_HOMES, "_native", "metrics", "peers", "problems", "solvers")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    for home in _HOMES if name in __all__ else ():
        if hasattr(found := import_module(f".{home}", __name__), name):
            globals()[name] = getattr(found, name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
