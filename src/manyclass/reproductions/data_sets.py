"""The data sets of the papers, in the folder named by the environment variable MANYCLASS_DATA."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler, normalize

from ..data import encode_labels, load_svmlight

VARIABLE = "MANYCLASS_DATA"


@dataclass(frozen=True)
class DataSet:
    """Training and test rows with the codes of their classes; -1 marks test classes without training rows."""

    X: sp.csr_matrix
    y: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray

    @property
    def n_classes(self) -> int:
        """Number of classes with training rows."""
        return int(self.y.max()) + 1


def folder(name: str) -> Path | None:
    """Return the folder of a data set, or None if it is not available."""
    root = os.environ.get(VARIABLE)
    if root is None:
        raise ValueError(f"set {VARIABLE} to a folder with one subfolder per data set (iris/train.svm.xz, ...)")
    path = Path(root) / name
    return path if (path / "train.svm.xz").is_file() else None


def load(path: Path, *, test_share: float, own_split: bool = False) -> DataSet:
    """Read a data set; without test rows, or with `own_split`, hold out a share of the training rows at random."""
    X, labels = load_svmlight(path / "train.svm.xz")
    if (path / "test.svm.xz").is_file() and not own_split:
        X_test, test_labels = load_svmlight(path / "test.svm.xz", n_features=None)
        width = max(X.shape[1], X_test.shape[1])
        X.resize(X.shape[0], width)
        X_test.resize(X_test.shape[0], width)
    else:
        order = np.random.default_rng(0).permutation(X.shape[0])
        held_out, learn = np.split(order, [round(test_share * len(order))])
        X, X_test, labels, test_labels = X[learn], X[held_out], labels[learn], labels[held_out]
    classes, y = encode_labels(labels)
    code = {label: c for c, label in enumerate(classes.tolist())}
    y_test = np.array([code.get(label, -1) for label in np.asarray(test_labels).tolist()])
    return DataSet(X.tocsr(), y, X_test.tocsr(), y_test)


def scale(data: DataSet, how: str) -> DataSet:
    """Scale rows to "unit norm" or features to "unit variance" without centering them; "none" does nothing."""
    if how == "none":
        return data
    if how == "unit norm":
        return DataSet(normalize(data.X), data.y, normalize(data.X_test), data.y_test)
    scaler = StandardScaler(with_mean=False).fit(data.X)
    return DataSet(scaler.transform(data.X), data.y, scaler.transform(data.X_test), data.y_test)
