"""Trained models: weights, scores, top-k, files."""

from .file import ModelFileError, load_model, save_model
from .linear import LinearModel

__all__ = ["LinearModel", "ModelFileError", "load_model", "save_model"]
