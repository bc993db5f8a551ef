"""Read and write the file format of the extreme-classification repository (XMC)."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from .streams import PathOrFile, StreamError, open_input, open_output
from .svmlight import format_blocks, labels_of, matrix_of, parse_rows

# Matches a header, but no row of an svmlight file.
HEADER = re.compile(rb"\s*\d+\s+\d+\s+\d+\s*(#.*)?")
LONGEST_HEADER = 256


def looks_like_xmc(path: str | os.PathLike[str]) -> bool:
    """Whether a file, plain or compressed, starts with an XMC header. False for pipes: they can be read only once."""
    if not Path(path).is_file():
        return False
    try:
        with open_input(path) as stream:
            return HEADER.fullmatch(stream.readline(LONGEST_HEADER)) is not None
    except (StreamError, ImportError):  # reported when the file is read
        return False


def load_xmc(path: PathOrFile, *, dtype: DTypeLike = np.float32) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Read an XMC file.

    It has the header `rows features labels`, and rows `label,label index:value ...`. Labels and indices count from 0.

    Parameters
    ----------
    path : str, path-like or binary file object
        The file, plain or compressed. `-` reads standard input.
    dtype : float32 or float64
        Type of the values.

    Returns
    -------
    X : csr_matrix of shape (rows, features)
        The rows.
    Y : csr_matrix of shape (rows, labels)
        Indicator of the labels: ones where a row has a label.

    Raises
    ------
    ParseError
        If the file is malformed or does not match its header; the message names file, line and column.
    """
    parser = parse_rows(path, n_features=None, multilabel=True, zero_based=True, dtype=dtype, xmc=True)
    X = matrix_of(parser, dtype)
    Y = labels_of(parser, n_labels=parser.label_limit)
    assert sp.issparse(Y)
    return X, Y


def save_xmc(X: Any, Y: sp.spmatrix, path: str | os.PathLike[str]) -> None:
    """Write an XMC file that `load_xmc` reads back exactly.

    Parameters
    ----------
    X : sparse or dense matrix of shape (rows, features)
        The rows. Values are written as the shortest decimals that read back the same in their type.
    Y : sparse indicator of shape (rows, labels)
        The labels: any non-zero entry counts.
    path : str or path-like
        The suffix `.gz`, `.bz2`, `.xz` or `.zst` selects compression. The file appears only once it is complete.
    """
    if not sp.issparse(Y):
        Y = sp.csr_matrix(np.atleast_2d(np.asarray(Y)))
    with open_output(path) as out:
        out.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for text in format_blocks(X, Y, base=0, mark_empty=False):
            out.write(text)
