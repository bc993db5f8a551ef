"""Storage formats of the steps that convert texts to rows."""

from typing import Any, ClassVar

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from ..hashed_text import HashedText
from ..text_features import TextFeatures
from .formats import StepFormat, StoredStep, finite_vector, named_strings, read_named_strings

VOCABULARY = "vocabulary"


class _TextFormat(StepFormat):
    takes_text: ClassVar[bool] = True

    def store(self, step: Any) -> StoredStep:
        _check_input(getattr(step, "input", "content"), TypeError)
        return super().store(step)

    def relearn(self, step: Any, stored: StoredStep) -> None:
        _check_input(getattr(step, "input", "content"), ValueError)
        step.fit([""])


def _check_input(given: str, error: type[Exception]) -> None:
    if given != "content":
        raise error(f"input={given!r} reads files, but a model takes texts; use input='content'")


class Hashing(_TextFormat):
    """Hashed words. Nothing is learned."""

    kind: ClassVar[type] = HashingVectorizer
    learns: ClassVar[bool] = False

    def learned(self, step: Any) -> dict[str, Any]:
        return {}

    def n_features_out(self, step: Any) -> int:
        return int(step.n_features)


class OwnHashing(Hashing):
    """Hashed words, by this package."""

    kind: ClassVar[type] = HashedText

    def about(self, step: Any) -> str:
        return f"words hashed to {step.n_features:,} features"


class Counts(_TextFormat):
    """Counted words. Their columns are learned, or given by the parameter `vocabulary`."""

    kind: ClassVar[type] = CountVectorizer
    left_out: ClassVar[tuple[str, ...]] = (VOCABULARY,)

    def store(self, step: Any) -> StoredStep:
        check_is_fitted(step, "vocabulary_")
        return super().store(step)

    def learned(self, step: Any) -> dict[str, Any]:
        return {"vocabulary_given": step.vocabulary is not None}

    def arrays(self, step: Any) -> dict[str, np.ndarray]:
        return named_strings(VOCABULARY, sorted(step.vocabulary_, key=step.vocabulary_.__getitem__))

    def relearn(self, step: Any, stored: StoredStep) -> None:
        words = read_named_strings(VOCABULARY, stored.arrays)
        given = stored.learned.get("vocabulary_given")
        if not isinstance(given, bool):
            raise ValueError(f"vocabulary_given is {given!r}, not a boolean")
        step.vocabulary = {word: column for column, word in enumerate(words)}
        super().relearn(step, stored)
        if not given:
            step.vocabulary, step.fixed_vocabulary_ = None, False

    def n_features_out(self, step: Any) -> int:
        return len(step.vocabulary_)

    def feature_names(self, step: Any, names: np.ndarray | None) -> np.ndarray:
        return step.get_feature_names_out()


class WeightedCounts(Counts):
    """Counted and weighted words."""

    kind: ClassVar[type] = TfidfVectorizer

    def arrays(self, step: Any) -> dict[str, np.ndarray]:
        return super().arrays(step) | ({"idf": np.ascontiguousarray(step.idf_)} if step.use_idf else {})

    def relearn(self, step: Any, stored: StoredStep) -> None:
        super().relearn(step, stored)
        if step.use_idf:
            step.idf_ = finite_vector(stored.arrays, "idf", len(step.vocabulary_))


class OwnText(StepFormat):
    """Counted and weighted words, by this package."""

    kind: ClassVar[type] = TextFeatures
    takes_text: ClassVar[bool] = True

    def arrays(self, step: Any) -> dict[str, np.ndarray]:
        idf = np.ascontiguousarray(step.vectorizer_.idf_, np.float32)
        return named_strings(VOCABULARY, step.get_feature_names_out()) | {"idf": idf}

    def relearn(self, step: Any, stored: StoredStep) -> None:
        step._validate_params()
        words = read_named_strings(VOCABULARY, stored.arrays)
        idf = finite_vector(stored.arrays, "idf", len(words))
        if idf.dtype != np.float32 or (idf <= 0).any():
            raise ValueError(f"the IDF weights must be positive and float32, got {idf.dtype}")
        step.vectorizer_ = step.new_vectorizer({word: column for column, word in enumerate(words)})
        step.vectorizer_.idf_ = idf

    def n_features_out(self, step: Any) -> int:
        return len(step.vectorizer_.vocabulary_)

    def about(self, step: Any) -> str:
        return f"TF-IDF of {self.n_features_out(step):,} words"

    def feature_names(self, step: Any, names: np.ndarray | None) -> np.ndarray:
        return step.get_feature_names_out()
