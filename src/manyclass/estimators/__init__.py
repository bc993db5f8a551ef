"""What people touch from Python: thin scikit-learn classes."""

from .svc import MulticlassSVC, OneVsRestSVC

__all__ = ["MulticlassSVC", "OneVsRestSVC"]
