"""Preprocessing steps between raw input and the weights, stored in model files as data."""

from .chain import Chain
from .files import chain_content, chain_fingerprint, read_chain
from .formats import StoredStep
from .text_tensors import chain_of_text_tensors, text_tensors
