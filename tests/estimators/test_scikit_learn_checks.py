"""scikit-learn's own estimator checks, for every loss with its default parameters."""

import pytest
from losses import ESTIMATORS, make
from sklearn.utils.estimator_checks import parametrize_with_checks

from manyclass import DiSMEC

REASON = (
    "compares the scores of two fits to seven digits, which a fit to the default gap does not promise; "
    "that weights equal repetition is tested at a tiny gap in tests/common/test_invariance.py"
)


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": REASON,
        "check_sample_weight_equivalence_on_sparse_data": REASON,
    }


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([*(make(loss) for loss in ESTIMATORS), DiSMEC()], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
