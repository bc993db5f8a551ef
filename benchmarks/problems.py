"""The problems measured, as sparse rows and class codes.

    bench-1k        synthetic text: n = 5,000, K = 1,000, d = 50,000, 61 non-zeros a row
    lshtc-small     synthetic text in the shape of LSHTC-small: n = 4,463, K = 1,139, d = 51,033, 149 non-zeros a row
    wordnet-min5    WordNet glosses, class = direct hypernym with five members or more: K = 4,796, d = 38,523
    wordnet         the same with every hypernym: K = 12,582
    news20          20 newsgroups, by date: K = 20
    letter, usps, satimage    small and dense: K = 26, 10, 6

All but the first two are read from the folder that the environment variable MANYCLASS_DATA names, which holds
``wordnet_hyper_min5/``, ``wordnet_hyper/``, ``news20_bydate/``, ``letter/``, ``usps/`` and ``satimage/`` with
train.svm.xz and test.svm.xz in each.
"""

from __future__ import annotations

import lzma
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.environments import UnavailableError

FOLDERS = {"wordnet-min5": "wordnet_hyper_min5", "wordnet": "wordnet_hyper", "news20": "news20_bydate"}
FOLDERS |= {name: name for name in ("letter", "usps", "satimage")}
SYNTHETIC = ("bench-1k", "lshtc-small")
NAMES = (*SYNTHETIC, *FOLDERS)


@dataclass(frozen=True)
class Problem:
    """Training and test rows; codes are 0 to K - 1, and -1 for a test class that no training row has."""

    name: str
    X: sp.csr_matrix
    y: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray


def load(name: str) -> Problem:
    """The problem of this name.

    Raises
    ------
    UnavailableError
        If its files are not at hand.
    """
    if name in SYNTHETIC:
        from manyclass.data import make_text_like

        return encode(name, *make_text_like(name, seed=0))

    from manyclass.data import load_svmlight

    X, y = load_svmlight(file_of(name, "train"))
    X_test, y_test = load_svmlight(file_of(name, "test"))
    return encode(name, X, y, X_test, y_test)


def encode(name: str, X, y, X_test, y_test) -> Problem:
    """A `Problem` from rows with any labels and, between the two parts, any number of columns."""
    features = max(X.shape[1], X_test.shape[1])
    X, X_test = (sp.csr_matrix((m.data, m.indices, m.indptr), (m.shape[0], features)) for m in (X, X_test))
    classes, codes = np.unique(y, return_inverse=True)
    position = np.clip(np.searchsorted(classes, y_test), 0, len(classes) - 1)
    test_codes = np.where(classes[position] == y_test, position, -1)
    return Problem(name, X, codes.astype(np.int64), X_test, test_codes.astype(np.int64))


def file_of(name: str, part: str) -> Path:
    """Compressed LIBSVM text of a problem's part, "train" or "test"."""
    folder = os.environ.get("MANYCLASS_DATA")
    if not folder:
        raise UnavailableError(f"{name} needs its files: set MANYCLASS_DATA to the folder that holds {FOLDERS[name]}")
    path = Path(folder) / FOLDERS[name] / f"{part}.svm.xz"
    if not path.exists():
        raise UnavailableError(
            f"{name} needs {FOLDERS[name]}/{part}.svm.xz in MANYCLASS_DATA, which has no such file"
        )
    return path


def decompress(name: str, part: str, folder: Path) -> Path:
    """Plain LIBSVM text of a problem's part, written to `folder`."""
    target = folder / f"{name}-{part}.svm"
    with lzma.open(file_of(name, part)) as source, target.open("wb") as text:
        shutil.copyfileobj(source, text)
    return target
