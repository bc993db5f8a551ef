"""Two classes as scikit-learn has them: one column, positive for the second class.

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
TOGETHER = "together"


def one_column(columns: Any, trained: str) -> Any:
    """Make one column, of shape (n, 1), from those of a model: weights by features, intercepts, or scores of rows."""
    if trained == PAIRS:
        return -columns
    factor = columns.dtype.type(0.5 if trained == REST else 1.0)
    if sp.issparse(columns):
        return columns @ sp.csr_matrix(np.array([[-factor], [factor]]))
    first, second = columns[:, :1], columns[:, 1:]
    # A class that was never trained scores minus infinity; where both were not, the first is predicted.
    return np.subtract(second, first, out=second.copy(), where=np.isfinite(second)) * factor


def model_columns(column: Any, trained: str) -> Any:
    """Undo `one_column`: the columns of a model, which score rows alike."""
    if trained == PAIRS:
        return -column
    factor = column.dtype.type(1.0 if trained == REST else 0.5)
    if sp.issparse(column):
        return sp.csr_matrix(column @ sp.csr_matrix(np.array([[-factor, factor]])))
    return np.hstack([-factor * column, factor * column])
