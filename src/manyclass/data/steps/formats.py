"""Convert preprocessing steps to data and back: parameters as JSON, learned state as numbers and arrays."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..strings import read_strings, string_arrays

DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NAMES = "names"


@dataclass(frozen=True)
class StoredStep:
    """A step as stored in a file: its class, constructor parameters as plain values, and what it has learned."""

    name: str
    parameters: dict[str, Any]
    learned: dict[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def same_as(self, other: "StoredStep") -> bool:
        """Whether both steps transform any input in the same way."""
        return (
            (self.name, self.parameters) == (other.name, other.parameters)
            and set(self.arrays) == set(other.arrays)
            and all(np.array_equal(array, other.arrays[name]) for name, array in self.arrays.items())
        )


class StepFormat:
    """How to store the steps of one class, but not of its subclasses, which may do anything."""

    kind: ClassVar[type]
    #: Whether the step takes raw texts. Other steps take rows, and keep the number of features.
    takes_text: ClassVar[bool] = False
    #: Whether the step must be fitted; some versions of scikit-learn require it of steps that learn nothing.
    learns: ClassVar[bool] = True
    #: Parameters that are not stored because they do not change the result, or are part of the learned state.
    left_out: ClassVar[tuple[str, ...]] = ()

    def store(self, step: Any) -> StoredStep:
        """Convert a fitted step to data; TypeError if a parameter is code."""
        if self.learns:
            check_is_fitted(step)
        parameters = {
            name: _plain(step, name, value)
            for name, value in step.get_params(deep=False).items()
            if name not in self.left_out
        }
        arrays = self.arrays(step)
        if hasattr(step, "feature_names_in_"):
            arrays |= named_strings(NAMES, step.feature_names_in_)
        return StoredStep(self.kind.__name__, parameters, self.learned(step), arrays)

    def restore(self, stored: StoredStep) -> Any:
        """Rebuild a step; ValueError if the data are invalid."""
        step = self._with_parameters(stored.parameters)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # the user saw them when the step was fitted
                self.relearn(step, stored)
        except (re.error, OverflowError, RecursionError) as error:  # such as an invalid token pattern
            raise ValueError(str(error)) from error
        if f"{NAMES}.utf8" in stored.arrays:
            names = read_named_strings(NAMES, stored.arrays)
            if len(names) != step.n_features_in_:
                raise ValueError(f"{len(names)} names for {step.n_features_in_} features")
            step.feature_names_in_ = np.array(names, dtype=object)
        return step

    def n_features_out(self, step: Any) -> int | None:
        """Return the number of features of the resulting rows; None if unknown."""
        return getattr(step, "n_features_in_", None)

    def feature_names(self, step: Any, names: np.ndarray | None) -> np.ndarray | None:
        """Return the names of the resulting features, given those of the input; None if unknown."""
        return getattr(step, "feature_names_in_", names)

    def about(self, step: Any) -> str:
        """Return a short description of the step."""
        return " ".join(repr(step).split())

    # ---- Overridden by subclasses

    def learned(self, step: Any) -> dict[str, Any]:
        """Return the learned numbers."""
        n_features = getattr(step, "n_features_in_", None)
        return {} if n_features is None else {"n_features": int(n_features)}

    def arrays(self, step: Any) -> dict[str, np.ndarray]:
        """Return the learned arrays."""
        return {}

    def relearn(self, step: Any, stored: StoredStep) -> None:
        """Restore the learned state of a step. Fitting it checks its parameters."""
        n_features = stored.learned.get("n_features")
        if n_features is None:
            step._validate_params()
        else:
            step.fit(sp.csr_matrix((1, whole_number("n_features", n_features))))

    # ---- Parameters

    def _with_parameters(self, parameters: dict[str, Any]) -> Any:
        known = set(self.kind().get_params(deep=False)) - set(self.left_out)
        unknown = sorted(set(parameters) - known)
        if unknown:
            raise ValueError(f"the parameters {', '.join(unknown)} are unknown here; upgrade scikit-learn")
        return self.kind(**{name: _given(name, value) for name, value in parameters.items()})


def _plain(step: Any, name: str, value: Any) -> Any:
    if name == "dtype":
        found = np.dtype(value).name
        if found not in DTYPES:
            raise TypeError(f"{type(step).__name__} has dtype={found}, which a model file cannot hold")
        return found
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [_plain(step, name, part) for part in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    what = "code" if callable(value) else f"a {type(value).__name__}"
    raise TypeError(
        f"{type(step).__name__} has {name}={value!r}, which is {what}; a model file holds only plain data, so use "
        "other parameters, or prepare the input before the pipeline"
    )


def _given(name: str, value: Any) -> Any:
    if name == "dtype":
        if value not in DTYPES:
            raise ValueError(f"dtype is {value!r}")
        return np.dtype(value).type
    if name == "ngram_range":
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError(f"ngram_range is {value!r}")
        least, most = (whole_number(name, bound) for bound in value)
        if least > most:
            raise ValueError(f"ngram_range is {value!r}")
        return least, most
    if isinstance(value, list) and not all(isinstance(part, str) for part in value):
        raise ValueError(f"{name} is {value!r}, not a list of strings")
    return value


# ---- Checked values from files


def whole_number(name: str, value: Any) -> int:
    """Check that a value is a positive integer, and return it."""
    if type(value) is not int or not 1 <= value < 1 << 63:
        raise ValueError(f"{name} is {value!r}, not a positive integer")
    return value


def finite_vector(arrays: Mapping[str, np.ndarray], name: str, size: int | None = None) -> np.ndarray:
    """Check that an array is a non-empty vector of finite floats, and return a copy."""
    array = arrays[name]
    if array.ndim != 1 or array.dtype not in (np.float32, np.float64) or array.size != (size or array.size):
        wanted = "a vector of floats" if size is None else f"{size} floats"
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not {wanted}")
    if not array.size or not np.isfinite(array).all():
        raise ValueError(f"{name} is empty, or has values that are NaN or infinite")
    return np.array(array)


def named_strings(name: str, strings: Any) -> dict[str, np.ndarray]:
    """Convert strings to arrays of a step."""
    found = list(strings)
    for string in found:
        if not isinstance(string, str):
            raise TypeError(
                f"{string!r} among the {name} is a {type(string).__name__}; a model file can only hold strings here"
            )
    utf8, offsets = string_arrays(found)
    return {f"{name}.utf8": utf8, f"{name}.offsets": offsets}


def read_named_strings(name: str, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Restore the strings from the arrays of `named_strings`, which must be distinct."""
    found = read_strings(arrays[f"{name}.utf8"], arrays[f"{name}.offsets"], name)
    if not found or len(set(found)) != len(found):
        raise ValueError(f"{name} is empty, or a string occurs twice")
    return found
