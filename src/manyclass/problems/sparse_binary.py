"""One binary problem per label, with an elastic net (PPDSparse): hinge or squared hinge.

`lam |w|_1 + tau/2 |w|^2 + sum_i C_i loss(t_i w.x_i)` for each label, with `t = 1` for its rows and -1 for all others.
Dual variables are `alpha >= 0`, and at most `C_i` for the hinge.
"""

import numpy as np

from .binary import Binary, Hinge, SquaredHinge
from .elastic_net import ElasticNet
from .registry import offered


class SparseBinary(ElasticNet, Binary):
    """What both losses have in common.

    `draws` is the number of features, drawn by the size of their weights, that a search for rows uses; 0 to
    search by all. The optimum does not depend on it.
    """

    kernel = "sparse_binary"
    parameter_names = ("lam", "tau", "draws")

    def __init__(self, lam: float = 0.01, tau: float = 1.0, *, constant: bool = False, draws: int = 0):
        Binary.__init__(self)
        ElasticNet.__init__(self, lam, tau, constant=constant)
        self.name, self.draws = f"ppd_{self.loss}", draws


@offered("PPDSparse hinge", "PPDSparse", takes_sets=True, from_store=())
class SparseHinge(SparseBinary, Hinge):
    """`max(0, 1 - m)`."""

    def _best(self, margin: np.ndarray, alpha: np.ndarray, k: float, C: float) -> np.ndarray:
        return super()._best(margin, alpha, k / self.tau, C)


@offered("PPDSparse squared hinge", "PPDSparse", takes_sets=True, from_store=())
class SparseSquaredHinge(SparseBinary, SquaredHinge):
    """`1/2 max(0, 1 - m)^2`: half of `SquaredHinge`, as in PPDSparse."""

    def loss_at(self, margin: np.ndarray) -> np.ndarray:
        return super().loss_at(margin) / 2

    def dual_gain(self, alpha: np.ndarray, y: np.ndarray, C: np.ndarray) -> float:
        return super().dual_gain(alpha, y, C / 2)

    def _violation(self, margin: np.ndarray, alpha: np.ndarray, C: np.ndarray) -> np.ndarray:
        return super()._violation(margin, alpha, C / 2)

    def _best(self, margin: np.ndarray, alpha: np.ndarray, k: float, C: float) -> np.ndarray:
        return super()._best(margin, alpha, k / self.tau, C / 2)
