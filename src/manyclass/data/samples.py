"""Small sample files to experiment with, as used in the documentation."""

import csv
import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .svmlight import save_svmlight
from .synthetic import make_text_like
from .xmc import save_xmc

TOPICS = {
    "business": "bank market shares profit company price trade investors merger inflation",
    "culture": "novel painter orchestra theatre museum film poet exhibition festival prize",
    "health": "doctors vaccine hospital patients disease diet nurses virus therapy sleep",
    "politics": "parliament votes budget minister election law coalition opposition treaty campaign",
    "science": "telescope cells experiment theory climate laboratory species particles orbit genes",
    "sport": "match goal coach season team champion race stadium injury transfer",
}
EVERYWHERE = ["the", "a", "on", "of", "after", "new", "says", "this", "week", "more", "than"]
# Fraction of topic words drawn from the row's own topic; the others come from any topic, so the task is not trivial.
OWN_WORDS = 0.7
TEXT_ROWS = {"news.csv": 400, "test.csv": 100}
# Like WordNet glosses: few words per row, many of them typical of the class.
CLASSES = {"n": 600, "n_test": 200, "K": 20, "d": 1000, "nnz": 20}
LABELS = {"n": 400, "n_test": 100, "K": 50, "d": 800, "nnz": 15}


def sample_files() -> list[str]:
    """Return the names of the sample files; they include a Parquet file if pyarrow is installed."""
    parquet = ["news.parquet"] if importlib.util.find_spec("pyarrow") else []
    rows = ["big.svm", "big.svm.gz", "test.svm", "more.svm", "part-0.svm", "part-1.svm"]
    return [*TEXT_ROWS, "new.csv", *parquet, *rows, "train.txt", "test.txt"]


def write_samples(folder: str | os.PathLike[str]) -> list[Path]:
    """Write a small file of every supported kind, always with the same contents.

    FileExistsError if one of the files already exists; nothing is written in that case.
    """
    folder = Path(folder)
    paths = [folder / name for name in sample_files()]
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path} already exists; choose an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    _write_tables(folder)
    _write_rows(folder)
    _write_label_sets(folder)
    return paths


def _news(n: int, rng: np.random.Generator) -> dict[str, list[Any]]:
    topics = rng.choice(sorted(TOPICS), n).tolist()
    bodies = []
    for topic in topics:
        about = np.where(rng.random(4) < OWN_WORDS, topic, rng.choice(sorted(TOPICS), 4))
        words = [*(rng.choice(TOPICS[one].split()) for one in about.tolist()), *rng.choice(EVERYWHERE, 4)]
        bodies.append(" ".join(rng.permutation(words)))
    return {"id": list(range(1, n + 1)), "topic": topics, "body": bodies}


def _write_tables(folder: Path) -> None:
    rng = np.random.default_rng(0)
    tables = {name: _news(n, rng) for name, n in TEXT_ROWS.items()}
    if "news.parquet" in sample_files():
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(tables["news.csv"]), folder / "news.parquet")
    unlabelled = _news(20, rng)
    del unlabelled["topic"]
    for name, table in (tables | {"new.csv": unlabelled}).items():
        with open(folder / name, "w", newline="", encoding="utf-8") as out:
            csv.writer(out, lineterminator="\n").writerows([list(table), *zip(*table.values(), strict=True)])


def _write_rows(folder: Path) -> None:
    X, y, X_test, y_test = make_text_like("wordnet", seed=0, **CLASSES)
    half = X.shape[0] // 2
    for name, rows, labels in (
        ("big.svm", X, y),
        ("big.svm.gz", X, y),
        ("part-0.svm", X[:half], y[:half]),
        ("part-1.svm", X[half:], y[half:]),
        ("test.svm", X_test[:100], y_test[:100]),
        ("more.svm", X_test[100:], y_test[100:]),
    ):
        save_svmlight(rows, labels, folder / name)


def _write_label_sets(folder: Path) -> None:
    """Write rows that are sums of two rows, with the labels of both."""
    X, y, X_test, y_test = make_text_like("wordnet", seed=0, **LABELS)
    for name, rows, labels in (("train.txt", X, y), ("test.txt", X_test, y_test)):
        other = np.roll(np.arange(labels.size), 1)
        both = np.concatenate([labels, labels[other]])
        places = np.concatenate([np.arange(labels.size)] * 2)
        Y = sp.csr_matrix((np.ones(both.size), (places, both)), shape=(labels.size, LABELS["K"]))
        save_xmc((rows + rows[other]).astype(np.float32), Y, folder / name)
