"""Tables of papers, recomputed on the available data sets and shown with the papers' figures.

A reproduction takes a function that reports progress, and a number of threads (None for all cores).
"""

from .alber_b1 import alber_b1
from .reproduction import Reproduction
from .thesis_5 import thesis_5

REPRODUCTIONS = {"alber-b1": alber_b1, "thesis-5": thesis_5}
