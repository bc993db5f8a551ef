"""Exact linear classifiers for thousands of classes, with a certificate for every fit."""

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
