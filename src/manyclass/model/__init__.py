"""Trained models: weights, scores, top-k predictions and files."""

from .file import ModelFileError, load_model, save_model, verify_model
from .label_tree import LabelTree
from .linear import LinearModel
from .shard_writer import ShardWriter
