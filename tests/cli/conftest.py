import json

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from manyclass.cli.app import app
from manyclass.data import save_svmlight

TOPICS = {
    "animals": "cat dog horse sheep fur paw tail",
    "food": "bread cheese soup apple oven plate salt",
    "travel": "train ship road ticket harbour map bridge",
}


class Shell:
    """Runs commands in a folder of their own, as a shell would."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, *arguments, stdin=None, code=0):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    def json(self, *arguments, **options):
        return json.loads(self(*arguments, "--json", **options).stdout)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)


def blobs(n, seed, K=4, d=20):
    """Rows of K classes 3, 5, 7 ... that a linear model tells apart; the first feature is always there."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % K
    X = sp.random(n, d, 0.3, format="lil", dtype=np.float64, random_state=seed)
    X[:, 0] = 1.0
    X[np.arange(n), 1 + codes] = 2.0 + rng.random(n)
    return sp.csr_matrix(X.astype(np.float32)), 3 + 2 * codes


@pytest.fixture(name="blobs")
def make_blobs():
    return blobs


@pytest.fixture
def svm(tmp_path):
    for name, n, seed in (("train.svm", 200, 0), ("test.svm", 60, 1)):
        save_svmlight(*blobs(n, seed), tmp_path / name)
    return tmp_path


def label_sets(n, seed, signal=2.0):
    """Labels 3, 5, 7, 9 by the features; every third row also has label 12, every tenth none at all."""
    rng = np.random.default_rng(seed)
    y = 3 + 2 * (np.arange(n) % 4)
    X = sp.random(n, 20, 0.3, format="lil", dtype=np.float32, random_state=seed)
    X[np.arange(n), y] = signal + rng.random(n)
    X[:, 0] = 1.0
    Y = sp.lil_matrix((n, 13), dtype=int)
    Y[np.arange(n), y] = 1
    Y[::3, 12] = 1
    Y[::10] = 0
    return X.tocsr(), Y.tocsr()


@pytest.fixture(name="label_sets")
def make_label_sets():
    return label_sets


def sentences(n, seed):
    rng = np.random.default_rng(seed)
    for row in range(n):
        label = sorted(TOPICS)[row % len(TOPICS)]
        words = rng.choice(TOPICS[label].split(), 3)
        yield f"a {' '.join(words)}, and so on", label


@pytest.fixture
def tables(tmp_path):
    for name, n, seed in (("train", 90, 0), ("test", 30, 1)):
        rows = list(sentences(n, seed))
        (tmp_path / f"{name}.csv").write_text("topic,body\n" + "".join(f'{label},"{text}"\n' for text, label in rows))
        (tmp_path / f"{name}.tsv").write_text("label\ttext\n" + "".join(f"{label}\t{text}\n" for text, label in rows))
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
        )
    return tmp_path
