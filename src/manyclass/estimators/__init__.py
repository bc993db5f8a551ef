"""What people touch from Python: thin scikit-learn classes."""

from .by_loss import ESTIMATORS, estimator_for
from .calibration import CalibratedClassifier
from .linear_classifier import LinearClassifier
from .logistic import MaxEnt, OneVsOneLogistic, OneVsRestLogistic
from .ppd_sparse import PPDSparse
from .pd_sparse import PDSparse
from .selection import Selection, select_C
from .svc import MulticlassSVC, OneVsOneSVC, OneVsRestSVC

__all__ = [
    "ESTIMATORS",
    "CalibratedClassifier",
    "LinearClassifier",
    "MaxEnt",
    "MulticlassSVC",
    "OneVsOneLogistic",
    "OneVsOneSVC",
    "OneVsRestLogistic",
    "OneVsRestSVC",
    "PPDSparse",
    "PDSparse",
    "Selection",
    "estimator_for",
    "select_C",
]
