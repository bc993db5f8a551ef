"""Generate synthetic text-like data: Zipfian words, thousands of classes, few rows per class.

A row of class c is drawn as follows:
  - its length is log-normal; each word comes from the background (Zipf-Mandelbrot over the vocabulary), from
    the vocabulary of c's group of classes, or from c's own vocabulary (both Zipf);
  - it also gets some words that no other training row has, because in any large collection of texts at least a
    quarter of the words occur only once;
  - values are (1 + log count) * idf, with the idf implied by the model, and rows have unit length.

Rows are drawn in chunks of a fixed size, each from its own generator, so a row depends only on the seed and its
number, not on how many rows are requested at a time.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from .matrix import pointers

ROWS_PER_CHUNK = 1024
ONCE_SHARE = 0.25  # fraction of the vocabulary that occurs in only one training row
GROUP_SIZE = 12  # classes that share a vocabulary
GROUP_WORDS = 200
CLASS_SIZE_SPREAD = 1.2  # standard deviation of the log class sizes
LENGTH_SPREAD = 0.5  # standard deviation of the log row lengths

# Streams of random numbers; the seed, the stream and a chunk number determine the generator.
VOCABULARY, CLASS_SIZES, PILOT, TRAIN_LABELS, TEST_LABELS, TRAIN_ROWS, TEST_ROWS = range(7)


@dataclass(frozen=True)
class TextShape:
    """Size and difficulty of a synthetic data set.

    Attributes
    ----------
    n, n_test
        Number of training and test rows.
    K
        Number of classes; each has at least one training row.
    d
        Number of features.
    nnz
        Average number of non-zeros per row.
    class_words
        Vocabulary size of a class. The larger it is, the less two rows of a class have in common.
    class_share, group_share
        Fraction of a row's words that come from the vocabulary of its class and of its group.
    """

    n: int
    n_test: int
    K: int
    d: int
    nnz: float
    class_words: int = 120
    class_share: float = 0.034
    group_share: float = 0.12


PRESETS = {
    "lshtc-small": TextShape(4_463, 1_858, 1_139, 51_033, 149),
    "lshtc-large": TextShape(128_710, 34_880, 12_294, 381_581, 150, class_share=0.02),
    "lshtc-2012": TextShape(383_408, 103_435, 11_947, 575_555, 150, class_share=0.024),
    "lshtc-2011": TextShape(394_754, 104_263, 27_875, 594_158, 150, class_share=0.018),
    "wordnet": TextShape(60_096, 6_797, 4_796, 38_523, 11, class_share=0.3),
    "bench-1k": TextShape(5_000, 1_000, 1_000, 50_000, 61, class_share=0.08),
}


Size = float | None


def _zipf(n: int, shift: float = 2.7, exponent: float = 1.0) -> np.ndarray:
    weights = (np.arange(1, n + 1) + shift) ** -exponent
    return weights / weights.sum()


def _shape(
    preset: str, *, n: Size = None, n_test: Size = None, d: Size = None, K: Size = None, nnz: Size = None
) -> TextShape:
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    sizes: dict[str, Any] = {"n": n, "n_test": n_test, "d": d, "K": K, "nnz": nnz}
    shape = replace(PRESETS[preset], **{name: value for name, value in sizes.items() if value is not None})
    if shape.K < 2 or shape.n < shape.K or shape.n_test < 0:
        raise ValueError(
            f"n={shape.n}, n_test={shape.n_test}, K={shape.K}: there must be at least two classes, at least one "
            "training row per class, and no negative number of test rows"
        )
    if not 1 <= shape.nnz <= shape.d / 4:
        raise ValueError(f"nnz={shape.nnz} must be from 1 to a quarter of d={shape.d}, because the rows are sparse")
    return shape


class _TextModel:
    """The vocabularies and class sizes that rows are drawn from."""

    def __init__(self, shape: TextShape, seed: int):
        self.shape = shape
        self.seed = seed
        rng = self._generator(VOCABULARY)
        self.n_once = int(ONCE_SHARE * shape.d)
        n_common = shape.d - self.n_once
        # The model numbers words by frequency, those that occur once last; the columns of X are a random permutation.
        self.column = rng.permutation(shape.d)
        background = _zipf(n_common)
        self.background_sum = np.cumsum(background)
        # The words that distinguish classes are not among the most frequent ones.
        n_topics = -(-shape.K // GROUP_SIZE)
        frequent = n_common // 100
        self.group_words = rng.integers(frequent, n_common, (n_topics, GROUP_WORDS), dtype=np.int32)
        self.class_words = rng.integers(frequent, n_common, (shape.K, shape.class_words), dtype=np.int32)
        self.group_sum = np.cumsum(_zipf(GROUP_WORDS))
        self.class_sum = np.cumsum(_zipf(shape.class_words))
        self.group = rng.permutation(shape.K) // GROUP_SIZE

        sizes = self._generator(CLASS_SIZES).lognormal(0.0, CLASS_SIZE_SPREAD, shape.K)
        self.class_shares = sizes / sizes.sum()
        self.length = self._length_for(shape.nnz)
        self.idf = self._expected_idf(background)

    def _generator(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *stream])

    def labels(self, split: str) -> np.ndarray:
        """Draw the classes of all rows of a split; each class has at least one training row."""
        if split == "test":
            return self._generator(TEST_LABELS).choice(self.shape.K, self.shape.n_test, p=self.class_shares)
        rng = self._generator(TRAIN_LABELS)
        more = rng.choice(self.shape.K, self.shape.n - self.shape.K, p=self.class_shares)
        return rng.permutation(np.concatenate([np.arange(self.shape.K), more]))

    def _words(self, y: np.ndarray, length: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw the words of rows of classes `y`, except those that occur once; return rows and words."""
        spread = LENGTH_SPREAD * rng.standard_normal(y.size) - LENGTH_SPREAD**2 / 2
        lengths = np.maximum(1, np.rint(length * np.exp(spread))).astype(np.int64)
        rows = np.repeat(np.arange(y.size), lengths)
        source, u = rng.random(rows.size), rng.random(rows.size)
        words = np.empty(rows.size, np.int64)
        own = source < self.shape.class_share
        shared = ~own & (source < self.shape.class_share + self.shape.group_share)
        common = ~own & ~shared
        words[own] = self.class_words[y[rows[own]], self._rank(self.class_sum, u[own])]
        words[shared] = self.group_words[self.group[y[rows[shared]]], self._rank(self.group_sum, u[shared])]
        words[common] = self._rank(self.background_sum, u[common])
        return rows, words

    @staticmethod
    def _rank(cumulative: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.minimum(np.searchsorted(cumulative, u, side="right"), cumulative.size - 1)

    def _length_for(self, nnz: float) -> float:
        """Find the row length that gives `nnz` distinct words on average, using a small sample."""
        wanted = max(nnz - self.n_once / self.shape.n, 0.5)
        length = wanted
        for _ in range(4):
            # Use the same random numbers in each step, so that only the length changes.
            rng = self._generator(PILOT)
            y = rng.choice(self.shape.K, 4096, p=self.class_shares)
            rows, words = self._words(y, length, rng)
            found = np.unique(rows * self.shape.d + words).size / y.size
            length = max(length * wanted / found, 0.5)
        return length

    def _expected_idf(self, background: np.ndarray) -> np.ndarray:
        shape = self.shape
        chance = np.zeros(shape.d)
        chance[: background.size] = (1 - shape.class_share - shape.group_share) * background
        by_class = shape.class_share * self.class_shares[:, None] * _zipf(shape.class_words)
        chance += np.bincount(self.class_words.ravel(), by_class.ravel(), shape.d)
        group_shares = np.bincount(self.group, self.class_shares, self.group_words.shape[0])
        by_group = shape.group_share * group_shares[:, None] * _zipf(GROUP_WORDS)
        chance += np.bincount(self.group_words.ravel(), by_group.ravel(), shape.d)
        rows_with = shape.n * -np.expm1(-self.length * chance)
        return np.log((1 + shape.n) / (1 + np.maximum(rows_with, 1))) + 1

    def _words_met_once(
        self, split: str, start: int, n_rows: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Spread these words evenly over the training rows; test rows get as many, chosen at random."""
        shape = self.shape
        if self.n_once == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        bounds = (np.arange(start, start + n_rows + 1) * self.n_once) // shape.n
        rows = np.repeat(np.arange(n_rows), np.diff(bounds))
        words = np.arange(bounds[0], bounds[-1]) if split == "train" else rng.integers(0, self.n_once, rows.size)
        return rows, words + (shape.d - self.n_once)

    def chunk(self, split: str, number: int, y: np.ndarray) -> sp.csr_matrix:
        """Draw chunk `number` of a split, whose rows have the classes `y`."""
        rng = self._generator(TRAIN_ROWS if split == "train" else TEST_ROWS, number)
        rows, words = self._words(y, self.length, rng)
        once_rows, once_words = self._words_met_once(split, number * ROWS_PER_CHUNK, y.size, rng)
        rows, words = np.concatenate([rows, once_rows]), np.concatenate([words, once_words])
        cells, counts = np.unique(rows * self.shape.d + self.column[words], return_counts=True)
        rows, columns = np.divmod(cells, self.shape.d)
        idf = np.empty(self.shape.d)
        idf[self.column] = self.idf
        values = (1 + np.log(counts)) * idf[columns]
        values /= np.sqrt(np.bincount(rows, values**2, y.size))[rows]
        indptr = pointers(np.bincount(rows, minlength=y.size))
        return sp.csr_matrix(
            (values.astype(np.float32), columns.astype(np.int32), indptr), shape=(y.size, self.shape.d)
        )


def _blocks(model: _TextModel, split: str, rows_per_block: int) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    labels = model.labels(split)
    chunks = (
        model.chunk(split, number, labels[start : start + ROWS_PER_CHUNK])
        for number, start in enumerate(range(0, labels.size, ROWS_PER_CHUNK))
    )
    rows, first = sp.csr_matrix((0, model.shape.d), dtype=np.float32), 0
    for start in range(0, labels.size, rows_per_block):
        y = labels[start : start + rows_per_block]
        missing = y.size - (rows.shape[0] - first)
        if missing > 0:
            more = itertools.islice(chunks, -(-missing // ROWS_PER_CHUNK))
            rows, first = sp.vstack([rows[first:], *more], format="csr"), 0
        yield rows[first : first + y.size], y
        first += y.size


def iter_text_like(
    preset: str = "lshtc-small",
    *,
    rows_per_block: int = 8192,
    seed: int = 0,
    split: Literal["train", "test"] = "train",
    **sizes: Any,
) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    """Generate a synthetic text data set as blocks of rows and classes; only one block is in memory.

    The rows have unit length and do not depend on `rows_per_block`. `sizes` are `n`, `n_test`, `d`, `K` and `nnz` as
    for `make_text_like`.
    """
    if split not in ("train", "test"):
        raise ValueError(f'split must be "train" or "test", got {split!r}')
    if rows_per_block < 1:
        raise ValueError(f"rows_per_block must be at least 1, got {rows_per_block}")
    return _blocks(_TextModel(_shape(preset, **sizes), seed), split, rows_per_block)


def make_text_like(
    preset: str = "lshtc-small",
    *,
    n: int | None = None,
    n_test: int | None = None,
    d: int | None = None,
    K: int | None = None,
    nnz: float | None = None,
    seed: int = 0,
) -> tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix, np.ndarray]:
    """Generate a synthetic text data set in memory, with the same rows as `iter_text_like`.

    Parameters
    ----------
    preset : str
        One of `PRESETS`: the shapes of well-known collections (`lshtc-*`, `wordnet`) and of our benchmarks.
    n, n_test, d, K, nnz : optional
        Override the preset: number of training rows, test rows, features, classes, and non-zeros per row.
    seed : int
        Seed of the data set.

    Returns
    -------
    X_train, y_train, X_test, y_test
        float32 csr_matrix with rows of unit length, and int64 classes 0..K-1.
    """
    model = _TextModel(_shape(preset, n=n, n_test=n_test, d=d, K=K, nnz=nnz), seed)
    no_rows = sp.csr_matrix((0, model.shape.d), dtype=np.float32), np.empty(0, np.int64)
    X_train, y_train = next(_blocks(model, "train", model.shape.n))
    X_test, y_test = next(_blocks(model, "test", max(1, model.shape.n_test)), no_rows)
    return X_train, y_train, X_test, y_test
