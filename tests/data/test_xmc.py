"""XMC files are read back exactly, and their header must match their rows."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import ParseError, load_xmc, save_xmc


def read(text):
    return load_xmc(io.BytesIO(text.encode()))


def test_reads_rows_without_labels_and_without_anything():
    X, Y = read("4 5 3\n2,0 0:1 4:2\n 1:3\n\n1\n\n")
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 0, 0, 2], [0, 3, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(Y.toarray(), [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0]])


def test_shape_is_the_header_and_not_what_occurs():
    X, Y = read("1 100 50\n0 1:1\n")
    assert X.shape == (1, 100) and Y.shape == (1, 50)


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "expected the header"),
        ("0,1 3:2\n", 1, 1, "expected the header"),
        ("1 2\n", 1, 4, "expected the header"),
        ("1 2 3 4\n", 1, 7, "exactly three counts"),
        ("1 2 -3\n", 1, 5, "expected the header"),
        ("1 2 2147483648\n", 1, 5, "more than the 2147483647 that are supported"),
        ("2 5 3\n0 1:1\n", 3, 1, "promises 2 rows, but the file ends after 1"),
        ("1 5 3\n0 1:1\n1 1:1\n", 3, 1, "promises 1 rows, but here is another"),
        ("1 5 3\n0 1:1 5:1\n", 2, 7, "index 5 does not fit 5 features"),
        ("1 5 3\n0,3 1:1\n", 2, 3, "label 3 is outside 0..2"),
        ("1 5 3\n-1 1:1\n", 2, 1, "label -1 is outside 0..2"),
        ("1 5 3\n1.5 1:1\n", 2, 1, "not an integer"),
    ],
)
def test_errors_name_the_place(text, line, column, reason):
    with pytest.raises(ParseError) as caught:
        read(text)
    assert reason in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_what_is_written_is_read_back(tmp_path, suffix):
    rng = np.random.default_rng(0)
    X = sp.random(5000, 30, 0.1, "csr", np.float32, random_state=rng)
    Y = sp.csr_matrix((rng.random((5000, 7)) < 0.2).astype(np.int32))
    save_xmc(X, Y, tmp_path / f"x.txt{suffix}")
    X2, Y2 = load_xmc(tmp_path / f"x.txt{suffix}")
    assert X2.shape == X.shape and (X2 != X).nnz == 0
    assert Y2.shape == Y.shape and (Y2 != Y).nnz == 0
    assert (np.diff(Y.indptr) + np.diff(X.indptr) == 0).any()  # some rows are empty


def test_bibtex_has_its_published_shape():
    folder = os.environ.get("MANYCLASS_DATA")
    if not folder or not (Path(folder) / "bibtex").is_dir():
        pytest.skip("set MANYCLASS_DATA to the folder of real data sets (bibtex)")
    X, Y = load_xmc(Path(folder) / "bibtex" / "train.txt.xz")
    assert X.shape == (4880, 1836) and Y.shape == (4880, 159)
