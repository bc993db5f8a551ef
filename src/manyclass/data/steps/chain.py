"""A chain of preprocessing steps, from raw texts or rows to the rows that a model scores."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..matrix import check_matrix
from ..text_features import as_texts
from .formats import StepFormat, StoredStep
from .scalers import CountWeights, FeatureScale, OwnUnitRows, RowNorms
from .vectorizers import Counts, Hashing, OwnHashing, OwnText, WeightedCounts

FORMATS: dict[str, StepFormat] = {
    one.kind.__name__: one
    for one in (
        OwnText(),
        OwnHashing(),
        OwnUnitRows(),
        Counts(),
        WeightedCounts(),
        Hashing(),
        CountWeights(),
        RowNorms(),
        FeatureScale(),
    )
}


class Chain(Sequence[Any]):
    """Fitted steps, applied one after the other; only the first one may take texts.

    A step is a transformer that can be stored as data: `TextFeatures`, `HashedText` and `UnitRows` of this package,
    `CountVectorizer`, `TfidfVectorizer`, `HashingVectorizer`, `TfidfTransformer`, `Normalizer` and `MaxAbsScaler` of
    scikit-learn. TypeError says why another one cannot be stored.
    """

    def __init__(self, steps: Iterable[Any] = ()):
        self._steps = tuple(steps)
        for place, step in enumerate(self._steps):
            if _format_of(step).takes_text and place:
                raise TypeError(f"{type(step).__name__} takes texts, but the step before it gives rows of numbers")

    def __getitem__(self, place: Any) -> Any:
        return self._steps[place]

    def __len__(self) -> int:
        return len(self._steps)

    def __add__(self, other: "Chain") -> "Chain":
        return Chain((*self, *other))

    def __repr__(self) -> str:
        return f"Chain([{', '.join(self.describe())}])"

    def describe(self) -> list[str]:
        """Return a short description of each step."""
        return [_format_of(step).about(step) for step in self]

    @property
    def takes_text(self) -> bool:
        """Whether the first step takes texts."""
        return bool(self._steps) and _format_of(self._steps[0]).takes_text

    @property
    def feature_names(self) -> np.ndarray | None:
        """The names of the resulting features, such as words; None if unknown."""
        names = None
        for step in self:
            names = _format_of(step).feature_names(step, names)
        return names

    def transform(self, X: Any) -> Any:
        """Apply all steps; if the only one takes texts, rows of numbers count as its result and stay unchanged."""
        if self.takes_text and _is_matrix(X):
            if len(self) > 1:
                raise ValueError(
                    f"found rows of numbers, but the model's steps ({_told(self)}) start from texts, and it is "
                    "unclear which steps these rows have been through; pass "
                    "texts, or the result of the model's `prepare`"
                )
            return X
        if self.takes_text:
            X = as_texts(X)
        elif self and (sp.issparse(X) or isinstance(X, np.ndarray)):
            # Adds up duplicates, and rejects values that are not finite with their place.
            rows = check_matrix(X)
            X = rows.as_csr() if rows.is_sparse else rows.dense
        for step in self:
            X = step.transform(X)
        return X

    def after(self, done: "Chain") -> "Chain":
        """Return the remaining steps for rows that have gone through `done`, with which this chain must begin."""
        if not done:
            return self
        pairs = zip(self.store(), done.store(), strict=False)
        if len(done) > len(self) or not all(mine.same_as(theirs) for mine, theirs in pairs):
            raise ValueError(
                f"the rows were prepared differently ({_told(done)}) from those of the model ({_told(self)})"
            )
        return Chain(self[len(done) :])

    def check_features(self, n_features: int) -> None:
        """Check that each step gives as many features as the next one takes, and the last one `n_features`."""
        width: int | None = None
        for step in self:
            wanted = getattr(step, "n_features_in_", None)
            if None not in (width, wanted) and width != wanted:
                raise ValueError(f"{type(step).__name__} takes {wanted} features, but gets {width}")
            width = _format_of(step).n_features_out(step) or width
        if width not in (None, n_features):
            raise ValueError(
                f"{type(self[-1]).__name__} gives {width} features, but the weights are for {n_features}"
            )

    def store(self) -> list[StoredStep]:
        """Convert all steps to data; TypeError if a parameter of a step is code."""
        return [_format_of(step).store(step) for step in self]

    @classmethod
    def restore(cls, stored: Iterable[StoredStep]) -> "Chain":
        """Rebuild a chain from the result of `store`; ValueError if a step is unknown, or its data are invalid."""
        steps = []
        for place, one in enumerate(stored):
            if one.name not in FORMATS:
                raise ValueError(
                    f"step {place} is {one.name!r}, which this version of manyclass does not know; upgrade manyclass"
                )
            try:
                steps.append(FORMATS[one.name].restore(one))
            except (TypeError, ValueError) as error:
                raise ValueError(f"step {place}, {one.name}: {error}") from error
        try:
            return cls(steps)
        except TypeError as error:
            raise ValueError(str(error)) from error


def _format_of(step: Any) -> StepFormat:
    known = FORMATS.get(type(step).__name__)
    if known is not None and type(step) is known.kind:
        return known
    name = type(step).__name__
    parent = next((one.kind.__name__ for one in FORMATS.values() if isinstance(step, one.kind)), None)
    if parent is not None:
        raise TypeError(
            f"{name} is a subclass of {parent}; a model file holds data, not code, so use {parent} itself"
        )
    raise TypeError(
        f"{name} cannot be stored in a model file, which holds only {', '.join(FORMATS)}; apply it to the input "
        "before the pipeline"
    )


def _is_matrix(X: Any) -> bool:
    """Whether `X` holds rows of numbers rather than texts."""
    return sp.issparse(X) or (getattr(X, "ndim", 1) == 2 and np.asarray(X).dtype.kind in "biuf")


def _told(chain: Chain) -> str:
    return ", then ".join(chain.describe()) or "no steps"
