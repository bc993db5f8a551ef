"""The estimator that trains a loss, by the loss's name."""

from typing import Any

from .linear_classifier import LinearClassifier
from .logistic import MaxEnt, OneVsOneLogistic, OneVsRestLogistic
from .pd_sparse import PDSparse
from .ppd_sparse import PPDSparse
from .svc import MulticlassSVC, OneVsOneSVC, OneVsRestSVC

#: All losses, by the names that `manyclass.problems.PROBLEMS` has.
ESTIMATORS: dict[str, type[LinearClassifier]] = {
    "ww": MulticlassSVC,
    "cs": MulticlassSVC,
    "llw": MulticlassSVC,
    "mmr": MulticlassSVC,
    "rm": MulticlassSVC,
    "adm": MulticlassSVC,
    "atm": MulticlassSVC,
    "ats": MulticlassSVC,
    "maxent": MaxEnt,
    "max_margin": PDSparse,
    "hinge": OneVsRestSVC,
    "squared_hinge": OneVsRestSVC,
    "logistic": OneVsRestLogistic,
    "ovo_hinge": OneVsOneSVC,
    "ovo_squared_hinge": OneVsOneSVC,
    "ovo_logistic": OneVsOneLogistic,
    "ppd_hinge": PPDSparse,
    "ppd_squared_hinge": PPDSparse,
}


def estimator_for(loss: str, **parameters: Any) -> LinearClassifier:
    """Make an unfitted estimator.

    Parameters
    ----------
    loss : str
        A key of `ESTIMATORS`.
    **parameters
        Of the estimator.

    Returns
    -------
    LinearClassifier
    """
    if loss not in ESTIMATORS:
        raise ValueError(f"there is no loss {loss!r}; there are {', '.join(ESTIMATORS)}")
    kind: Any = ESTIMATORS[loss]
    if hasattr(kind, "loss"):  # it has no other
        return kind(**parameters)
    return kind(loss.removeprefix("ovo_").removeprefix("ppd_"), **parameters)
