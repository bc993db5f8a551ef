"""What the commands read for a model: rows as it was trained on them, with or without labels."""

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import ParseError, RowMatrix, read_table
from ..data.known_features import KnownFeatures
from ..data.label_sets import keep_known
from ..data.streams import open_input, stream_name
from ..estimators.predictor import by_blocks
from ..model import LinearModel
from . import output, ranks
from .inputs import (
    ROWS_OF_FEATURES,
    Columns,
    DataFormat,
    ParsedRows,
    PredictFormat,
    check_is_file,
    naming,
    open_store,
    parsed,
    told_by_file,
    told_by_name,
)
from .output import InputError

LINES_AT_ONCE = 4096

logger = logging.getLogger("manyclass.cli")


class ModelInput:
    """A file or a store to be read for a model.

    Features that the model was not trained on are left out, and counted.

    Parameters
    ----------
    model : LinearModel
    path : str
        A file, a store, or `-` for standard input; with `{rank}` in its name each rank of mpirun reads its own.
    format : DataFormat or PredictFormat
        `auto` follows the model and the name of the file.
    columns : Columns
        Of a table.
    strict : bool
        Whether to refuse features that the model was not trained on.

    Attributes
    ----------
    store : BlockStore or None
        If the path names one.
    divided : bool
        Whether the ranks of mpirun read different files.
    """

    def __init__(
        self,
        model: LinearModel,
        path: str,
        format: DataFormat | PredictFormat,
        columns: Columns,
        *,
        strict: bool,
    ):
        self.store = open_store(path)
        self.divided = ranks.one_each(path)
        self._model, self._name, self._path = model, path, path
        self._format, self._columns, self._strict = format.value, columns, strict
        self._known = KnownFeatures(model.n_features)
        if self.store is None:
            self._path = ranks.own_file(path)
            check_is_file(self._path)
        elif strict and self.store.n_features > model.n_features:
            raise InputError(
                f"{path} has {self.store.n_features} features, but the model knows {model.n_features}; leave out "
                "--strict to ignore the others"
            )

    # ---- Files

    def labelled(self) -> tuple[RowMatrix, Any]:
        """Rows with one label each, prepared for the model."""
        kind = self._kind("svmlight")
        if kind == "xmc":
            raise InputError(
                f"{stream_name(self._path)}: XMC text has sets of labels, but the model knows one label per row"
            )

        def read() -> tuple[RowMatrix, Any]:
            if kind == "svmlight":
                found = self._parsed(kind, multilabel=False)
                return self._model.prepare(found.X), found.labels
            texts, labels = read_table(
                self._path,
                text=self._columns.text or self._model.settings.get("text_column"),
                label=self._columns.label or self._model.settings.get("label_column"),
                format=kind,  # type: ignore[arg-type]
                unlabelled=self._columns.unlabelled,
            )
            return self._model.prepare(texts), labels

        with naming(self._path):
            return ranks.read_rows(read, divided=self.divided)

    def label_sets(self) -> tuple[RowMatrix, sp.csr_matrix, np.ndarray]:
        """Rows with sets of labels, prepared for the model.

        Returns
        -------
        X : RowMatrix of shape (n, n_features)
        Y : csr_matrix of shape (n, K)
            Ones for the labels that the model knows, by its classes.
        unknown : ndarray of shape (n,)
            How many others each row has.
        """
        kind = self._kind("svmlight")
        if kind not in ROWS_OF_FEATURES:
            raise InputError(
                f"{stream_name(self._path)}: the rows of {kind} have one label each, the model knows sets of labels"
            )

        def read() -> tuple[RowMatrix, sp.csr_matrix, np.ndarray]:
            X, labels, classes, _ = self._parsed(kind, multilabel=True)
            assert classes is not None
            return self._model.prepare(X), *keep_known(labels, classes, self._model.classes, unknown="count")

        with naming(self._path):
            return ranks.read_rows(read, divided=self.divided)

    def unlabelled(self) -> Iterator[RowMatrix]:
        """Rows, prepared for the model, whose labels do not matter; lines of text come in batches."""
        prepare = self._model.prepare
        kind = self._kind("lines" if self._model.chain.takes_text else "svmlight")

        def read() -> RowMatrix:
            if kind in ROWS_OF_FEATURES:
                return prepare(self._parsed(kind, multilabel="auto").X)
            # A table to predict needs no labels: the text is read in their place, too.
            column = self._columns.text or self._model.settings.get("text_column") or "text"
            texts, _ = read_table(self._path, text=column, label=column, format=kind, unlabelled="keep")  # type: ignore[arg-type]
            return prepare(texts)

        with naming(self._path):
            if kind != "lines":
                yield ranks.read_rows(read, divided=self.divided)
                return
            for texts in _lines(self._path):
                yield prepare(texts)

    def _kind(self, otherwise: str) -> str:
        path, kind = self._path, self._format
        if kind == "auto":
            kind = told_by_file(path) if otherwise == "svmlight" else told_by_name(path) or otherwise
        if kind not in ROWS_OF_FEATURES and not self._model.chain.takes_text:
            raise InputError(
                f"{stream_name(path)}: {kind} holds texts, but the model was trained on rows of features; "
                "pass svmlight text (--format svmlight), or train on a table with a text column"
            )
        return kind

    def _parsed(self, kind: str, *, multilabel: bool | str) -> ParsedRows:
        # A file of few rows may lack index 0 by chance: count as the training file did.
        base = self._model.settings.get("index_base")
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
        """What `find` gives for the rows of a store, in the order of their ids."""
        assert self.store is not None
        return by_blocks(self.store, self._model, find, self._known.keep)

    # ---- What was left out

    def ignored(self) -> dict[str, int]:
        """Say how many entries were left out when all rows were read, and give the numbers."""
        known = self._known
        if self.divided:
            known = KnownFeatures(self._model.n_features)
            for others in ranks.peers().gather(self._known):
                known.add(others)
        if known.entries_ignored:
            logger.warning(
                "%s: ignored %s of %s entries: the model was not trained on their %s; --strict refuses them",
                stream_name(self._name),
                output.count(known.entries_ignored),
                output.count(known.entries),
                output.counted(known.features_ignored, "feature"),
            )
        return {"entries_ignored": known.entries_ignored, "features_ignored": known.features_ignored}


def _lines(path: str) -> Iterator[list[str]]:
    number = 0
    with open_input(path) as stream:
        while batch := list(islice(stream, LINES_AT_ONCE)):
            texts = []
            for line in batch:
                number += 1
                try:
                    texts.append(line.decode().rstrip("\r\n"))
                except UnicodeDecodeError as error:
                    reason = f"not UTF-8 ({error.reason}); convert the file first"
                    raise ParseError(stream_name(path), number, error.start + 1, reason) from error
            yield texts
