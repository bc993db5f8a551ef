"""From raw text to rows: TF-IDF that can be stored without pickle, and tables of texts and labels."""

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, BinaryIO, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from .streams import SUFFIXES, PathOrFile, StreamError, open_input, stream_name
from .svmlight import ParseError
from .unlabelled import Unlabelled, labelled

TENSORS = {
    "text.vocabulary": np.uint8,
    "text.offsets": np.int64,
    "text.idf": np.float32,
    "text.options": np.uint8,
}
OPTIONS = {"min_df": 1}
FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


class TextFeatures:
    """TF-IDF of lower-cased words with 1 + log(count), rows of length 1, in float32.

    Parameters
    ----------
    min_df : int or float
        Leave out words of fewer texts than this, or of a smaller share of the texts.
    """

    def __init__(self, *, min_df: int | float = 1):
        self.min_df = min_df

    def _new_vectorizer(self, vocabulary: dict[str, int] | None = None) -> TfidfVectorizer:
        return TfidfVectorizer(
            lowercase=True,
            sublinear_tf=True,
            norm=None,
            dtype=np.float32,
            min_df=self.min_df,
            vocabulary=vocabulary,
        )

    @staticmethod
    def _scaled(X: sp.csr_matrix) -> sp.csr_matrix:
        # Sorted first: fitting meets the words in another order, and lengths must not depend on the order.
        X.sort_indices()
        return normalize(X, copy=False)

    def _fitted(self) -> TfidfVectorizer:
        if not hasattr(self, "_vectorizer"):
            raise ValueError("TextFeatures has not seen any texts yet; call fit_transform first")
        return self._vectorizer

    def fit_transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """Learn the vocabulary and its weights from `texts` and give their rows.

        Parameters
        ----------
        texts : iterable of str
            The training texts.

        Returns
        -------
        X : float32 csr_matrix of shape (n_texts, n_words)
        """
        vectorizer = self._new_vectorizer()
        X = vectorizer.fit_transform(texts)
        self._vectorizer = vectorizer
        return self._scaled(X)

    def transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """Give the rows of `texts`; words that are not in the vocabulary are left out.

        Parameters
        ----------
        texts : iterable of str
            Any texts.

        Returns
        -------
        X : float32 csr_matrix of shape (n_texts, n_words)
        """
        return self._scaled(self._fitted().transform(texts))

    @property
    def n_features(self) -> int:
        """Columns of a row."""
        return len(self.words)

    @property
    def words(self) -> np.ndarray:
        """The word of each column."""
        return self._fitted().get_feature_names_out()

    def to_tensors(self) -> dict[str, np.ndarray]:
        """Give all that was learned as plain arrays, such as a safetensors file holds.

        Returns
        -------
        dict of str to ndarray
            The words as UTF-8 bytes one after the other, where each starts and the last ends, the weights,
            and the options as JSON.
        """
        words = [word.encode() for word in self.words]
        offsets = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(word) for word in words], out=offsets[1:])
        options = {name: getattr(self, name) for name in OPTIONS}
        return {
            "text.vocabulary": np.frombuffer(b"".join(words), np.uint8),
            "text.offsets": offsets,
            "text.idf": np.asarray(self._fitted().idf_, np.float32),
            "text.options": np.frombuffer(json.dumps(options, sort_keys=True).encode(), np.uint8),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> "TextFeatures":
        """Rebuild what `to_tensors` gave; other entries of `tensors` are ignored.

        Parameters
        ----------
        tensors : mapping of str to ndarray
            Such as a safetensors file holds.

        Returns
        -------
        TextFeatures

        Raises
        ------
        ValueError
            If an array is missing or the arrays do not fit together.
        """
        for name, dtype in TENSORS.items():
            if name not in tensors:
                raise ValueError(f"the text features lack the tensor {name!r}; the file is not complete")
            if tensors[name].dtype != dtype or tensors[name].ndim != 1:
                raise ValueError(
                    f"the tensor {name!r} must be a vector of {np.dtype(dtype)}, got {tensors[name].dtype} "
                    f"of shape {tensors[name].shape}; the file is damaged or from another program"
                )
        features = cls(**_read_options(tensors["text.options"]))
        words = _read_words(tensors["text.vocabulary"], tensors["text.offsets"])
        idf = np.array(tensors["text.idf"])
        if idf.size != len(words):
            raise ValueError(f"{len(words)} words have {idf.size} weights; the file is damaged")
        if not np.isfinite(idf).all() or (idf <= 0).any():
            raise ValueError("the weights of the words must be finite and positive; the file is damaged")
        vectorizer = features._new_vectorizer({word: column for column, word in enumerate(words)})
        vectorizer.idf_ = idf
        features._vectorizer = vectorizer
        return features


def _read_options(tensor: np.ndarray) -> dict[str, Any]:
    try:
        options = json.loads(tensor.tobytes())
    except ValueError as error:
        raise ValueError(f"the options of the text features are no JSON ({error}); the file is damaged") from error
    if not isinstance(options, dict) or set(options) != set(OPTIONS):
        raise ValueError(
            f"the text features have the options {options}, expected {', '.join(OPTIONS)}; "
            "the file is damaged or from another version"
        )
    if isinstance(options["min_df"], bool) or not isinstance(options["min_df"], (int, float)):
        raise ValueError(f"min_df must be a number, got {options['min_df']!r}; the file is damaged")
    return options


def _read_words(vocabulary: np.ndarray, offsets: np.ndarray) -> list[str]:
    if offsets.size < 2 or offsets[0] != 0 or offsets[-1] != vocabulary.size or (np.diff(offsets) <= 0).any():
        raise ValueError(
            f"the {offsets.size} offsets do not divide the {vocabulary.size} bytes of the vocabulary "
            "into words; the file is damaged"
        )
    text = vocabulary.tobytes()
    try:
        words = [text[start:stop].decode() for start, stop in itertools.pairwise(offsets)]
    except UnicodeDecodeError as error:
        raise ValueError(f"a word of the vocabulary is not UTF-8 ({error}); the file is damaged") from error
    if len(set(words)) != len(words):
        raise ValueError("a word occurs twice in the vocabulary; the file is damaged")
    return words


def _format_of(source: PathOrFile, given: str | None) -> str:
    if given is not None:
        if given not in FORMATS.values():
            raise ValueError(f"format must be csv, tsv or jsonl, got {given!r}")
        return given
    suffixes = [suffix.lower() for suffix in PurePath(stream_name(source)).suffixes]
    if suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    raise ValueError(f"{stream_name(source)}: the name does not tell the format; pass format='csv', 'tsv' or 'jsonl'")


class _Lines:
    """The lines of a binary stream as text, counted."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._stream:
            self.number += 1
            yield line.decode("utf-8-sig" if self.number == 1 else "utf-8")


def _missing(name: str, line: int, wanted: list[str], found: Iterable[str]) -> ParseError:
    columns = ", ".join(repr(column) for column in found) or "none"
    lacking = " and ".join(repr(column) for column in wanted)
    return ParseError(
        name,
        line,
        1,
        f"no column {lacking}; the columns are {columns}: name the ones to read with text= and label=",
    )


def _separated_rows(lines: _Lines, name: str, delimiter: str, columns: list[str]) -> Iterator[tuple[int, str, Any]]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise _missing(name, 1, missing, header)
        text, label = (header.index(column) for column in columns)
        end = reader.line_num
        for fields in reader:
            start, end = end + 1, reader.line_num
            if not fields:
                continue
            if len(fields) != len(header):
                raise ParseError(
                    name, start, 1, f"{len(fields)} fields, but the header has {len(header)}; quote the text"
                )
            yield start, fields[text], fields[label]
    except csv.Error as error:
        raise ParseError(name, reader.line_num, 1, f"{error}; check the quotes and the format") from error


def _json_rows(lines: _Lines, name: str, columns: list[str]) -> Iterator[tuple[int, str, Any]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ParseError(name, number, error.colno, f"{error.msg}; each line must be a JSON object") from error
        if not isinstance(record, dict):
            raise ParseError(name, number, 1, f"a {type(record).__name__}; each line must be a JSON object")
        missing = [column for column in columns if column not in record]
        if missing:
            raise _missing(name, number, missing, record)
        text, label = (record[column] for column in columns)
        if not isinstance(text, str):
            raise ParseError(name, number, 1, f"{columns[0]!r} is a {type(text).__name__}; it must be a string")
        if isinstance(label, (dict, list)):
            raise ParseError(
                name,
                number,
                1,
                f"{columns[1]!r} is {label!r}; a label must be a string, a number or a truth value",
            )
        yield number, text, label


def iter_table(
    path: PathOrFile,
    *,
    text: str | None = None,
    label: str | None = None,
    format: str | None = None,
    unlabelled: Unlabelled = "error",
) -> Iterator[tuple[str, Any]]:
    """Read texts and labels one row at a time; see `read_table`."""
    name = stream_name(path)
    kind = _format_of(path, format)
    columns = [text or "text", label or "label"]
    with open_input(path) as stream:
        lines = _Lines(stream)
        if kind == "jsonl":
            rows = _json_rows(lines, name, columns)
        else:
            rows = _separated_rows(lines, name, "," if kind == "csv" else "\t", columns)
        try:
            yield from labelled(rows, name, columns[1], unlabelled)
        except UnicodeDecodeError as error:
            raise ParseError(
                name, lines.number, error.start + 1, f"not UTF-8 ({error.reason}); convert the file first"
            ) from error
        except StreamError as error:
            raise ParseError(name, lines.number + 1, 1, str(error)) from error


def read_table(
    path: PathOrFile,
    *,
    text: str | None = None,
    label: str | None = None,
    format: Literal["csv", "tsv", "jsonl"] | None = None,
    unlabelled: Unlabelled = "error",
) -> tuple[list[str], list[Any]]:
    """Read texts and labels from CSV, TSV or JSON lines.

    Parameters
    ----------
    path : str, path-like or binary file object
        UTF-8, plain or compressed with gzip, bzip2, xz or zstd; `-` is standard input.
    text, label : str, optional
        The columns to read; `text` and `label` if not given.
    format : "csv", "tsv" or "jsonl", optional
        Told from the name of the file if not given.
    unlabelled : "error", "skip" or "keep"
        What to do with rows whose label is empty, null or NaN: raise, leave them out (a warning is logged that says
        how many), or keep them as they are.

    Returns
    -------
    texts : list of str
    labels : list
        Strings from CSV and TSV; from JSON lines also numbers and truth values.

    Raises
    ------
    ParseError
        With the line of what is wrong and the columns found; of rows without a label, also how many there are.
    """
    texts: list[str] = []
    labels: list[Any] = []
    for row_text, row_label in iter_table(path, text=text, label=label, format=format, unlabelled=unlabelled):
        texts.append(row_text)
        labels.append(row_label)
    return texts, labels
