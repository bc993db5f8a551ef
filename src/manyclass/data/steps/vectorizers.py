"""How what makes rows of texts is stored: scikit-learn's vectorisers, and this package's own."""

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
        raise error(f"input={given!r} reads files; a model takes the texts themselves, with input='content'")


class Hashing(_TextFormat):
    """Words that are hashed: nothing is learned."""

    kind: ClassVar[type] = HashingVectorizer
    learns: ClassVar[bool] = False

    def learned(self, step: Any) -> dict[str, Any]:
        return {}

    def n_features_out(self, step: Any) -> int:
        return int(step.n_features)


class OwnHashing(Hashing):
    """The same, of this package."""

    kind: ClassVar[type] = HashedText

    def about(self, step: Any) -> str:
        return f"words hashed to {step.n_features:,} features"


class Counts(_TextFormat):
    """Words that are counted: their columns are learned, or were given as the parameter `vocabulary`."""

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
            raise ValueError(f"vocabulary_given is {given!r}, not a truth value")
        step.vocabulary = {word: column for column, word in enumerate(words)}
        super().relearn(step, stored)
        if not given:
            step.vocabulary, step.fixed_vocabulary_ = None, False

    def n_features_out(self, step: Any) -> int:
        return len(step.vocabulary_)

    def feature_names(self, step: Any, names: np.ndarray | None) -> np.ndarray:
        return step.get_feature_names_out()


class WeightedCounts(Counts):
    """Words that are counted and weighted."""

    kind: ClassVar[type] = TfidfVectorizer

    def arrays(self, step: Any) -> dict[str, np.ndarray]:
        return super().arrays(step) | ({"idf": np.ascontiguousarray(step.idf_)} if step.use_idf else {})

    def relearn(self, step: Any, stored: StoredStep) -> None:
        super().relearn(step, stored)
        if step.use_idf:
            step.idf_ = finite_vector(stored.arrays, "idf", len(step.vocabulary_))


class OwnText(StepFormat):
    """Words that are counted and weighted by this package."""

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
            raise ValueError(f"the weights of the words must be positive and float32, got {idf.dtype}")
        step.vectorizer_ = step.new_vectorizer({word: column for column, word in enumerate(words)})
        step.vectorizer_.idf_ = idf

    def n_features_out(self, step: Any) -> int:
        return len(step.vectorizer_.vocabulary_)

    def about(self, step: Any) -> str:
        return f"TF-IDF of {self.n_features_out(step):,} words"

    def feature_names(self, step: Any, names: np.ndarray | None) -> np.ndarray:
        return step.get_feature_names_out()
