"""Two classes in scikit-learn's form: one column, positive for the second class.

| trained | columns of the model | one column |
|---|---|---|
| one-vs-rest | `w_0`, `w_1`, each against the other | `(w_1 - w_0) / 2`, which is `w_1` where `w_0 = -w_1` |
| all classes together | `w_0`, `w_1` | `w_1 - w_0` |
| one-vs-one | one, positive for the first class | its negative |
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

PAIRS = "one-vs-one"
REST = "one-vs-rest"
COUPLED = "coupled"


def one_column(columns: Any, trained: str) -> Any:
    """Merge the columns of a model (weights, intercepts or scores) into one column of shape (n, 1)."""
    if trained == PAIRS:
        return -columns
    factor = columns.dtype.type(0.5 if trained == REST else 1.0)
    if sp.issparse(columns):
        return columns @ sp.csr_matrix(np.array([[-factor], [factor]]))
    first, second = columns[:, :1], columns[:, 1:]
    # An untrained class scores minus infinity; if neither was trained, the first is predicted.
    return np.subtract(second, first, out=second.copy(), where=np.isfinite(second)) * factor


def model_columns(column: Any, trained: str) -> Any:
    """Invert `one_column`: return columns of a model that give the same predictions."""
    if trained == PAIRS:
        return -column
    factor = column.dtype.type(1.0 if trained == REST else 0.5)
    if sp.issparse(column):
        return sp.csr_matrix(column @ sp.csr_matrix(np.array([[-factor, factor]])))
    return np.hstack([-factor * column, factor * column])
