"""Read and write the text format of the extreme-classification repository."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from .streams import PathOrFile, StreamError, open_input, open_output
from .svmlight import format_blocks, labels_of, matrix_of, parse_rows

# A header: no row of svmlight text looks like it.
HEADER = re.compile(rb"\s*\d+\s+\d+\s+\d+\s*(#.*)?")
LONGEST_HEADER = 256


def looks_like_xmc(path: str | os.PathLike[str]) -> bool:
    """Whether a file, plain or compressed, begins with three counts; False for what cannot be looked at twice."""
    if not Path(path).is_file():
        return False
    try:
        with open_input(path) as stream:
            return HEADER.fullmatch(stream.readline(LONGEST_HEADER)) is not None
    except (StreamError, ImportError):  # whoever reads it will say so
        return False


def load_xmc(path: PathOrFile, *, dtype: DTypeLike = np.float32) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Read a file with the header `rows features labels` and rows `label,label index:value ...`, all from 0.

    Parameters
    ----------
    path : str, path-like or binary file object
        Plain or compressed; `-` is standard input.
    dtype : float32 or float64
        Of the values.

    Returns
    -------
    X : csr_matrix of shape (rows, features)
    Y : csr_matrix of shape (rows, labels)
        Ones where a row has a label.

    Raises
    ------
    ParseError
        With file, line and column, also where the rows are not what the header promises.
    """
    parser = parse_rows(path, n_features=None, multilabel=True, zero_based=True, dtype=dtype, xmc=True)
    X = matrix_of(parser, dtype)
    Y = labels_of(parser, n_labels=parser.label_limit)
    assert sp.issparse(Y)
    return X, Y


def save_xmc(X: Any, Y: sp.spmatrix, path: str | os.PathLike[str]) -> None:
    """Write what `load_xmc` reads back to the last bit.

    Parameters
    ----------
    X : sparse or dense matrix of shape (rows, features)
        Values are written as the shortest decimals that read back the same in their type.
    Y : sparse indicator of shape (rows, labels)
        Whatever is not zero counts as a label.
    path : str or path-like
        The suffix `.gz`, `.bz2`, `.xz` or `.zst` compresses. The file appears only when it is complete.
    """
    if not sp.issparse(Y):
        Y = sp.csr_matrix(np.atleast_2d(np.asarray(Y)))
    with open_output(path) as out:
        out.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for text in format_blocks(X, Y, base=0, mark_empty=False):
            out.write(text)
