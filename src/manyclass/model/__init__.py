"""Trained models: weights, scores, top-k, files."""

from .file import ModelFileError, load_model, save_model
from .linear import LinearModel
from .shard_writer import ShardWriter

__all__ = ["LinearModel", "ModelFileError", "ShardWriter", "load_model", "save_model"]
