"""Look up the estimator that trains a given loss."""

from dataclasses import fields
from typing import Any

from ..problems import LOSSES
from .linear_classifier import LinearClassifier
from .logistic import MaxEnt, OneVsOneLogistic, OneVsRestLogistic
from .pd_sparse import PDSparse
from .ppd_sparse import PPDSparse
from .svc import MulticlassSVC, OneVsOneSVC, OneVsRestSVC

_BY_NAME: dict[str, type[LinearClassifier]] = {
    kind.__name__: kind
    for kind in (
        MulticlassSVC,
        OneVsRestSVC,
        OneVsRestLogistic,
        OneVsOneSVC,
        OneVsOneLogistic,
        MaxEnt,
        PPDSparse,
        PDSparse,
    )
}

#: The estimator class for each loss name.
ESTIMATORS = {name: _BY_NAME[loss.estimator] for name, loss in LOSSES.items()}


def estimator_for(loss: str, **parameters: Any) -> LinearClassifier:
    """Create an unfitted estimator for a loss in `ESTIMATORS`."""
    if loss not in ESTIMATORS:
        raise ValueError(f"unknown loss {loss!r}; choose one of {', '.join(ESTIMATORS)}")
    kind = ESTIMATORS[loss]
    if "loss" in (one.name for one in fields(kind)):
        parameters["loss"] = LOSSES[loss].parameter
    return kind(**parameters)
