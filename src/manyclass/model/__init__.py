"""Trained models: weights, scores, top-k, files."""

from .linear import LinearModel

__all__ = ["LinearModel"]
