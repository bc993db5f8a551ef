import gzip
import json

import numpy as np
import pytest

from manyclass.data import load_svmlight, save_svmlight
from manyclass.model import load_model


@pytest.fixture
def model(shell, svm):
    shell("train", "train.svm", "--model", "m.manyclass")
    return load_model("m.manyclass")


@pytest.fixture
def text_model(shell, tables):
    shell("train", "train.csv", "--text-column", "body", "--label-column", "topic", "--model", "t.manyclass")
    return load_model("t.manyclass")


def test_one_label_a_line(shell, model):
    X, _ = load_svmlight("test.svm", n_features=model.n_features)
    lines = shell("predict", "m.manyclass", "test.svm").stdout.splitlines()
    assert lines == [str(label) for label in model.predict(X).tolist()]


def test_k_labels_with_scores(shell, model):
    X, _ = load_svmlight("test.svm", n_features=model.n_features)
    codes, scores = model.topk(X, 3)
    lines = shell("predict", "m.manyclass", "test.svm", "-k", 3, "--scores").stdout.splitlines()
    fields = np.array([line.split("\t") for line in lines], dtype=float)
    np.testing.assert_array_equal(fields[:, 0::2], model.classes[codes])
    np.testing.assert_array_equal(fields[:, 1::2].astype(np.float32), scores)
    assert shell("predict", "m.manyclass", "test.svm", "-k", 3).stdout.splitlines()[0].count("\t") == 2


def test_json_lines(shell, model):
    lines = shell("predict", "m.manyclass", "test.svm", "-k", 2, "--scores", "--json").stdout.splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == 60
    assert all(isinstance(label, int) for record in records for label in record["labels"])
    assert all(record["scores"][0] >= record["scores"][1] for record in records)


def test_a_file_is_written_whole_and_compressed_by_its_suffix(shell, model, svm):
    expected = shell("predict", "m.manyclass", "test.svm").stdout
    assert shell("predict", "m.manyclass", "test.svm", "-o", "out.gz").stdout == ""
    assert gzip.decompress((svm / "out.gz").read_bytes()).decode() == expected


def test_labels_are_not_needed(shell, model, svm):
    rows = (svm / "test.svm").read_text().splitlines()
    bare = "\n".join(" " + row.split(" ", 1)[1] for row in rows) + "\n"
    assert (
        shell("predict", "m.manyclass", "-", stdin=bare).stdout == shell("predict", "m.manyclass", "test.svm").stdout
    )


def test_features_are_counted_as_in_training_even_if_the_first_is_missing(shell, svm):
    X, y = load_svmlight("train.svm")
    save_svmlight(X, y, "zero.svm", zero_based=True)
    shell("train", "zero.svm")
    rows = X[:30].copy()
    rows[:, 0] = 0
    rows.eliminate_zeros()
    save_svmlight(rows, y[:30], "few.svm", zero_based=True)
    expected = load_model("zero.manyclass").predict(rows)
    found = shell("predict", "zero.manyclass", "few.svm").stdout.split()
    assert found == [str(label) for label in expected.tolist()]


def test_text_comes_as_lines_or_tables(shell, text_model, tables):
    assert (
        shell("predict", "t.manyclass", "-", stdin="a cat and a dog\nbread with cheese\n").stdout == "animals\nfood\n"
    )
    (tables / "lines.txt").write_text("the train to the harbour\n")
    assert shell("predict", "t.manyclass", "lines.txt").stdout == "travel\n"
    (tables / "bare.csv").write_text("body\nfur and paw\n")
    assert shell("predict", "t.manyclass", "bare.csv").stdout == "animals\n"
    (tables / "other.jsonl").write_text('{"said": "soup and salt"}\n')
    assert shell("predict", "t.manyclass", "other.jsonl", "--text-column", "said").stdout == "food\n"


def test_labels_with_tabs_stay_on_one_field(shell, tables):
    (tables / "odd.jsonl").write_text(
        "".join(
            json.dumps({"text": word, "label": label}) + "\n" for word, label in [("cat", "a\tb"), ("dog", "c\nd")]
        )
    )
    shell("train", "odd.jsonl")
    assert shell("predict", "odd.manyclass", "-", stdin="cat\ndog\n").stdout == "a\\tb\nc\\nd\n"


# ---- What cannot be predicted


def test_texts_for_a_model_of_features_are_refused(shell, model, tables):
    assert "rows of features" in shell("predict", "m.manyclass", "test.csv", code=2).stderr
    assert "rows of features" in shell("predict", "m.manyclass", "-", "--format", "lines", stdin="a\n", code=2).stderr


def test_more_classes_than_there_are_are_refused(shell, model):
    assert "-k 5 is more than the 4 classes" in shell("predict", "m.manyclass", "test.svm", "-k", 5, code=2).stderr


def test_damaged_and_missing_models_are_named(shell, model, svm):
    content = (svm / "m.manyclass").read_bytes()
    (svm / "cut.manyclass").write_bytes(content[:-10])
    assert (
        "cut.manyclass: not a model file, or one cut short"
        in shell("predict", "cut.manyclass", "test.svm", code=2).stderr
    )
    assert "test.svm: not a model file" in shell("predict", "test.svm", "test.svm", code=2).stderr
    assert "absent" in shell("predict", "absent", "test.svm", code=2).stderr


def test_a_failed_prediction_leaves_no_file(shell, model, svm):
    (svm / "bad.svm").write_text("1 1:1\n2 oops\n")
    shell("predict", "m.manyclass", "bad.svm", "-o", "out.txt", code=2)
    assert not (svm / "out.txt").exists()


def test_text_that_is_not_utf8_is_shown_where_it_is(shell, text_model, tables):
    (tables / "latin.txt").write_bytes(b"a cat\na caf\xe9\n")
    assert "latin.txt:2:6: not UTF-8" in shell("predict", "t.manyclass", "latin.txt", code=2).stderr


@pytest.mark.parametrize("options", [("--loss", "maxent"), ("--loss", "ww", "--calibrate", "sigmoid")])
def test_probabilities_are_printed(shell, svm, options):
    shell("train", "train.svm", "--model", "m", *options)
    rows = [
        json.loads(line)
        for line in shell("predict", "m", "test.svm", "-k", 4, "--probabilities", "--json").stdout.splitlines()
    ]
    assert all(sum(row["probabilities"]) == pytest.approx(1, abs=1e-5) for row in rows)
    first = shell("predict", "m", "test.svm", "--probabilities").stdout.splitlines()[0].split("\t")
    assert float(first[1]) == pytest.approx(rows[0]["probabilities"][0])


def test_models_without_probabilities_say_so(shell, svm):
    shell("train", "train.svm", "--model", "m")
    message = shell("predict", "m", "test.svm", "--probabilities", code=2).stderr
    assert "m has no probabilities" in message and "--calibrate" in message
    assert "either --scores" in shell("predict", "m", "test.svm", "--probabilities", "--scores", code=2).stderr
