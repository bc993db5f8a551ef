"""A pytest plugin with our estimators under scikit-learn's names and with its parameters.

`run_sklearn_tests.py` loads it before scikit-learn's own test files, which then import these classes in place of
LinearSVC, LogisticRegression, OneVsRestClassifier, OneVsOneClassifier and CalibratedClassifierCV. A test that asks
for something that we do not have, or that trains none of these classes, counts as not applicable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import pytest
import sklearn.calibration
import sklearn.linear_model
import sklearn.multiclass
import sklearn.svm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import manyclass

OriginalRest = sklearn.multiclass.OneVsRestClassifier
OriginalOne = sklearn.multiclass.OneVsOneClassifier
OriginalCalibrated = sklearn.calibration.CalibratedClassifierCV

NOT_APPLICABLE = "not applicable: "
UNTOUCHED = "trains none of the classes that are replaced"

# Parameters with the same name and meaning; n_jobs=None means one thread here.
SHARED = ("C", "tol", "fit_intercept", "intercept_scaling", "class_weight", "random_state", "verbose")
SETTINGS: dict[str, Any] = {"stop": "kkt", "dtype": "float64", "n_jobs": 1}

in_use: set[str] = set()  # the stand-ins that the running test has called


def not_applicable(reason: str) -> NoReturn:
    """Skip a test of something that manyclass does not offer."""
    in_use.add(reason)
    pytest.skip(NOT_APPLICABLE + reason)


def calling_itself(name: str, *kinds: type) -> Iterator[type]:
    """Yield our estimators under the name, in messages, of the class that they stand in for."""
    for kind in kinds:
        yield type(name, (kind,), {"__module__": __name__, "__qualname__": f"{name}By{kind.__name__}"})


LinearSVCByOneVsRestSVC, LinearSVCByMulticlassSVC = calling_itself(
    "LinearSVC", manyclass.OneVsRestSVC, manyclass.MulticlassSVC
)
LogisticRegressionByOneVsRestLogistic, LogisticRegressionByMaxEnt = calling_itself(
    "LogisticRegression", manyclass.OneVsRestLogistic, manyclass.MaxEnt
)


class StandIn(ClassifierMixin, BaseEstimator):
    """Takes scikit-learn's parameters; `fit` builds our estimator from them, which does everything else."""

    def machine(self, X: Any, y: Any) -> Any:
        """Return our unfitted estimator for these rows."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        in_use.add(type(self).__name__)
        made = self.machine(X, y)
        if getattr(self, "warm_start", False) and type(self.__dict__.get("machine_")) is type(made):
            made = self.machine_.set_params(**made.get_params())
        self.machine_ = made.fit(X, y, sample_weight)
        return self

    def _ask(self, method: str, *arguments: Any) -> Any:
        in_use.add(type(self).__name__)
        check_is_fitted(self)
        return getattr(self.machine_, method)(*arguments)

    def predict(self, X: Any) -> Any:
        return self._ask("predict", X)

    def decision_function(self, X: Any) -> Any:
        return self._ask("decision_function", X)

    def sparsify(self) -> Any:
        self._ask("sparsify")
        return self

    def densify(self) -> Any:
        self._ask("densify")
        return self

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and "machine_" in self.__dict__:
            return getattr(self.machine_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("coef_", "intercept_"):
            setattr(self.machine_, name, value)
        else:
            super().__setattr__(name, value)

    def __sklearn_is_fitted__(self) -> bool:
        return "machine_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearSVC(StandIn):
    """OneVsRestSVC, or MulticlassSVC("cs")."""

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
    ):
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    def _settings(self) -> dict[str, Any]:
        if self.penalty != "l2":
            not_applicable(f"penalty={self.penalty!r}")
        if np.isposinf(self.C):
            not_applicable("C=inf")
        return {name: getattr(self, name) for name in (*SHARED, "max_iter")} | SETTINGS

    def machine(self, X: Any, y: Any) -> Any:
        if self.multi_class == "crammer_singer":
            return LinearSVCByMulticlassSVC("cs", **self._settings())
        if self.dual is False and self.loss == "hinge":
            not_applicable("loss='hinge' with dual=False")
        return LinearSVCByOneVsRestSVC(
            self.loss, solver="newton" if self.dual is False else "auto", **self._settings()
        )

    def pairs(self) -> Any:
        return manyclass.OneVsOneSVC(self.loss, **self._settings())

    def rest(self) -> Any:
        return manyclass.OneVsRestSVC(self.loss, **self._settings())


class LogisticRegression(StandIn):
    """OneVsRestLogistic for two classes, which is the same problem, and MaxEnt for more."""

    def __init__(
        self,
        penalty="deprecated",
        *,
        C=1.0,
        l1_ratio=0.0,
        dual=False,
        tol=1e-4,
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        random_state=None,
        solver="lbfgs",
        max_iter=100,
        verbose=0,
        warm_start=False,
        n_jobs=None,
    ):
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def _settings(self, X: Any = None) -> dict[str, Any]:
        if self.penalty not in ("deprecated", "l2"):
            not_applicable(f"penalty={self.penalty!r}")
        if self.l1_ratio:
            not_applicable("l1_ratio")
        if np.isposinf(self.C):
            not_applicable("C=inf")
        if self.max_iter == 0:
            not_applicable("max_iter=0")
        # An iteration of scikit-learn takes several passes over the rows.
        other = {"max_iter": min(100 * self.max_iter, 20_000), "n_jobs": self.n_jobs or 1}
        if getattr(X, "dtype", None) == np.float32 and self.solver != "liblinear":
            other["dtype"] = "float32"
        return {name: getattr(self, name) for name in (*SHARED, "warm_start")} | SETTINGS | other

    def machine(self, X: Any, y: Any) -> Any:
        if len(np.unique(np.asarray(y, dtype=str))) > 2:
            if self.solver == "liblinear":
                not_applicable("more than two classes with solver='liblinear'")
            return LogisticRegressionByMaxEnt(**self._settings(X))
        return LogisticRegressionByOneVsRestLogistic(solver="dual" if self.dual else "newton", **self._settings(X))

    def pairs(self) -> Any:
        return manyclass.OneVsOneLogistic(**self._settings())

    def rest(self) -> Any:
        return manyclass.OneVsRestLogistic(**self._settings())

    def predict_proba(self, X: Any) -> Any:
        return self._ask("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        return self._ask("predict_log_proba", X)


class Part:
    """One binary classifier, for tests that inspect them one by one."""

    def __init__(self, estimator: StandIn, coef: np.ndarray, intercept: float):
        self.__dict__ |= estimator.get_params()
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])

    def predict(self, X: Any) -> np.ndarray:
        return (X @ self.coef_[0] + self.intercept_ > 0).astype(int)


def parts_of(estimator: StandIn, machine: Any, sign: int = 1) -> list[Part]:
    """Return the binary classifiers of a fit; with `sign=-1`, the second class is the positive one."""
    coef, intercept = machine.coef_, machine.intercept_
    return [Part(estimator, sign * w, sign * b) for w, b in zip(coef, intercept, strict=True)]


def _ours(meta: Any) -> bool:
    return isinstance(meta.estimator, LinearSVC | LogisticRegression)


class ByMachine:
    """Predictions of our trained estimator or, if there is none, of the next class in the MRO."""

    def predict(self, X: Any) -> Any:
        return self.machine_.predict(X) if hasattr(self, "machine_") else super().predict(X)

    def decision_function(self, X: Any) -> Any:
        return self.machine_.decision_function(X) if hasattr(self, "machine_") else super().decision_function(X)


class OneVsRestClassifier(ByMachine, OriginalRest):
    """OneVsRestSVC or OneVsRestLogistic, if the given estimator has such a counterpart."""

    def fit(self, X: Any, y: Any, **more: Any) -> Any:
        if not _ours(self):
            return super().fit(X, y, **more)
        in_use.add("OneVsRestClassifier")
        self.machine_ = self.estimator.rest().fit(X, y, **more)
        self.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(y)
        self.classes_ = self.label_binarizer_.classes_
        self.estimators_ = parts_of(self.estimator, self.machine_)
        self.n_features_in_ = self.machine_.n_features_in_
        return self

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        return self.machine_.predict_proba(X) if hasattr(self, "machine_") else super().predict_proba(X)


class OneVsOneClassifier(ByMachine, OriginalOne):
    """OneVsOneSVC or OneVsOneLogistic, if the given estimator has such a counterpart."""

    def fit(self, X: Any, y: Any, **more: Any) -> Any:
        if not _ours(self):
            return super().fit(X, y, **more)
        in_use.add("OneVsOneClassifier")
        self.machine_ = self.estimator.pairs().fit(X, y, **more)
        self.classes_, self.n_features_in_ = self.machine_.classes_, self.machine_.n_features_in_
        self.estimators_ = parts_of(self.estimator, self.machine_, sign=1 if len(self.classes_) == 2 else -1)
        return self


class CalibratedClassifierCV(OriginalCalibrated):
    """CalibratedClassifier, if it supports the estimator and the method."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **more: Any) -> Any:
        estimator = LinearSVC(random_state=0) if self.estimator is None else self.estimator
        takes = isinstance(estimator, LinearSVC | LogisticRegression) and self.method in ("sigmoid", "temperature")
        if not takes or more:
            return super().fit(X, y, sample_weight, **more)
        in_use.add("CalibratedClassifierCV")
        cv = 5 if self.cv is None else self.cv
        machine = manyclass.CalibratedClassifier(estimator.machine(X, y), method=self.method, cv=cv)
        self.machine_ = machine.fit(X, y, sample_weight)
        self.classes_, self.n_features_in_ = machine.classes_, machine.n_features_in_
        if hasattr(machine, "feature_names_in_"):
            self.feature_names_in_ = machine.feature_names_in_
        return self

    def predict(self, X: Any) -> Any:
        return self.machine_.predict(X) if "machine_" in self.__dict__ else super().predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.machine_.predict_proba(X) if "machine_" in self.__dict__ else super().predict_proba(X)

    def __getattr__(self, name: str) -> Any:
        if name == "calibrated_classifiers_" and "machine_" in self.__dict__:
            not_applicable("calibrated_classifiers_, one for each fold")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def put_in_place() -> None:
    """Replace the classes by ours, in the modules from which tests import them."""
    sklearn.svm.LinearSVC = sklearn.calibration.LinearSVC = LinearSVC
    sklearn.linear_model.LogisticRegression = LogisticRegression
    sklearn.multiclass.OneVsRestClassifier = OneVsRestClassifier
    sklearn.multiclass.OneVsOneClassifier = OneVsOneClassifier
    sklearn.calibration.CalibratedClassifierCV = CalibratedClassifierCV


put_in_place()


def pytest_runtest_setup(item: Any) -> None:
    in_use.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Write the outcome of the test to the file named by SKLEARN_OUTCOMES."""
    report = yield
    if report.when == "call" or report.outcome != "passed":
        outcome, why = {"passed": "pass", "failed": "fail", "skipped": "not applicable"}[report.outcome], ""
        if report.outcome == "skipped":
            why = str(report.longrepr[2]).removeprefix("Skipped: ").removeprefix(NOT_APPLICABLE)
        elif report.outcome == "passed" and not in_use:
            outcome, why = "not applicable", UNTOUCHED
        elif report.outcome == "failed":
            why = call.excinfo.exconly().strip().splitlines()[0][:200]
        name = report.nodeid.partition("::")[2]
        told = {"file": item.path.name, "test": name, "outcome": outcome, "why": why, "used": sorted(in_use)}
        with open(os.environ["SKLEARN_OUTCOMES"], "a") as outcomes:
            outcomes.write(json.dumps(told) + "\n")
    return report
