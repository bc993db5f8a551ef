"""The measured problems, as sparse rows with class codes or sets of labels.

    bench-1k        synthetic text: n = 5,000, K = 1,000, d = 50,000, 61 non-zeros per row
    lshtc-small     synthetic text in the shape of LSHTC-small: n = 4,463, K = 1,139, d = 51,033, 149 per row
    text-12m        synthetic text: n = 200,000, K = 50, d = 100,000, 60 non-zeros per row
    text-2m, lshtc-2012, text-700m    synthetic text, generated part by part as it is read: 2 million non-zeros; the
                    shape of LSHTC-2012, 57 million; 8.3 GB at 12 bytes per non-zero, n = 7,000,000
    wordnet-min5    WordNet glosses, class = direct hypernym with five members or more: K = 4,796, d = 38,523
    wordnet         the same with every hypernym: K = 12,582
    news20          20 newsgroups, by date: K = 20
    letter, usps, satimage    small and dense: K = 26, 10, 6
    clinc150, cve-cwe, reuters    text, the rows with exactly one label: K = 150, 486, 115
    bibtex, delicious, corel5k    sets of labels: K = 159, 983, 374; rows of unit length, like all other texts
    labels-2k to labels-200k      synthetic text, n = 500,000, d = 200,000, 40 non-zeros per row, K in the name
    five-rows-1k to five-rows-100k    the same with five rows per class

The others are read from the folder that the environment variable MANYCLASS_DATA names, which holds
``wordnet_hyper_min5/``, ``wordnet_hyper/``, ``news20_bydate/``, ``letter/``, ``usps/`` and ``satimage/`` with
train.svm.xz and test.svm.xz in each, and ``bibtex/``, ``delicious/``, ``corel5k/``, ``clinc150/``, ``cve_cwe/`` and
``reuters21578/`` with train.txt.xz and test.txt.xz in the format of the extreme-classification repository.
"""

from __future__ import annotations

import lzma
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks.environments import UnavailableError
from benchmarks.protocol import Labels, label_sets

FOLDERS = {"wordnet-min5": "wordnet_hyper_min5", "wordnet": "wordnet_hyper", "news20": "news20_bydate"}
FOLDERS |= {name: name for name in ("letter", "usps", "satimage")}
# Rows with sets of labels.
SETS = ("bibtex", "delicious", "corel5k")
# The same format, of which only rows with one label are used.
SINGLE = {"clinc150": "clinc150", "cve-cwe": "cve_cwe", "reuters": "reuters21578"}
# Numbers of classes, by the last part of the name.
FIXED_ROWS = {"2k": 2_000, "6k": 6_000, "20k": 20_000, "60k": 60_000, "200k": 200_000}
FIVE_ROWS = {"1k": 1_000, "3k": 3_000, "10k": 10_000, "30k": 30_000, "100k": 100_000}
# Arguments of `make_text_like`, and of `iter_text_like`.
SYNTHETIC: dict[str, dict[str, Any]] = {
    "bench-1k": {"preset": "bench-1k"},
    "lshtc-small": {"preset": "lshtc-small"},
    "text-12m": {"preset": "bench-1k", "n": 200_000, "n_test": 20_000, "K": 50, "d": 100_000, "nnz": 60},
}
for number, K in FIXED_ROWS.items():
    shape = {"n": 500_000, "n_test": 10_000, "K": K, "d": 200_000, "nnz": 40}
    SYNTHETIC[f"labels-{number}"] = {"preset": "bench-1k"} | shape
for number, K in FIVE_ROWS.items():
    shape = {"n": 5 * K, "n_test": 10_000, "K": K, "d": 200_000, "nnz": 40}
    SYNTHETIC[f"five-rows-{number}"] = {"preset": "bench-1k"} | shape
STREAMED: dict[str, dict[str, Any]] = {
    "text-2m": {"preset": "bench-1k", "n": 20_000, "n_test": 0, "K": 20, "d": 50_000, "nnz": 100},
    "lshtc-2012": {"preset": "lshtc-2012"},
    "text-700m": {"preset": "bench-1k", "n": 7_000_000, "n_test": 0, "K": 20, "d": 100_000, "nnz": 100},
}
NAMES = (*SYNTHETIC, *STREAMED, *FOLDERS, *SETS, *SINGLE)


@dataclass(frozen=True)
class Problem:
    """Training and test rows. Codes are 0 to K - 1, or -1 for a test class that no training row has.

    If rows have sets of labels, `y` and `y_test` are csr_matrices of ones with K columns.
    """

    name: str
    X: sp.csr_matrix
    y: Labels
    X_test: sp.csr_matrix
    y_test: Labels

    @property
    def K(self) -> int:
        """Number of classes or labels."""
        return self.y.shape[1] if sp.issparse(self.y) else int(self.y.max()) + 1

    def test_sets(self) -> sp.csr_matrix:
        """Return the label sets of the test rows, with an empty last column, to which the code -1 refers."""
        return label_sets(self.y_test, self.K + 1)


def load(name: str) -> Problem:
    """Return the problem of this name.

    Raises
    ------
    UnavailableError
        If its files are missing.
    """
    if name in SYNTHETIC:
        from manyclass.data import make_text_like

        return encode(name, *make_text_like(**SYNTHETIC[name], seed=0))

    from manyclass.data import load_svmlight, load_xmc

    if name in SETS:
        (X, Y), (X_test, Y_test) = (load_xmc(file_of(name, part)) for part in ("train", "test"))
        return Problem(name, normalize(X), Y, normalize(X_test), Y_test)
    if name in SINGLE:
        return encode(name, *(array for part in ("train", "test") for array in _with_one_label(file_of(name, part))))
    X, y = load_svmlight(file_of(name, "train"))
    X_test, y_test = load_svmlight(file_of(name, "test"))
    return encode(name, X, y, X_test, y_test)


def _with_one_label(path: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    from manyclass.data import load_xmc

    X, Y = load_xmc(path)
    single = np.flatnonzero(np.diff(Y.indptr) == 1)
    return X[single], Y[single].indices


def stream(name: str) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    """Yield the training rows of a problem that does not fit in memory, one part at a time."""
    from manyclass.data import iter_text_like

    return iter_text_like(**STREAMED[name], seed=0)


def encode(name: str, X, y, X_test, y_test) -> Problem:
    """Return a `Problem`. Labels may be of any type, and the two parts may differ in their number of columns."""
    features = max(X.shape[1], X_test.shape[1])
    X, X_test = (sp.csr_matrix((m.data, m.indices, m.indptr), (m.shape[0], features)) for m in (X, X_test))
    classes, codes = np.unique(y, return_inverse=True)
    position = np.clip(np.searchsorted(classes, y_test), 0, len(classes) - 1)
    test_codes = np.where(classes[position] == y_test, position, -1)
    return Problem(name, X, codes.astype(np.int64), X_test, test_codes.astype(np.int64))


def file_of(name: str, part: str) -> Path:
    """Return the path of a part of a problem, "train" or "test"."""
    folder = os.environ.get("MANYCLASS_DATA")
    own = (FOLDERS | SINGLE).get(name, name)
    if not folder:
        raise UnavailableError(f"{name} needs its files: set MANYCLASS_DATA to the folder that holds {own}")
    file = f"{part}.txt.xz" if name in (*SETS, *SINGLE) else f"{part}.svm.xz"
    path = Path(folder) / own / file
    if not path.exists():
        raise UnavailableError(f"{name} needs {own}/{file} in MANYCLASS_DATA, which has no such file")
    return path


def decompress(name: str, part: str, folder: Path) -> Path:
    """Write a part of a problem to `folder` as plain LIBSVM text."""
    target = folder / f"{name}-{part}.svm"
    with lzma.open(file_of(name, part)) as source, target.open("wb") as text:
        shutil.copyfileobj(source, text)
    return target
