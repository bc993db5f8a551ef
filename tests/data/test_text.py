"""Text features are scikit-learn transformers; tables are read, or rejected with the line."""

import csv
import gzip
import json
import pickle
from io import BytesIO, StringIO

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from manyclass import OneVsRestSVC
from manyclass.data import HashedText, ParseError, TextFeatures, read_table

TEXTS = [
    "a dog barked, a Dog slept",
    "the cat slept",
    "naïve café dogs",
    "dog cat mouse",
    "mouse mouse mouse",
]


def test_rows_are_float32_and_have_unit_length():
    X = TextFeatures().fit_transform(TEXTS)
    assert X.dtype == np.float32 and X.shape[0] == len(TEXTS)
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1, rtol=1e-6)


def test_unfitted_features_say_so():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        TextFeatures().transform(TEXTS)


@parametrize_with_checks([TextFeatures(), HashedText()])
def test_they_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_transform_gives_the_rows_of_fit_transform():
    features = TextFeatures(min_df=2)
    X = features.fit_transform(TEXTS, y=[1, 2, 3, 4, 5])
    for again in (features, clone(features).fit(TEXTS), pickle.loads(pickle.dumps(features))):
        np.testing.assert_array_equal(again.transform(TEXTS).toarray(), X.toarray())
    assert features.get_params() == {"min_df": 2}
    assert features.get_feature_names_out().tolist() == ["cat", "dog", "mouse", "slept"]


@pytest.mark.parametrize("kind", [TextFeatures, HashedText])
def test_they_work_in_pipelines_and_searches(kind):
    y = [1, 2, 2, 1, 1] * 4
    pipeline = make_pipeline(kind(), OneVsRestSVC())
    assert pipeline.fit(TEXTS * 4, y).score(TEXTS, y[:5]) == 1
    grid = {"textfeatures__min_df": [1, 2]} if kind is TextFeatures else {"hashedtext__hash_bits": [4, 12]}
    assert GridSearchCV(pipeline, grid, cv=2).fit(TEXTS * 4, y).best_score_ > 0.5


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ("a single text", r"such as \[text\]"),
        (["a", None], "row 1 is None"),
        (["a", "b", float("nan")], "row 2 is nan"),
        ([["a", "b"]], "row 0 is"),
        (np.array([["a", "b"]]), r"shape \(1, 2\)"),
        (pd.DataFrame({"title": ["a"], "body": ["b"]}), r"shape \(1, 2\)"),
    ],
)
@pytest.mark.parametrize("features", [TextFeatures().fit(TEXTS), HashedText()])
def test_values_that_are_not_texts_are_rejected_with_their_row(features, texts, reason):
    with pytest.raises(ValueError, match=reason):
        features.transform(texts)
    with pytest.raises(ValueError, match=reason):
        features.fit_transform(texts)


@pytest.mark.parametrize(
    "texts", [tuple(TEXTS), np.array(TEXTS), pd.Series(TEXTS, index=[5, 4, 3, 2, 1]), iter(TEXTS)]
)
def test_texts_come_in_any_list(texts):
    features = TextFeatures().fit(TEXTS)
    np.testing.assert_array_equal(features.transform(texts).toarray(), features.transform(TEXTS).toarray())


@pytest.mark.parametrize("features", [TextFeatures(min_df=-1), TextFeatures(min_df="x"), HashedText(hash_bits=31)])
def test_parameters_are_checked(features):
    with pytest.raises(ValueError, match=r"min_df|hash_bits"):
        features.fit_transform(TEXTS)


ROWS = [("plain", "a"), ('with, comma and "quotes"', "b"), ("two\nlines", "c"), ("käse", "ä")]


def as_csv(delimiter):
    out = StringIO()
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
        ("jsonl", b'{"text": 5, "label": 1}\n', 1, "'text' is 5; a text must be a string"),
        ("jsonl", b'{"text": "x", "label": [1]}\n', 1, "'label' is [1]"),
        ("csv", b"text,label\nab,1\n\xff\xfe,1\n", 3, "not UTF-8"),
    ],
)
def test_wrong_tables_are_rejected_with_the_line(format, data, line, reason):
    with pytest.raises(ParseError) as caught:
        read_table(BytesIO(data), format=format)
    assert reason in str(caught.value) and caught.value.line == line


def test_a_table_cut_short_is_rejected():
    with pytest.raises(ParseError, match="ends too early"):
        read_table(BytesIO(gzip.compress(as_csv(","))[:-9]), format="csv")


def test_the_format_must_be_known(tmp_path):
    (tmp_path / "x.dat").write_text("text,label\na,b\n")
    with pytest.raises(ValueError, match="the name does not show the format"):
        read_table(tmp_path / "x.dat")
    assert read_table(tmp_path / "x.dat", format="csv") == (["a"], ["b"])
    with pytest.raises(ValueError, match="csv, tsv, jsonl or parquet"):
        read_table(tmp_path / "x.dat", format="xml")
