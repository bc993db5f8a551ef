"""Text features survive storage to the last bit; tables are read or refused with the line."""

import gzip
import json
from io import BytesIO

import numpy as np
import pytest
from safetensors.numpy import load, save

from manyclass.data import ParseError, TextFeatures, read_table

TEXTS = [
    "a dog barked, a Dog slept",
    "the cat slept",
    "naïve café dogs",
    "dog cat mouse",
    "mouse mouse mouse",
]


def test_rows_are_what_they_say():
    X = TextFeatures().fit_transform(TEXTS)
    assert X.dtype == np.float32 and X.shape[0] == len(TEXTS)
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1, rtol=1e-6)


def test_storage_gives_the_same_rows_to_the_last_bit():
    features = TextFeatures(min_df=2)
    X = features.fit_transform(TEXTS)
    again = TextFeatures.from_tensors(load(save(features.to_tensors())))
    assert again.min_df == 2 and list(again.words) == list(features.words)
    for a, b in [
        (X, again.transform(TEXTS)),
        (features.transform(["new dog"]), again.transform(["new dog"])),
    ]:
        np.testing.assert_array_equal(a.indices, b.indices)
        np.testing.assert_array_equal(a.data, b.data)
    for name, tensor in features.to_tensors().items():
        np.testing.assert_array_equal(again.to_tensors()[name], tensor)


def test_unfitted_features_say_so():
    with pytest.raises(ValueError, match="fit_transform first"):
        TextFeatures().transform(TEXTS)


def bytes_of(text):
    return np.frombuffer(text if isinstance(text, bytes) else text.encode(), np.uint8)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text.idf": None}, "lack the tensor 'text.idf'"),
        ({"text.idf": np.ones(2, np.float32)}, "2 weights"),
        ({"text.idf": np.float32([1, 1, np.nan])}, "finite and positive"),
        ({"text.idf": np.ones(3)}, "vector of float32, got float64"),
        ({"text.offsets": np.array([0, 3, 2, 9])}, "do not divide"),
        ({"text.offsets": np.array([0, 3, 6, 12])}, "do not divide"),
        ({"text.offsets": np.array([0, 3, 3, 9])}, "do not divide"),
        ({"text.offsets": np.array([0])}, "do not divide"),
        ({"text.vocabulary": bytes_of("dogdogcat")}, "twice"),
        ({"text.vocabulary": bytes_of(b"\xff" * 9)}, "not UTF-8"),
        ({"text.options": bytes_of("{")}, "no JSON"),
        ({"text.options": bytes_of('{"min_df": 1, "evil": 2}')}, "options"),
        ({"text.options": bytes_of('{"min_df": "x"}')}, "must be a number"),
    ],
)
def test_nonsense_is_refused(change, reason):
    tensors = {
        "text.vocabulary": bytes_of("catdogfox"),
        "text.offsets": np.array([0, 3, 6, 9]),
        "text.idf": np.ones(3, np.float32),
        "text.options": bytes_of('{"min_df": 1}'),
    }
    assert list(TextFeatures.from_tensors(tensors).words) == ["cat", "dog", "fox"]
    tensors = {name: tensor for name, tensor in (tensors | change).items() if tensor is not None}
    with pytest.raises(ValueError, match=reason):
        TextFeatures.from_tensors(tensors)


ROWS = [("plain", "a"), ('with, comma and "quotes"', "b"), ("two\nlines", "c"), ("käse", "ä")]


def as_csv(delimiter):
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerows([("id", "label", "text"), *((k, label, text) for k, (text, label) in enumerate(ROWS))])
    return out.getvalue().encode()


def as_jsonl():
    return "".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in ROWS).encode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.csv", as_csv(",")),
        ("x.tsv", as_csv("\t")),
        ("x.jsonl", as_jsonl()),
        ("x.csv.gz", gzip.compress(as_csv(","), mtime=0)),
        ("x.jsonl.gz", gzip.compress(as_jsonl(), mtime=0)),
        ("x.csv", b"\xef\xbb\xbf" + as_csv(",")),
    ],
)
def test_tables_are_read(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    texts, labels = read_table(path)
    assert list(zip(texts, labels, strict=True)) == ROWS


def test_other_columns_and_labels_of_json():
    texts, labels = read_table(
        BytesIO(b'{"t": "x", "y": 3}\n\n{"t": "z", "y": true}\n'), text="t", label="y", format="jsonl"
    )
    assert texts == ["x", "z"] and labels == [3, True]


@pytest.mark.parametrize(
    ("format", "data", "line", "reason"),
    [
        ("csv", b"a,b\n1,2\n", 1, "no column 'text' and 'label'; the columns are 'a', 'b'"),
        ("csv", b"", 1, "the columns are none"),
        ("csv", b'text,label\n"two\nlines",b\nx,y,z\n', 4, "3 fields, but the header has 2"),
        ("jsonl", b'{"text": "x", "label": 1}\n{"text": \n', 2, "must be a JSON object"),
        ("jsonl", b"[1]\n", 1, "a list"),
        ("jsonl", b'{"text": "x", "lable": 1}\n', 1, "the columns are 'text', 'lable'"),
        ("jsonl", b'{"text": 5, "label": 1}\n', 1, "'text' is a int"),
        ("jsonl", b'{"text": "x", "label": [1]}\n', 1, "'label' is [1]"),
        ("csv", b"text,label\nab,1\n\xff\xfe,1\n", 3, "not UTF-8"),
    ],
)
def test_wrong_tables_are_refused_with_the_line(format, data, line, reason):
    with pytest.raises(ParseError) as caught:
        read_table(BytesIO(data), format=format)
    assert reason in str(caught.value) and caught.value.line == line


def test_a_table_cut_short_is_refused():
    with pytest.raises(ParseError, match="ends too early"):
        read_table(BytesIO(gzip.compress(as_csv(","))[:-9]), format="csv")


def test_the_format_must_be_known(tmp_path):
    (tmp_path / "x.dat").write_text("text,label\na,b\n")
    with pytest.raises(ValueError, match="does not tell the format"):
        read_table(tmp_path / "x.dat")
    assert read_table(tmp_path / "x.dat", format="csv") == (["a"], ["b"])
    with pytest.raises(ValueError, match="csv, tsv or jsonl"):
        read_table(tmp_path / "x.dat", format="xml")
