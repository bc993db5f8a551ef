"""Table rows without a label are rejected with line and count, skipped, or kept."""

import gzip
import json
import logging
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manyclass.data import ParseError, read_table
from manyclass.data.table_rows import TableRows

ROWS = [("a cat", "animal"), ("a fork", ""), ("", "nothing"), ("a spoon", None), ("a dog", "animal"), ("a cup", " ")]
LABELLED = [row for row in ROWS if row[1] and row[1].strip()]


def as_csv(delimiter=","):
    lines = [("text", "label"), *((text, label or "") for text, label in ROWS)]
    return "".join(f'"{text}"{delimiter}{label}\n' for text, label in lines).encode()


def as_jsonl():
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in ROWS).encode()


TABLES = {"csv": (as_csv(), 3), "tsv": (as_csv("\t"), 3), "jsonl": (as_jsonl(), 2)}


@pytest.mark.parametrize("format", TABLES)
def test_rows_without_a_label_are_rejected_with_line_and_number(format):
    data, line = TABLES[format]
    with pytest.raises(
        ParseError, match=r"no label in 'label'; 3 rows have no label; .* unlabelled=\"skip\""
    ) as caught:
        read_table(BytesIO(data), format=format)
    assert caught.value.line == line


@pytest.mark.parametrize("format", TABLES)
def test_they_can_be_skipped_or_kept(format, caplog):
    data, line = TABLES[format]
    with caplog.at_level(logging.WARNING, "manyclass"):
        found = read_table(BytesIO(data), format=format, unlabelled="skip")
    assert list(zip(*found, strict=True)) == LABELLED
    assert f"3 rows without a label were skipped, the first on line {line}" in caplog.text
    texts, _ = read_table(BytesIO(data), format=format, unlabelled="keep")
    assert texts == [text for text, _ in ROWS]


def test_false_labels_are_not_missing(caplog):
    data = b"text,label\nx,0\ny,false\nz,nan\n"
    with caplog.at_level(logging.WARNING, "manyclass"):
        assert read_table(BytesIO(data), format="csv", unlabelled="skip")[1] == ["0", "false", "nan"]
    assert not caplog.text
    assert read_table(BytesIO(b'{"text": "x", "label": 0}\n{"text": "", "label": false}\n'), format="jsonl")[1] == [
        0,
        False,
    ]


def test_nan_in_json_is_a_missing_label():
    with pytest.raises(ParseError, match=r":1:1: no label in 'label'; 1 row has no label"):
        read_table(BytesIO(b'{"text": "x", "label": NaN}\n'), format="jsonl")


@pytest.mark.parametrize(
    "rest", [b'"open quote', b"too,many,fields\n", b"\xff\xfe,a\n"], ids=["quote", "fields", "encoding"]
)
def test_the_first_error_is_reported_whatever_follows(rest):
    with pytest.raises(ParseError, match="no label in 'label'; 2 rows have no label") as caught:
        read_table(BytesIO(b"text,label\na,\nb,\n" + rest), format="csv")
    assert caught.value.line == 2


def test_a_missing_label_is_reported_before_a_truncated_end():
    with pytest.raises(ParseError, match="no label in 'label'; 3 rows have no label"):
        read_table(BytesIO(gzip.compress(as_csv())[:-9]), format="csv")


def labels_of(source):
    return [label for part in source.parts() for label in part.labels.tolist()]


def test_rows_for_a_store(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(as_csv())
    with pytest.raises(ParseError, match=r"t\.csv:3:1: no label in 'label'; 3 rows have no label"):
        labels_of(TableRows([path]))
    assert labels_of(TableRows([path], unlabelled="skip")) == [label for _, label in LABELLED]
    assert TableRows([path]).settings() != TableRows([path], unlabelled="skip").settings()


@pytest.mark.parametrize("labels", [["a", None, "", "b"], [1.5, None, float("nan"), 2.5], [1, None, None, 2]])
def test_parquet(tmp_path, labels):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": ["w", "x", "y", "z"], "label": labels}), path)
    with pytest.raises(ParseError, match=r"t\.parquet:2:1: no label in 'label'; 2 rows have no label"):
        labels_of(TableRows([path]))
    assert labels_of(TableRows([path], unlabelled="skip")) == [labels[0], labels[3]]
