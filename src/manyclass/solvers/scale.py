"""Checks that penalties and rows neither overflow nor vanish in the dtype of the weights.

For weights no worse than 0, `1/2 |W|^2` is at most the loss of all rows at 0, `sum_i C_i loss(0)`. No score exceeds
`|x| |W|`, which bounds every loss, step and sum of a fit. If the dtype can hold this bound, nothing overflows.
"""

import numpy as np

from ..data import RowMatrix
from ..problems import Problem
from .solver import TrainingSet


def longest_row(problem: Problem, n_classes: int, total: float, largest: float, dtype: np.dtype) -> float:
    """Return the largest squared length of rows, with the constant feature, that these penalties allow in a dtype.

    `total` is the sum of the penalties of all rows, or an upper bound, and `largest` the largest one. Raises
    ValueError if they, or the factors of an elastic net, are too large or too small.
    """
    limits = np.finfo(dtype)
    most = float(limits.max)
    wider = ", or use float64" if dtype == np.float32 else ""
    tau = _check_elastic_net(problem, most**0.5, wider)
    # Penalties that the dtype cannot hold count as 0, so the largest one has to be well above them.
    least = float(limits.tiny / limits.eps**2)
    if largest < least:
        raise ValueError(
            f"the largest penalty C_i of a row is {largest:.3g}, too small for {np.dtype(dtype)}, which needs at "
            f"least {least:.3g}; raise C or the weights of the rows{wider}"
        )
    if total > most / 16:
        raise ValueError(
            f"the penalties C_i of the rows add up to {total:.3g}, too much for {np.dtype(dtype)}; lower C or the "
            f"weights of the rows{wider}"
        )
    # max(1, total) (1 + 2 |x| |W|)^2 <= most, with the bound on |W| from above
    reach = ((most / max(1.0, total)) ** 0.5 - 1) / 2
    squares = 2 * total * problem.loss_at_zero(n_classes) / tau  # |W|^2
    return min(most, most * tau, reach**2 / max(squares, 1 / most))


def _check_elastic_net(problem: Problem, most: float, wider: str) -> float:
    for name in ("lam", "tau"):
        value = problem.parameters.get(name, 1.0)
        least = 1 / most if name == "tau" else 0.0
        if not least <= value <= most:
            raise ValueError(f"{name} must be from {least:.3g} to {most:.3g}, got {value:.3g}{wider}")
    return problem.parameters.get("tau", 1.0)


def check_scale(problem: Problem, data: TrainingSet, dtype: np.dtype) -> None:
    """Raise ValueError for rows and penalties that overflow or vanish in the dtype of the weights."""
    total, largest = float(data.C.sum()), float(data.C.max())
    most = longest_row(problem, data.n_classes, total, largest, dtype)
    square = data.constant * data.constant
    if data.X.longest + square <= most:
        return
    wider = ", or use float64" if dtype == np.float32 else ""
    if square > data.X.longest:
        what, remedy = f"a constant feature (intercept_scaling) of {data.constant:g}", "lower it"
    else:
        what, remedy = f"rows of length {data.X.longest**0.5:.3g}", "scale the features, for example to [-1, 1]"
    raise ValueError(
        f"{what} and penalties C_i that add up to {total:.3g} are together too large for {np.dtype(dtype)}: with "
        f"these penalties rows can have a length of at most {most**0.5:.3g}; {remedy}, or lower C{wider}"
    )


# For comparison, rows of text have length 1, or a few units if they are counts.
LONG, APART = 10.0, 100.0


def slow_because(X: RowMatrix) -> str:
    """Say how the scale of the rows slows down training, and what to change; "" if they are well scaled."""
    if X.dense is not None:
        squares = np.einsum("ij,ij->j", X.dense, X.dense, dtype=np.float64)
        counts = np.count_nonzero(X.dense, axis=0)
    else:
        assert X.values is not None and X.indices is not None
        present, features = np.unique(X.indices, return_inverse=True)
        squares = np.bincount(features, X.values.astype(np.float64) ** 2, present.size)
        counts = np.bincount(features, minlength=present.size)
    length = (squares.sum() / max(1, X.n_rows)) ** 0.5
    sizes = np.sqrt(squares[counts > 0] / counts[counts > 0])
    causes = []
    if length > LONG:
        causes.append(f"the rows are long (typical length {length:.3g})")
    if sizes.size and sizes.max() > APART * sizes.min():
        causes.append(
            f"the features are on different scales (typical values from {sizes.min():.2g} to {sizes.max():.2g})"
        )
    if not causes:
        return ""
    return f"Training is slow because {' and '.join(causes)}: scale the features, for example each to [-1, 1]"
