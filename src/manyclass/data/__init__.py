"""Rows and labels: checks, readers and writers, built-in and synthetic data sets."""

from .labels import encode_known, encode_labels
from .matrix import RowMatrix, check_matrix
from .svmlight import ParseError, load_svmlight, save_svmlight
from .xmc import load_xmc, save_xmc

__all__ = [
    "ParseError",
    "RowMatrix",
    "check_matrix",
    "encode_known",
    "encode_labels",
    "load_svmlight",
    "load_xmc",
    "save_svmlight",
    "save_xmc",
]
