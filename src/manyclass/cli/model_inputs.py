"""Read rows for a model, in the way in which it was trained, with or without labels."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import ParseError, RowMatrix, read_table
from ..data.known_features import KnownFeatures
from ..data.label_sets import keep_known
from ..data.streams import open_input, stream_name
from ..data.text import iter_texts
from ..estimators.predictor import by_blocks
from ..model import LinearModel
from . import output, ranks
from .formats import ROWS_OF_FEATURES, FileOptions, kind_of, look_like_features, look_like_table
from .inputs import ParsedRows, check_is_file, naming, open_store, parsed, supposed
from .output import InputError

TEXTS_AT_ONCE = 4096
# Number of lines that decide whether a file holds texts.
LOOKED_AT = 10

logger = logging.getLogger("manyclass.cli")


class ModelInput:
    """A file or a store to be read for a model; features that it was not trained on are dropped and counted.

    With `{rank}` in the path, the file is `divided`: each rank of mpirun reads its own. `strict` rejects unknown
    features.
    """

    def __init__(self, model: LinearModel, path: str, file: FileOptions, *, strict: bool):
        self.store = open_store(path, file)
        self.divided = ranks.one_each(path)
        self._model, self._name, self._path = model, path, path
        self._file, self._strict = file, strict
        self._known = KnownFeatures(model.n_features)
        if self.store is None:
            self._path = ranks.own_file(path)
            check_is_file(self._path)
        elif self.store.chain.takes_text != model.chain.takes_text:
            kinds = ("rows of features", "texts")
            raise InputError(
                f"{path} was made from {kinds[self.store.chain.takes_text]}, but the model was trained on "
                f"{kinds[model.chain.takes_text]}; convert the data in the same way as the training data"
            )
        elif strict and self.store.n_features > model.n_features:
            raise InputError(
                f"{path} has {output.counted(self.store.n_features, 'feature')}, but the model knows "
                f"{output.count(model.n_features)}; omit --strict to ignore the others"
            )

    # ---- Files

    def labelled(self) -> tuple[RowMatrix, Any]:
        """Read rows with one label each, prepared for the model."""
        kind = self._kind()
        if kind == "xmc":
            raise InputError(
                f"{stream_name(self._path)}: XMC text has sets of labels, but the model has one label per row"
            )

        def read() -> tuple[RowMatrix, Any]:
            if kind == "svmlight":
                found = self._parsed(kind, multilabel=False)
                return self._model.prepare(found.X), found.labels
            label = self._file.label or self._model.settings.get("label_column")
            file = replace(self._file, text=self._text_column, label=label)
            texts, labels = read_table(self._path, **file.table(kind))
            return self._model.prepare(texts), labels

        with naming(self._path):
            return ranks.read_rows(read, divided=self.divided)

    def label_sets(self) -> tuple[RowMatrix, sp.csr_matrix, np.ndarray]:
        """Read rows prepared for the model, the labels that it knows as ones, and how many others each row has."""
        kind = self._kind()
        if kind not in ROWS_OF_FEATURES:
            raise InputError(
                f"{stream_name(self._path)}: {kind} has one label per row, but the model has sets of labels"
            )

        def read() -> tuple[RowMatrix, sp.csr_matrix, np.ndarray]:
            X, labels, classes, _ = self._parsed(kind, multilabel=True)
            assert classes is not None
            return self._model.prepare(X), *keep_known(labels, classes, self._model.classes, unknown="count")

        with naming(self._path):
            return ranks.read_rows(read, divided=self.divided)

    def unlabelled(self) -> Iterator[tuple[RowMatrix, list[Any] | None]]:
        """Yield rows prepared for the model (texts in batches), with the values of `--id-column` or None."""
        kind = self._kind(lines=True)
        with naming(self._path):
            if kind in ROWS_OF_FEATURES:

                def read() -> RowMatrix:
                    return self._model.prepare(self._parsed(kind, multilabel="auto").X)

                yield ranks.read_rows(read, divided=self.divided), None
                return
            how: Any = {"format": kind, "delimiter": self._file.delimiter}
            table = partial(iter_texts, self._path, text=self._text_column, id=self._file.id, **how)
            rows = self._lines() if kind == "lines" else table()
            while batch := list(islice(rows, TEXTS_AT_ONCE)):
                texts, ids = (list(column) for column in zip(*batch, strict=True))
                yield self._model.prepare(texts), None if self._file.id is None else ids

    @property
    def _text_column(self) -> str:
        return self._file.text or self._model.settings.get("text_column") or "text"

    def _lines(self) -> Iterator[tuple[str, None]]:
        with open_input(self._path) as stream:
            start = list(islice(stream, LOOKED_AT))
            if self._file.format == "auto":
                self._check_are_texts(start)
            for number, line in enumerate(chain(start, stream), 1):
                try:
                    yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n"), None
                except UnicodeDecodeError as error:
                    reason = f"not UTF-8 ({error.reason}); convert the file first"
                    raise ParseError(stream_name(self._path), number, error.start + 1, reason) from error

    def _check_are_texts(self, lines: list[bytes]) -> None:
        if look_like_features(lines):
            raise InputError(
                "these look like rows of features, but the model was trained on texts; pass texts or a table, or "
                "read each line as a text with --format lines"
            )
        if lines and (kind := look_like_table(lines[0], self._text_column)):
            logger.warning(
                "%s: each line is read as a text, but the first line looks like the header of a table; "
                "try --format %s",
                stream_name(self._path),
                kind,
            )

    def _kind(self, *, lines: bool = False) -> str:
        name, on_texts = stream_name(self._path), self._model.chain.takes_text
        kind = kind_of(self._path, self._file, otherwise="lines" if lines and on_texts else "svmlight")
        if kind not in ROWS_OF_FEATURES and not on_texts:
            raise InputError(
                f"{name}: {kind} holds texts, but the model was trained on rows of features; "
                "pass svmlight text (--format svmlight), or train on a table with a text column"
            )
        if kind in ROWS_OF_FEATURES and on_texts:
            raise InputError(
                f"{name}: {kind} holds rows of features, but the model was trained on texts; pass "
                f"{'texts, one per line, or ' * lines}a table, with --format if its name does not show the format"
            )
        return kind

    def _parsed(self, kind: str, *, multilabel: bool | str) -> ParsedRows:
        # A file of few rows may lack index 0 by chance, so number features as the training file did.
        base = self._model.settings.get("index_base")
        with supposed(self._file, "the model was trained on rows of features: pass svmlight or XMC text"):
            found = parsed(
                self._path,
                kind,
                self._model.dtype,
                n_features=self._model.n_features if self._strict else None,
                zero_based="auto" if base is None else base == 0,
                multilabel=multilabel,
            )
        return found._replace(X=self._known.keep(found.X))

    # ---- Stores

    def for_blocks(self, find: Callable[[RowMatrix], Sequence[Any]]) -> tuple[Any, ...]:
        """Return what `find` returns for the rows of a store, in the order of their ids."""
        assert self.store is not None
        return by_blocks(self.store, self._model, find, self._known.keep)

    # ---- Ignored features

    def ignored(self) -> dict[str, int]:
        """Report how many entries were ignored, after all rows have been read."""
        known = self._known
        if self.divided:
            known = KnownFeatures(self._model.n_features)
            for others in ranks.peers().gather(self._known):
                known.add(others)
        if known.entries_ignored:
            logger.warning(
                "%s: ignored %s of %s entries: the model was not trained on their %s; --strict rejects them",
                stream_name(self._name),
                output.count(known.entries_ignored),
                output.count(known.entries),
                output.counted(known.features_ignored, "feature"),
            )
        return {"entries_ignored": known.entries_ignored, "features_ignored": known.features_ignored}
