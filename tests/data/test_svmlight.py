"""svmlight text is read back bit for bit, and malformed text is rejected with its place."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from csr_rows import assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from manyclass.data import ParseError, load_svmlight, save_svmlight

zstandard = pytest.importorskip("zstandard")

INT64_MAX = 2**63 - 1
COMPRESSORS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def read(text, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return load_svmlight(io.BytesIO(data), **options)


class Trickle(io.RawIOBase):
    """A stream that returns a few bytes at a time."""

    def __init__(self, data, step):
        self.data, self.step = data, step

    def readable(self):
        return True

    def readinto(self, buffer):
        piece, self.data = self.data[: self.step], self.data[self.step :]
        buffer[: len(piece)] = piece
        return len(piece)


def test_reads_labels_features_comments_and_blank_lines():
    X, y = read("# head\n\n3 1:0.5 4:-2 # tail\r\n-1\t2:1e-3\t\n  \n7\n+2 3:.5#x\n")
    np.testing.assert_array_equal(y, [3, -1, 7, 2])
    assert y.dtype == np.int64 and X.dtype == np.float32 and X.indices.dtype == np.int32
    np.testing.assert_array_equal(
        X.toarray(), np.float32([[0.5, 0, 0, -2], [0, 1e-3, 0, 0], [0, 0, 0, 0], [0, 0, 0.5, 0]])
    )


def test_last_line_needs_no_newline_and_a_byte_order_mark_is_skipped():
    X, y = read(b"\xef\xbb\xbf1 1:2\n2 2:3")
    assert X.shape == (2, 2) and list(y) == [1, 2]


def test_empty_input_is_no_rows():
    X, y = read("")
    assert X.shape == (0, 0) and y.shape == (0,)


def test_index_zero_decides_the_base():
    assert read("1 1:1 3:1\n")[0].shape == (1, 3)
    assert read("1 1:1 3:1\n2 0:1\n")[0].shape == (2, 4)
    assert read("1 1:1 3:1\n", zero_based=True)[0].shape == (1, 4)
    assert read("1 1:1 3:1\n", n_features=9)[0].shape == (1, 9)


def test_real_labels_make_all_labels_real():
    _, y = read("1 1:1\n2.5 1:1\n3 1:1\n")
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, [1, 2.5, 3])
    assert read("1.0 1:1\n")[1].dtype == np.float64


def test_several_labels_and_none_give_an_indicator():
    X, Y = read("3,1 1:1\n 2:1\n2:5 3:1\n0 1:1\n")
    assert X.shape == (4, 3)
    np.testing.assert_array_equal(Y.toarray(), [[0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    assert Y.has_canonical_format and np.all(np.diff(Y[[0]].indices) > 0)
    assert sp.issparse(read("1 1:1\n", multilabel=True)[1])


def test_unsorted_rows_are_sorted():
    X, _ = read("1 5:5 2:2 9:9 1:1\n")
    np.testing.assert_array_equal(X.indices, [0, 1, 4, 8])
    np.testing.assert_array_equal(X.data, [1, 2, 5, 9])
    assert X.has_sorted_indices


@pytest.mark.parametrize("largest", [2**31 - 1, 2**31, 2**31 + 1, 10**18, INT64_MAX])
def test_indices_of_64_bits(largest):
    X, _ = read(f"1 1:1 7:2\n1 2:1 {largest}:3\n1 3:1\n")
    assert X.shape[1] == largest
    assert X.indices.dtype == X.indptr.dtype == (np.int32 if largest < 2**31 else np.int64)
    np.testing.assert_array_equal(X.indices, [0, 6, 1, largest - 1, 2])


ERRORS = [
    ("1 1:1\n2 abc\n", 2, 3, "expected index:value, found 'abc'"),
    ("1 1:1\n2 1:1 7\n", 2, 7, "expected index:value, found '7'"),
    ("1 1:x\n", 1, 5, "expected a number"),
    ("1 1:\n", 1, 5, "found the end of the line"),
    ("1 1:1e\n", 1, 5, "expected a number"),
    ("1 1:1.2.3\n", 1, 5, "expected a number"),
    ("1 1:0x10\n", 1, 5, "expected a number"),
    ("1 1 :1\n", 1, 3, "expected index:value"),
    ("1 -3:1\n", 1, 3, "negative index"),
    ("1 1.5:1\n", 1, 3, "expected index:value"),
    ("1 2:nan\n", 1, 5, "not finite"),
    ("1 2:-inf\n", 1, 5, "not finite"),
    ("1 2:Infinity\n", 1, 5, "not finite"),
    ("1 2:1e39\n", 1, 5, "float64"),
    ("1 5:1 2:1 5:1\n", 1, 11, "index 5 is given twice"),
    ("1 2:1 2:1\n", 1, 7, "index 2 is given twice"),
    ("1 qid:3 1:1\n", 1, 3, "query ids are not supported"),
    ("a 1:1\n", 1, 1, "expected a label, found 'a'"),
    ("1,,2 1:1\n", 1, 3, "expected a label"),
    ("1, 1:1\n", 1, 3, "expected a label"),
    ("nan 1:1\n", 1, 1, "not a finite number"),
    ("1,1 1:1\n", 1, 1, "label 1 is given twice"),
    ("1 1:1\n0,-2 1:1\n", 2, 3, "integer of at least 0"),
    ("1.5 1:1\n0,2 1:1\n", 1, 1, "integer of at least 0"),
    (b"1 1:1\n\x00\x01\x02 3\n", 2, 1, "found '\\x00\\x01\\x02'"),
    (b"1 1:1 \x00\x01\n", 1, 7, "binary data"),
    (f"1 {INT64_MAX + 1}:1\n", 1, 3, "does not fit 64 bits"),
    (f"1 0:1 {INT64_MAX}:1\n", 1, 7, "does not fit 64 bits"),
    ("99999999999999999999 1:1\n2,3 1:1\n", 1, 1, "integer of at least 0"),
    ("1,9223372036854775807 1:1\n", 1, 3, "integer of at least 0"),
]


@pytest.mark.parametrize(("text", "line", "column", "reason"), ERRORS)
def test_errors_name_the_place_and_the_reason(text, line, column, reason):
    with pytest.raises(ParseError) as caught:
        read(text)
    assert reason in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"<BytesIO>:{line}:{column}: ")


def test_errors_of_declarations():
    with pytest.raises(ParseError, match=r":2:7: index 0, but features are counted from 1"):
        read("1 1:1\n1 3:1 0:1\n", zero_based=False)
    with pytest.raises(ParseError, match=r":1:3: index 4 does not fit 3 features"):
        read("1 4:1\n", n_features=3)
    with pytest.raises(ParseError, match=r":1:3: index 3 does not fit 3 features"):
        read("1 3:1\n1 0:1\n", n_features=3)
    with pytest.raises(ParseError, match=r":2:1: expected one label, found 2"):
        read("1 3:1\n1,2 1:1\n", multilabel=False)
    with pytest.raises(ParseError, match=r":1:1: expected one label, found none"):
        read("3:1\n", multilabel=False)
    with pytest.raises(ValueError, match="dtype"):
        read("1 1:1\n", dtype=np.int32)
    with pytest.raises(ValueError, match="zero_based"):
        read("1 1:1\n", zero_based="maybe")


def test_error_carries_the_path_and_can_be_pickled(tmp_path):
    path = tmp_path / "file.svm"
    path.write_text("1 1:1\n" * 16 + "12345 1:0.25 33:1.5 abc\n")
    with pytest.raises(ParseError, match=r"file\.svm:17:21: expected index:value, found 'abc'; ") as caught:
        load_svmlight(path)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.line == 17


def test_nonfinite_values_on_request():
    X, _ = read("1 1:nan 2:-inf 3:+Infinity\n", allow_nonfinite=True)
    np.testing.assert_array_equal(X.data, np.float32([np.nan, -np.inf, np.inf]))


def test_text_files_are_rejected():
    with pytest.raises(TypeError, match="binary mode"):
        load_svmlight(io.StringIO("1 1:1\n"))


def correctly_rounded_float(text):
    # NumPy parses via double, which can round twice, so compare the neighbours exactly.
    from fractions import Fraction

    exact = Fraction(text)
    near = np.float32(float(text))
    candidates = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    even = lambda c: struct.unpack("I", struct.pack("f", c))[0] & 1  # noqa: E731
    return min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), even(c)))


DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64).map(repr),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda x: f"{x:.9g}"),
    st.builds(
        lambda sign, whole, fraction, e: f"{sign}{whole}.{fraction}{e}",
        st.sampled_from(["", "-", "+"]),
        st.integers(0, 10**12),
        st.text("0123456789", max_size=25),
        st.one_of(st.just(""), st.integers(-40, 20).map(lambda e: f"e{e}")),
    ),
)


@given(DECIMALS)
@settings(max_examples=500)
def test_float64_values_are_correctly_rounded(text):
    X, _ = read(f"1 1:{text}\n", dtype=np.float64)
    assert X.data[0] == float(text)


@given(DECIMALS.filter(lambda text: abs(float(text)) < 3.4e38))
@settings(max_examples=500)
def test_float32_values_are_correctly_rounded(text):
    X, _ = read(f"1 1:{text}\n")
    assert X.data[0] == correctly_rounded_float(text)


@given(st.integers(2**23, 2**24 - 1), st.integers(-60, 60), st.sampled_from(["", "0000001", "9"]))
@settings(max_examples=200)
def test_midpoints_of_floats_round_to_even(mantissa, power, tail):
    # Exactly between two floats or slightly above, where rounding to double first gives a wrong result.
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 200
        value = (Decimal(2 * mantissa + 1) / 2) * Decimal(2) ** power
        text = f"{value:f}"
    if tail:
        text += ("" if "." in text else ".") + tail
    X, _ = read(f"1 1:{text}\n")
    assert X.data[0] == correctly_rounded_float(text)


@pytest.mark.parametrize("text", ["1e-400", "-0.0e-999999", "0e999999", "0." + "0" * 400 + "1"])
def test_values_too_small_round_to_zero(text):
    assert read(f"1 1:{text}\n", dtype=np.float64)[0].data[0] == 0


@pytest.mark.parametrize("text", ["1e400", "1" + "0" * 400, "0.0001e400", "1" * 30 + "e300"])
def test_values_too_large_are_rejected(text):
    with pytest.raises(ParseError, match="too large for float64"):
        read(f"1 1:{text}\n", dtype=np.float64)


@st.composite
def data_sets(draw):
    n, d = draw(st.integers(1, 8)), draw(st.integers(1, 12))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    value = st.floats(width=32 if dtype is np.float32 else 64, allow_nan=False, allow_infinity=False)
    dense = np.array(draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=n, max_size=n)), dtype)
    keep = np.array(draw(st.lists(st.lists(st.booleans(), min_size=d, max_size=d), min_size=n, max_size=n)))
    kind = draw(st.sampled_from(["integers", "reals", "several"]))
    if kind == "integers":
        y = np.array(draw(st.lists(st.integers(-(2**63), INT64_MAX), min_size=n, max_size=n)))
    elif kind == "reals":
        real = st.floats(allow_nan=False, allow_infinity=False)
        y = np.array(draw(st.lists(real, min_size=n, max_size=n)))
    else:
        y = sp.csr_matrix(np.array(draw(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=n,
                                                 max_size=n)), np.int32))  # fmt: skip
        keep[:, 0] = True  # empty rows are written as an explicit zero, and have their own test
        dense[:, 0] = 1
    return sp.csr_matrix(np.where(keep, dense, 0)), y


@given(data_sets(), st.booleans(), st.integers(1, 9), st.sampled_from(["", ".gz", ".bz2", ".xz", ".zst"]))
@settings(max_examples=150)
def test_rows_are_read_back_bit_for_bit(tmp_path_factory, data, zero_based, step, suffix):
    X, y = data
    path = tmp_path_factory.mktemp("svm") / f"data.svm{suffix}"
    save_svmlight(X, y, path, zero_based=zero_based)
    again, labels = load_svmlight(
        Trickle(path.read_bytes(), step),
        n_features=X.shape[1],
        dtype=X.dtype,
        zero_based=zero_based,
        multilabel=sp.issparse(y),
    )
    assert_same(again, X)
    if sp.issparse(y):
        assert labels.shape[1] <= y.shape[1]
        np.testing.assert_array_equal(labels.toarray(), y.toarray()[:, : labels.shape[1]])
        assert y.toarray()[:, labels.shape[1] :].sum() == 0
    else:
        assert labels.dtype == y.dtype
        np.testing.assert_array_equal(labels, y)


def test_an_empty_row_without_columns_is_rejected(tmp_path):
    X, Y = sp.csr_matrix((2, 0), dtype=np.float32), sp.csr_matrix([[0, 1], [0, 0]])
    with pytest.raises(ValueError, match="cannot be written"):
        save_svmlight(X, Y, tmp_path / "x.svm")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_row_becomes_an_explicit_zero(tmp_path):
    X, Y = sp.csr_matrix((2, 3), dtype=np.float32), sp.csr_matrix([[0, 1], [0, 0]])
    save_svmlight(X, Y, tmp_path / "x.svm")
    again, labels = load_svmlight(tmp_path / "x.svm", n_features=3)
    assert again.shape == (2, 3) and again.nnz == 1 and again.sum() == 0
    np.testing.assert_array_equal(labels.toarray(), Y.toarray())


LINES = st.text("0123456789:, .-+e#\n\r\tnaif\0\xff", max_size=60)


def outcome(data, step):
    try:
        X, y = load_svmlight(Trickle(data, step))
    except ParseError as error:
        return error.line, error.column, error.reason
    y = y.toarray() if sp.issparse(y) else y
    return X.shape, X.indices.tolist(), X.data.tolist(), X.indptr.tolist(), y.tolist()


@given(LINES, st.integers(1, 9))
@settings(max_examples=500)
def test_the_result_does_not_depend_on_the_chunk_size(text, step):
    data = text.encode("latin-1")
    assert outcome(data, step) == outcome(data, 10**6)


def test_scikit_learn_reads_the_same(tmp_path):
    X = sp.random(300, 50, 0.2, "csr", np.float64, random_state=0)
    y = np.arange(300) % 7
    save_svmlight(X, y, tmp_path / "x.svm")
    theirs, labels = load_svmlight_file(str(tmp_path / "x.svm"), n_features=50)
    ours, _ = load_svmlight(tmp_path / "x.svm", n_features=50, dtype=np.float64)
    np.testing.assert_array_equal(ours.toarray(), X.toarray())
    np.testing.assert_array_equal(theirs.toarray(), X.toarray())
    np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize("suffix", COMPRESSORS)
class TestCompressed:
    text = b"".join(b"%d 1:%d 7:0.5\n" % (k % 9, k) for k in range(3000))

    def test_compression_is_detected_from_the_content(self, suffix, tmp_path):
        path = tmp_path / "plain-name"
        path.write_bytes(COMPRESSORS[suffix](self.text))
        assert_same(load_svmlight(path)[0], read(self.text)[0])

    def test_concatenated_members(self, suffix):
        half = self.text.index(b"\n", len(self.text) // 2)
        packed = COMPRESSORS[suffix](self.text[:half]) + COMPRESSORS[suffix](self.text[half:])
        assert_same(read(packed)[0], read(self.text)[0])

    def test_cut_short_is_an_error_wherever_the_cut_is(self, suffix):
        packed = COMPRESSORS[suffix](self.text)
        for cut in (8, len(packed) // 2, len(packed) - 1):
            with pytest.raises(ParseError, match="ends too early"):
                read(packed[:cut])

    def test_damage_is_an_error(self, suffix):
        packed = bytearray(COMPRESSORS[suffix](self.text))
        packed[len(packed) // 2 : len(packed) // 2 + 8] = b"\xff" * 8
        with pytest.raises(ParseError):
            read(bytes(packed))


def test_zero_padding_behind_gzip_and_xz():
    for suffix in (".gz", ".xz"):
        assert read(COMPRESSORS[suffix](b"1 1:1\n") + b"\0" * 40000)[0].shape == (1, 1)


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"4 2:1\n"))))
    assert load_svmlight("-")[1][0] == 4


def test_missing_zstandard_names_the_extra(monkeypatch):
    packed = COMPRESSORS[".zst"](b"1 1:1\n")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r'pip install "manyclass\[zstd\]"'):
        read(packed)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_reported():
    X = sp.identity(2000, dtype=np.float32, format="csr")
    with pytest.raises(OSError, match="space"):
        save_svmlight(X, np.arange(2000), "/dev/full")


def test_a_disk_that_is_full_at_the_end_leaves_nothing(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        save_svmlight(sp.identity(3, format="csr"), np.arange(3), tmp_path / "x.svm")
    assert list(tmp_path.iterdir()) == []


def test_save_rejects_input_that_cannot_be_read_back(tmp_path):
    X = sp.identity(3, format="csr")
    for y, reason in [
        ([1, 2], "X has 3 rows, but y has 2"),
        (["a", "b", "c"], "encode"),
        ([1, np.nan, 2], "row 1"),
    ]:
        with pytest.raises(ValueError, match=reason):
            save_svmlight(X, y, tmp_path / "x.svm")
    with pytest.raises(ValueError, match="row 0, column 1"):
        save_svmlight(np.array([[1.0, np.nan]]), [1], tmp_path / "x.svm")
    assert list(tmp_path.iterdir()) == []


def test_python_memory_does_not_follow_the_text():
    # Many blanks between few features: much text, but little data.
    packed = gzip.compress((b"1 1:1" + b" " * 20000 + b"2:1\n") * 2000)
    tracemalloc.start()
    try:
        X, _ = read(packed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.nnz == 4000
    assert peak < 20_000_000  # of 40 MB of text


PEAK_OF_READING = """
import resource, sys
from manyclass.data import load_svmlight
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
X, y = load_svmlight(sys.argv[1])
print(peak() - before, X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is counted in kB on Linux only")
def test_peak_memory_follows_the_nonzeros(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.standard_normal((20_000, 200), np.float32))
    save_svmlight(X, np.zeros(20_000, int), tmp_path / "x.svm")
    command = [sys.executable, "-c", PEAK_OF_READING, str(tmp_path / "x.svm")]
    grown, held = map(int, subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())
    assert held == X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    assert grown < 1.5 * held + 8_000_000 < (tmp_path / "x.svm").stat().st_size + held


def test_news20_equals_scikit_learn(tmp_path):
    folder = os.environ.get("MANYCLASS_DATA")
    if not folder or not (Path(folder) / "news20_bydate").is_dir():
        pytest.skip("set MANYCLASS_DATA to the folder of real data sets (news20_bydate)")
    path = Path(folder) / "news20_bydate" / "test.svm.xz"
    ours, y = load_svmlight(path, dtype=np.float64)
    plain = tmp_path / "plain.svm"
    plain.write_bytes(lzma.decompress(path.read_bytes()))
    theirs, labels = load_svmlight_file(str(plain), n_features=ours.shape[1])
    assert (ours != theirs).nnz == 0
    np.testing.assert_array_equal(y, labels)
