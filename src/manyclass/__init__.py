"""Exact linear classifiers for thousands of classes, each fit with a certificate."""

from .estimators import MaxEnt, MulticlassSVC, OneVsRestLogistic, OneVsRestSVC
from .model import LinearModel, load_model, save_model

__version__ = "0.1.0"

__all__ = [
    "LinearModel",
    "MaxEnt",
    "MulticlassSVC",
    "OneVsRestLogistic",
    "OneVsRestSVC",
    "__version__",
    "load_model",
    "save_model",
]
