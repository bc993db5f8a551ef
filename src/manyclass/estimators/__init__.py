"""What people touch from Python: thin scikit-learn classes."""

from .logistic import MaxEnt, OneVsRestLogistic
from .svc import MulticlassSVC, OneVsRestSVC

__all__ = ["MaxEnt", "MulticlassSVC", "OneVsRestLogistic", "OneVsRestSVC"]
