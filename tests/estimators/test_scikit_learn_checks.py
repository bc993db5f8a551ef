"""scikit-learn's own suite of estimator checks."""

import pytest
from losses import ESTIMATORS, make
from sklearn.utils.estimator_checks import parametrize_with_checks

# The suite compares weights = repetition to seven digits, so the optimum has to be known that well.
EXACT = {"dtype": "float64", "tol": 1e-9, "max_iter": 1_000_000}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([make(loss, **EXACT) for loss in ESTIMATORS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
