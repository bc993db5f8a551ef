"""Tables of the papers, computed anew on the data sets that are at hand, with the papers' figures beside them."""

from .alber_b1 import alber_b1
from .reproduction import Reproduction
from .thesis_5 import thesis_5

REPRODUCTIONS = {"alber-b1": alber_b1, "thesis-5": thesis_5}

__all__ = ["REPRODUCTIONS", "Reproduction"]
