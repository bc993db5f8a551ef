"""Exact linear classifiers for thousands of classes, each fit with a certificate."""

from .estimators import MulticlassSVC, OneVsRestSVC
from .model import LinearModel, load_model, save_model

__version__ = "0.1.0"

__all__ = ["LinearModel", "MulticlassSVC", "OneVsRestSVC", "__version__", "load_model", "save_model"]
