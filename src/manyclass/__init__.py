"""Exact linear classifiers for thousands of classes, each fit with a certificate."""

from .estimators import MulticlassSVC, OneVsRestSVC
from .model import LinearModel

__version__ = "0.1.0"

__all__ = ["LinearModel", "MulticlassSVC", "OneVsRestSVC", "__version__"]
