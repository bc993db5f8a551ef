"""Files become stores, stores change, and what is wrong is said in one line."""

import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import BlockStore, Chain, HashedText, load_svmlight, save_xmc
from manyclass.model import LinearModel, load_model, save_model


def table(path, rows, columns=("text", "label")):
    """Write rows as CSV, TSV, JSONL or Parquet, by the suffix."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrays = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(arrays), path, row_group_size=7)
    else:
        with path.open("w", newline="") as out:
            writer = csv.writer(out, delimiter="," if path.suffix == ".csv" else "\t")
            writer.writerows([columns, *rows])
    return path


NEWS = [(f"the cat number {k} sat, and sat", "animals") for k in range(20)]
NEWS += [(f'"soup" with bread {k}', "food, warm") for k in range(15)]


def rows_of(store):
    """Rows and labels in the order of the ids."""
    found = {}
    for number in range(store.n_blocks):
        block = store.read(number)
        X = block.as_csr(store.n_features)
        for place, row in enumerate(block.ids.tolist()):
            found[row] = (X[place].toarray().ravel(), store.classes[block.labels[block.label_ptr[place]]])
    return [found[row] for row in sorted(found)]


def test_text_to_store_and_back(shell, svm):
    report = shell.json("convert", "train.svm", "test.svm", "s", "--blocks", 3)
    parts = [load_svmlight(name, n_features=20) for name in ("train.svm", "test.svm")]
    assert (report["rows"], report["blocks"], report["classes"]) == (260, 3, 4)
    expected = [(row, label) for X, y in parts for row, label in zip(X.toarray(), y, strict=True)]
    for (row, label), (found, its) in zip(expected, rows_of(BlockStore("s")), strict=True):
        assert label == its and (row == found).all()
    shown = shell("inspect", "s").stdout
    assert "260" in shown and "non-zeros" in shown
    assert shell.json("inspect", "s", "--verify")["verified"]


def test_standard_input(shell, svm):
    text = (svm / "train.svm").read_bytes()
    assert shell.json("convert", "-", "s", stdin=text)["rows"] == 200
    shell("convert", "-", "s", "--append", stdin=text)
    assert BlockStore("s").n_rows == 400


@pytest.mark.parametrize("name", ["x.txt", "x.svm.gz"])
def test_xmc_is_told_by_its_header_and_counts_from_0(name, shell, svm):
    X, _ = load_svmlight("train.svm")
    Y = np.zeros((200, 6))
    Y[np.arange(200), np.arange(200) % 5] = Y[::3, 5] = 1
    save_xmc(X, sp.csr_matrix(Y), name)
    for store, given in (("told", []), ("said", ["--format", "xmc"])):
        report = shell.json("convert", name, store, *given)
        assert (report["features"], report["classes"], report["multilabel"]) == (20, 6, True)
    assert shell.json("convert", name, "told", "--append")["rows"] == 400
    assert "different formats (svmlight, xmc)" in shell("convert", name, "train.svm", "t", code=2).stderr


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_tables_are_hashed(suffix, shell):
    path = table(shell.folder / f"news{suffix}", NEWS, ("body", "topic"))
    report = shell.json("convert", path, "s", "--text-column", "body", "--label-column", "topic", "--hash-bits", 12)
    store = BlockStore("s")
    assert (report["rows"], report["features"]) == (35, 4096)
    assert store.classes.tolist() == ["animals", "food, warm"]
    assert store.manifest.reading == {"text": {"hash_bits": 12}, "text_column": "body", "label_column": "topic"}
    expected = HashedText(hash_bits=12).transform([text for text, _ in NEWS]).toarray()
    for (found, label), row, (_, its) in zip(rows_of(store), expected, NEWS, strict=True):
        assert label == its
        np.testing.assert_array_equal(found, row)
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, rtol=1e-6)
    table(shell.folder / f"more{suffix}", [("a dog", "animals"), ("a train", "travel")], ("body", "topic"))
    assert shell.json("convert", f"more{suffix}", "s", "--append")["classes"] == 3


def test_hashing_counts_words(shell):
    X = HashedText(hash_bits=10).transform(["word word word other", ""])
    assert X.dtype == np.float32 and X.shape == (2, 1024) and X[1].nnz == 0
    ratio = X.data.max() / X.data.min()
    assert ratio == pytest.approx(1 + np.log(3), rel=1e-6)


def test_a_model_of_hashed_texts_takes_texts(shell):
    text = HashedText(hash_bits=8)
    classes = np.array(["animals", "food"])
    weights = np.zeros((256, 2), np.float32)
    weights[:, 0] = text.transform(["cat"]).toarray()
    weights[:, 1] = text.transform(["soup"]).toarray()
    model = LinearModel(weights, np.zeros(2, np.float32), classes, {"loss": "ww"}, {}, Chain([text]))
    save_model(model, "m.manyclass")
    assert load_model("m.manyclass").chain[0].hash_bits == 8
    assert shell("predict", "m.manyclass", "-", stdin="a soup\nThe Cat\n").stdout == "food\nanimals\n"
    assert shell.json("inspect", "m.manyclass")["takes_text"]
    shell("inspect", "m.manyclass", "--class", "food")
    model.weights = weights[:100]
    with pytest.raises(ValueError, match="HashedText gives 256 features, but the weights are for 100"):
        save_model(model, "short")


def test_rows_and_blocks_are_removed(shell, svm):
    shell("convert", "train.svm", "s", "--blocks", 4)
    (svm / "ids.txt").write_text("7\n\n20-22\n")
    report = shell.json("remove", "s", "--rows", "3,17-19", "--rows-from", "ids.txt")
    assert (report["rows"], report["removed"]) == (192, 8)
    left = {row for number in range(4) for row in BlockStore("s").read(number).ids.tolist()}
    assert left == set(range(200)) - {3, 7, 17, 18, 19, 20, 21, 22}
    assert shell.json("remove", "s", "--blocks", "1")["blocks"] == 3
    assert "removed" in shell("remove", "s", "--rows", str(min(left & set(BlockStore("s").read(0).ids)))).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["remove", "s"], "nothing to remove"),
        (["remove", "s", "--rows", "3,x"], "--rows: 'x' is neither a number"),
        (["remove", "s", "--rows", "9-3"], "ends before it starts"),
        (
            ["remove", "s", "--rows", "5-99999999999999"],
            "99999999999999 does not exist; the last number is 199",
        ),
        (["remove", "s", "--rows-from", "train.svm"], "train.svm:1: "),
        (["remove", "s", "--rows-from", "none"], "none: No such file"),
        (["remove", "s", "--blocks", "7"], "7 does not exist; the last number is 1"),
        (["remove", "s", "--blocks", "0-1"], "delete the folder instead"),
        (["remove", "nowhere", "--rows", "1"], "does not exist"),
        (["convert", "train.svm", "s"], "is a store already"),
        (["convert", "train.svm", "nowhere", "--append"], "does not exist"),
        (["convert", "train.svm", "s", "--append", "--dtype", "float64"], "--dtype does not apply to --append"),
        (["convert", "news.csv", "s", "--append"], "holds rows of features; csv files cannot be appended to it"),
        (["convert", "train.svm", "news.csv", "t"], "different formats (csv, svmlight)"),
        (["convert", "train.svm", "t", "--hash-bits", "9"], "--hash-bits does not apply to svmlight"),
        (["convert", "news.csv", "t", "--text-column", "body"], "no column 'body'; the columns are 'text', 'label'"),
        (["convert", "news.parquet", "t", "--text-column", "body"], "pass the columns to read with --text-column"),
        (["convert", "bad.parquet", "t"], "not a Parquet file, or a damaged one"),
        (["convert", ".", "t"], "a folder; pass files"),
        (["convert", "none.svm", "t"], "No such file"),
        (["convert", "none.parquet", "t"], "No such file"),
        (["convert", "train.svm", "t", "--memory", "5MB"], "a conversion needs at least"),
        (["inspect", "train.svm", "--verify"], "neither a store nor a model"),
    ],
)
def test_what_is_wrong_is_said(arguments, message, shell, svm):
    shell("convert", "train.svm", "s", "--blocks", 2)
    table(svm / "news.csv", NEWS)
    table(svm / "news.parquet", NEWS)
    (svm / "bad.parquet").write_bytes(b"PAR1" + bytes(40))
    before = {path.name: path.read_bytes() for path in (svm / "s").iterdir()}
    error = shell(*arguments, code=2).stderr
    assert message in error and error.count("\n") == 1
    assert {path.name: path.read_bytes() for path in (svm / "s").iterdir()} == before


def test_a_conversion_that_was_stopped_is_named(shell, svm):
    shell("convert", "train.svm", "s")
    (svm / "s" / "manifest.json").rename(svm / "s" / "conversion.json")
    assert "s is incomplete because its conversion was interrupted; repeat" in shell("inspect", "s", code=2).stderr
    assert "conversion.json is damaged" in shell("convert", "train.svm", "s", code=2).stderr


def test_verify_names_what_is_damaged(shell, svm):
    shell("convert", "train.svm", "s", "--blocks", 3)
    path = svm / "s" / "block-0-1.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    error = shell("inspect", "s", "--verify", code=2).stderr
    assert "block-0-1.safetensors: its content has changed" in error and "block-0-2" not in error
    path.unlink()
    assert "block-0-1.safetensors is missing" in shell("inspect", "s", code=2).stderr
