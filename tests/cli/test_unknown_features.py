"""Features that were not in the training rows: ignored and counted by the commands, refused with --strict."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import OneVsRestSVC
from manyclass.data import ParseError, load_svmlight, load_xmc, save_svmlight, save_xmc
from manyclass.data.block_store import BlockStore
from manyclass.data.known_features import KnownFeatures
from manyclass.model import load_model


def wider(X, extra, seed=0):
    """The rows with some entries of features behind their last one: how many, and of how many features."""
    more = sp.random(X.shape[0], extra, 0.1, format="csr", dtype=np.float32, random_state=seed)
    return sp.hstack([X, more], "csr"), more.nnz, np.unique(more.indices).size


@pytest.fixture(params=[False, True], ids=["from 1", "from 0"])
def files(request, tmp_path, blobs):
    """Training rows, test rows, and the test rows with entries of features that the training rows do not have."""
    X, y = blobs(200, 0)
    save_svmlight(X, y, tmp_path / "train.svm", zero_based=request.param)
    X, y = blobs(60, 1)
    save_svmlight(X, y, tmp_path / "test.svm", zero_based=request.param)
    wide, *_ = wider(X, 7)
    save_svmlight(wide, y, tmp_path / "wide.svm", zero_based=request.param)
    return tmp_path


def test_predictions_are_those_without_the_unknown_features(shell, files, blobs):
    shell("train", "train.svm", "-m", "m")
    _, entries, features = wider(blobs(60, 1)[0], 7)
    expected = shell("predict", "m", "test.svm", "--scores")
    found = shell("predict", "m", "wide.svm", "--scores")
    assert found.stdout == expected.stdout and expected.stderr == ""
    assert found.stderr.startswith(f"wide.svm: ignored {entries} of ")
    assert f"not trained on their {features} features; --strict rejects" in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_evaluate_counts_what_it_ignores(shell, files, blobs):
    shell("train", "train.svm", "-m", "m")
    _, entries, features = wider(blobs(60, 1)[0], 7)
    known = shell.json("evaluate", "m", "test.svm")
    found = shell.json("evaluate", "m", "wide.svm")
    assert (known["entries_ignored"], known["features_ignored"]) == (0, 0)
    assert (found["entries_ignored"], found["features_ignored"]) == (entries, features)
    assert found["error"] == known["error"]
    assert f"ignored {entries} of" in shell("evaluate", "m", "wide.svm").stderr


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_strict_refuses_them_with_their_place(shell, files, command):
    shell("train", "train.svm", "-m", "m")
    (files / "few.svm").write_text("3 1:1\n5 1:1 99:1\n")
    refused = shell(command, "m", "few.svm", "--strict", code=2).stderr
    assert "few.svm:2:7: index 99 does not fit 20 features" in refused
    assert shell(command, "m", "few.svm").stdout and shell(command, "m", "test.svm", "--strict").stderr == ""


def test_a_store_with_more_features_is_read_alike(shell, files):
    shell("train", "train.svm", "-m", "m")
    shell("convert", "wide.svm", "wide")
    assert shell("predict", "m", "wide").stdout == shell("predict", "m", "test.svm").stdout
    found, text = (shell.json("evaluate", "m", name) for name in ("wide", "wide.svm"))
    assert {name: found[name] for name in ("error", "entries_ignored", "features_ignored")} == {
        name: text[name] for name in ("error", "entries_ignored", "features_ignored")
    }
    for command in ("predict", "evaluate"):
        refused = shell(command, "m", "wide", "--strict", code=2).stderr
        assert "wide has 27 features, but the model knows 20" in refused
    # In Python rows must have the features of the training rows, from wherever they come.
    X, y = load_svmlight("train.svm")
    with pytest.raises(ValueError, match="27 features"):
        OneVsRestSVC().fit(X, y).predict(BlockStore("wide"))


def test_sets_of_labels_and_xmc_text_are_read_alike(shell, tmp_path, blobs):
    X, y = blobs(200, 0)
    Y = sp.csr_matrix((np.ones(200, np.int32), (np.arange(200), y)))
    wide, entries, features = wider(X, 7)
    save_xmc(X, Y, tmp_path / "train.txt")
    save_xmc(wide, Y, tmp_path / "wide.txt")
    shell("train", "train.txt", "--loss", "squared_hinge", "-m", "m")
    assert shell("predict", "m", "wide.txt").stdout == shell("predict", "m", "train.txt").stdout
    report = shell.json("evaluate", "m", "wide.txt")
    assert (report["entries_ignored"], report["features_ignored"]) == (entries, features)
    assert "the header has 27 features" in shell("evaluate", "m", "wide.txt", "--strict", code=2).stderr


def test_an_index_beyond_32_bits_is_ignored_too(shell, files):
    shell("train", "train.svm", "-m", "m")
    expected = shell("predict", "m", "test.svm").stdout.splitlines()[0]
    first = (files / "test.svm").read_text().splitlines()[0]
    (files / "far.svm").write_text(f"{first} 123456789012:1\n")
    found = shell("predict", "m", "far.svm")
    assert found.stdout == f"{expected}\n" and "ignored 1 of" in found.stderr


# ---- In Python


def test_load_svmlight_refuses_unless_told_to_ignore(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:1 3:2 9:3\n2 9:4 2:5\n")
    with pytest.raises(ParseError, match="index 9 does not fit 3 features"):
        load_svmlight(tmp_path / "x.svm", n_features=3)
    X, y = load_svmlight(tmp_path / "x.svm", n_features=3, unknown_features="ignore")
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 2], [0, 5, 0]])
    assert X.has_sorted_indices and X.indices.dtype == np.int32 and y.tolist() == [1, 2]
    with pytest.raises(ValueError, match="unknown_features"):
        load_svmlight(tmp_path / "x.svm", n_features=3, unknown_features="drop")
    with pytest.raises(ValueError, match="n_features"):
        load_svmlight(tmp_path / "x.svm", unknown_features="ignore")


@pytest.mark.parametrize(("text", "expected"), [("1 0:1 2:2 3:3\n", [1, 0, 2]), ("1 1:1 2:2 3:3\n", [1, 2, 3])])
def test_what_is_unknown_depends_on_what_indices_count_from(tmp_path, text, expected):
    (tmp_path / "x.svm").write_text(text)
    X, _ = load_svmlight(tmp_path / "x.svm", n_features=3, unknown_features="ignore")
    np.testing.assert_array_equal(X.toarray(), [expected])


def test_known_features_are_counted_over_all_rows():
    known = KnownFeatures(3)
    rows = sp.csr_matrix([[1, 0, 0, 5, 0], [0, 0, 2, 0, 0], [0, 0, 0, 0, 7]], dtype=np.float32)
    np.testing.assert_array_equal(known.keep(rows).toarray(), [[1, 0, 0], [0, 0, 2], [0, 0, 0]])
    known.keep(rows[:1])
    assert (known.entries, known.entries_ignored, known.features_ignored) == (6, 3, 2)
    narrow = known.keep(sp.csr_matrix([[1.0]]))
    assert narrow.shape == (1, 3) and known.entries_ignored == 3


def test_a_file_of_unknown_features_alone_is_rows_without_features(shell, files):
    shell("train", "train.svm", "-m", "m")
    (files / "other.svm").write_text("3 50:1 60:2\n5 70:1\n")
    found = shell("predict", "m", "other.svm")
    assert len(found.stdout.splitlines()) == 2 and "ignored 3 of 3 entries" in found.stderr
    X = sp.csr_matrix((2, 20), dtype=np.float32)
    assert found.stdout.split() == [str(label) for label in load_model("m").predict(X).tolist()]


def test_load_xmc_is_of_its_header(tmp_path):
    (tmp_path / "x.txt").write_text("1 2 3\n0,2 5:1\n")
    with pytest.raises(ParseError, match="index 5 does not fit 2 features, the number in the header"):
        load_xmc(tmp_path / "x.txt")
