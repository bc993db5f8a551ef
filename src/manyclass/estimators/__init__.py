"""The scikit-learn style estimators."""

from .by_loss import ESTIMATORS, estimator_for
from .calibration import CalibratedClassifier
from .dismec import DiSMEC
from .label_batches import UnfinishedFitError
from .linear_classifier import LinearClassifier
from .logistic import MaxEnt, OneVsOneLogistic, OneVsRestLogistic
from .pd_sparse import PDSparse
from .ppd_sparse import PPDSparse
from .selection import EdgeOfGridWarning, Selection, select_C
from .svc import MulticlassSVC, OneVsOneSVC, OneVsRestSVC
