"""The way of raw input, texts or rows, to the rows that weights are for."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

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
    """Fitted steps, each of which takes what the one before gives.

    A step is a transformer that can be stored as data: `TextFeatures`, `HashedText` and `UnitRows` of this package,
    `CountVectorizer`, `TfidfVectorizer`, `HashingVectorizer`, `TfidfTransformer`, `Normalizer` and `MaxAbsScaler` of
    scikit-learn. Only the first one may take texts.

    Parameters
    ----------
    steps : iterable of transformers

    Raises
    ------
    TypeError
        For a step that cannot be stored, with the reason.
    """

    def __init__(self, steps: Iterable[Any] = ()):
        self._steps = tuple(steps)
        for place, step in enumerate(self._steps):
            if _format_of(step).takes_text and place:
                raise TypeError(f"{type(step).__name__} takes texts, but what comes before it gives rows of numbers")

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> "Chain": ...
    def __getitem__(self, place: int | slice) -> Any:
        return Chain(self._steps[place]) if isinstance(place, slice) else self._steps[place]

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._steps)

    def __add__(self, other: "Chain") -> "Chain":
        return Chain((*self, *other))

    def __repr__(self) -> str:
        return f"Chain([{', '.join(self.describe())}])"

    def describe(self) -> list[str]:
        """Say what each step does."""
        return [_format_of(step).about(step) for step in self]

    @property
    def takes_text(self) -> bool:
        """Whether the first step makes rows of texts."""
        return bool(self._steps) and _format_of(self._steps[0]).takes_text

    @property
    def feature_names(self) -> np.ndarray | None:
        """What the features of its rows are called, such as the words of texts; None if nothing tells."""
        names = None
        for step in self:
            names = _format_of(step).feature_names(step, names)
        return names

    def transform(self, X: Any) -> Any:
        """Apply all steps.

        Parameters
        ----------
        X : texts, or array or sparse matrix
            Where the first step takes texts, rows of numbers are taken as its result if it is the only one.

        Returns
        -------
        array or sparse matrix

        Raises
        ------
        ValueError
            For input of another kind than the first step takes.
        """
        steps = self._steps
        if self.takes_text and _is_matrix(X):
            if len(self) > 1:
                raise ValueError(
                    f"rows of numbers may have gone through some of the model's steps ({_told(self)}) or all; pass "
                    "texts, or what `prepare` of the model has made of them"
                )
            return X
        if self.takes_text:
            X = as_texts(X)
        elif steps and (sp.issparse(X) or isinstance(X, np.ndarray)):
            # Duplicates are added up first, and what is not finite is refused with its place.
            rows = check_matrix(X)
            X = rows.as_csr() if rows.is_sparse else rows.dense
        for step in steps:
            X = step.transform(X)
        return X

    def after(self, done: "Chain") -> "Chain":
        """The steps that are left for rows which have gone through some.

        Raises
        ------
        ValueError
            If these are not the first ones of this chain.
        """
        if not done:
            return self
        pairs = zip(self.store(), done.store(), strict=False)
        if len(done) > len(self) or not all(mine.same_as(theirs) for mine, theirs in pairs):
            raise ValueError(
                f"the rows were prepared differently ({_told(done)}) from those of the model ({_told(self)})"
            )
        return self[len(done) :]

    def check_features(self, n_features: int) -> None:
        """Make sure that each step gives what the next one takes, and the last one what weights are for.

        Raises
        ------
        ValueError
            If not.
        """
        width: int | None = None
        for step in self:
            wanted = getattr(step, "n_features_in_", None)
            if None not in (width, wanted) and width != wanted:
                raise ValueError(f"{type(step).__name__} takes {wanted} features, but gets {width}")
            width = _format_of(step).n_features_out(step) or width
        if width not in (None, n_features):
            raise ValueError(
                f"{type(self[-1]).__name__} gives {width} features, but there are weights of {n_features}"
            )

    # ---- As data

    def store(self) -> list[StoredStep]:
        """All steps as data.

        Raises
        ------
        TypeError
            For a step with parameters that are code.
        """
        return [_format_of(step).store(step) for step in self]

    @classmethod
    def restore(cls, stored: Iterable[StoredStep]) -> "Chain":
        """Rebuild what `store` gave.

        Raises
        ------
        ValueError
            For a step that is not known, or data that do not make sense.
        """
        steps = []
        for place, one in enumerate(stored):
            if one.name not in FORMATS:
                raise ValueError(f"step {place} is {one.name!r}, which this manyclass does not know; upgrade it")
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
            f"{name} is a class of its own, made from {parent}: a model file holds data, not code; use {parent}"
        )
    raise TypeError(
        f"{name} cannot be stored in a model file, which holds {', '.join(FORMATS)} only; prepare the input with it "
        "before it reaches the pipeline"
    )


def _is_matrix(X: Any) -> bool:
    """Whether these are rows of numbers, not texts."""
    return sp.issparse(X) or (getattr(X, "ndim", 1) == 2 and np.asarray(X).dtype.kind in "biuf")


def _told(chain: Chain) -> str:
    return ", then ".join(chain.describe()) or "no steps"
