"""Labels of any kind in any container: arrays and table columns behave like lists."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from losses import make, text_like
from sklearn.exceptions import DataConversionWarning

from manyclass import CalibratedClassifier, MulticlassSVC, select_C

KINDS = {
    "strings": ["red", "green", "blue"],
    "integers": [7, -3, 5],
    "truth values and others": [True, "yes", (1, 2)],
    "mixed": ["red", 3, 2.5],
    "tuples": [("a", 1), ("a", 2), ("b", None)],
    "bytes": [b"x", b"yy", b"z"],
    "fractions": [0.5, 1.5, 2.0],
    "huge integers": [2**70, 1, -5],
    "dates": [date(2024, 1, 1), date(2023, 1, 1), date(2022, 1, 1)],
    "moments": [datetime(2024, 1, 1), datetime(2023, 1, 1, 12, 30), datetime(2022, 1, 1)],
}


class Column:
    """A column as in Polars: not a sequence that numpy or pandas know, but convertible to an array."""

    def __init__(self, values):
        self._values = np.fromiter(values, object, len(values))

    def __array__(self, dtype=None, copy=None):
        return self._values.astype(dtype or object)

    def __len__(self):
        return len(self._values)


CONTAINERS = {
    "tuple": tuple,
    "objects": lambda y: np.fromiter(y, object, len(y)),
    "series": pd.Series,
    "series of objects": lambda y: pd.Series(np.fromiter(y, object, len(y)), index=range(100, 100 + len(y))),
    "category": lambda y: pd.Series(pd.Categorical(np.fromiter(y, object, len(y)))),
    "polars": Column,
}


def rows(labels):
    X, codes = text_like(60, 30, 3, seed=2)
    return X, [labels[code] for code in codes]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_container_does_not_matter(kind, container):
    X, y = rows(KINDS[kind])
    expected = make("cs").fit(X, y)
    given = CONTAINERS[container](y)
    fitted = make("cs").fit(X, given)
    assert fitted.classes_.tolist() == expected.classes_.tolist()
    assert fitted.classes_.dtype.kind == expected.classes_.dtype.kind
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    assert fitted.predict(X).tolist() == expected.predict(X).tolist()
    right = np.mean([a == b for a, b in zip(expected.predict(X).tolist(), y, strict=True)])
    assert fitted.score(X, given) == expected.score(X, given) == fitted.score(X, y) == right > 0.5


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["red", "green", "blue"], "string"),
        (["red", "green", "blue"], "string[pyarrow]"),
        ([7, -3, 5], "Int64"),
        ([7, -3, 5], "int64[pyarrow]"),
        ([7, -3, 5], "category"),
    ],
)
def test_dtypes_of_pandas(values, dtype):
    X, y = rows(values)
    fitted, expected = make("cs").fit(X, pd.Series(y, dtype=dtype)), make("cs").fit(X, y)
    assert fitted.classes_.dtype == expected.classes_.dtype and fitted.classes_.tolist() == expected.classes_.tolist()
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)


@pytest.mark.parametrize("kind", ["mixed", "moments", "tuples"])
def test_folds_and_weights_of_classes(kind):
    X, y = rows(KINDS[kind])
    y = pd.Series(np.fromiter(y, object, len(y)))
    estimator = MulticlassSVC("cs", class_weight={KINDS[kind][1]: 3.0})
    calibrated = CalibratedClassifier(estimator).fit(X, y)
    assert calibrated.score(X, y) == calibrated.estimator_.score(X, y) > 0.5
    assert select_C(estimator, X, y, [1.0]).accuracies.mean() > 0.4
    weighted = MulticlassSVC("cs").fit(X, y, [3.0 if label == KINDS[kind][1] else 1.0 for label in y])
    np.testing.assert_array_equal(calibrated.estimator_.coef_, weighted.coef_)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("container", [list, *CONTAINERS.values()])
def test_missing_labels_are_refused_with_their_row(container, missing):
    X, y = rows(["red", "green", "blue"])
    y[4] = y[9] = missing
    for fit in (make("cs").fit, CalibratedClassifier(make("cs")).fit, lambda X, y: select_C(make("cs"), X, y, [1.0])):
        with pytest.raises(ValueError, match=r"the label of row 4 is .* missing label \(2 rows in all\)"):
            fit(X, container(y))


def test_a_label_that_was_never_seen_counts_as_wrong():
    X, y = rows(["red", "green", "blue"])
    fitted = make("cs").fit(X, y)
    assert fitted.score(X, [3] * 60) == 0
    assert fitted.score(X[:2], [fitted.predict(X[:1])[0], ()]) == 0.5
    with pytest.raises(ValueError, match="X has 60 rows, but y has 2 labels"):
        fitted.score(X, ["red", "red"])


@pytest.mark.parametrize("container", [list, np.array, pd.Series])
def test_measurements_are_refused(container):
    X, _ = rows([1, 2, 3])
    y = np.random.default_rng(0).standard_normal(60)
    with pytest.raises(ValueError, match=r"Unknown label type: continuous\. y has the number .* in row 0"):
        make("cs").fit(X, container(y.tolist()))


def test_a_column_is_a_vector_with_a_warning():
    X, y = rows(["red", "green", "blue"])
    with pytest.warns(DataConversionWarning, match="column-vector"):
        fitted = make("cs").fit(X, pd.DataFrame({"label": y}))
    np.testing.assert_array_equal(fitted.coef_, make("cs").fit(X, y).coef_)
    for odd in ("red", 5, np.zeros((60, 2, 2))):
        with pytest.raises(ValueError, match="y should be a 1d array"):
            make("cs").fit(X, odd)
