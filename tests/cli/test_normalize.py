"""`--normalize`: rows of length 1 to train on, remembered in the model, and applied to all rows that it meets."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import OneVsRestSVC, PPDSparse
from manyclass.data import BlockStore, StoreError, UnitRows, load_svmlight, save_svmlight, save_xmc
from manyclass.model import load_model


@pytest.fixture
def files(tmp_path, blobs):
    """Rows of very different lengths, some of them empty: as they are, and the same with length 1."""
    for name, n, seed in (("train", 200, 0), ("test", 60, 1)):
        X, y = blobs(n, seed)
        X = sp.csr_matrix(sp.diags(np.float32(10) ** (np.arange(n) % 5 - 2) * (np.arange(n) % 17 != 16)) @ X)
        X.eliminate_zeros()
        save_svmlight(X, y, tmp_path / f"{name}.svm")
        save_svmlight(
            UnitRows().transform(load_svmlight(tmp_path / f"{name}.svm", dtype=np.float32)[0]),
            y,
            tmp_path / f"{name}.unit.svm",
        )
    return tmp_path


def matrix_of(path):
    weights = load_model(path).matrix
    return weights.toarray() if sp.issparse(weights) else weights


def test_a_model_is_that_of_rows_of_length_1_and_scales_what_it_meets(shell, files):
    shell("train", "train.svm", "--loss", "squared_hinge", "--normalize", "-m", "m")
    shell("train", "train.unit.svm", "--loss", "squared_hinge", "-m", "unit")
    shell("train", "train.svm", "--loss", "squared_hinge", "-m", "raw")
    np.testing.assert_array_equal(matrix_of("m"), matrix_of("unit"))
    assert (matrix_of("m") != matrix_of("raw")).any()
    wanted = shell("predict", "unit", "test.unit.svm", "-k", 3, "--scores").stdout
    assert shell("predict", "m", "test.svm", "-k", 3, "--scores").stdout == wanted
    assert shell("predict", "unit", "test.svm", "-k", 3, "--scores").stdout != wanted
    found, expected = shell.json("evaluate", "m", "test.svm"), shell.json("evaluate", "unit", "test.unit.svm")
    assert found["error"] == expected["error"] and found["micro_f1"] == expected["micro_f1"]
    X, y = load_svmlight("test.svm", dtype=np.float32)
    X = sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], load_model("m").n_features))
    assert (load_model("m").predict(X) != y).mean() == pytest.approx(found["error"])
    assert np.isfinite(load_model("m").scores(X)).all()


def test_every_command_says_so(shell, files):
    report = shell.json("train", "train.svm", "--normalize", "-m", "m")
    assert report["steps"] == ["rows scaled to length 1"]
    assert "prepared by\trows scaled to length 1\n" in shell("train", "train.svm", "--normalize", "-m", "m").stdout
    assert shell.json("inspect", "m")["steps"] == ["rows scaled to length 1"]
    assert "step 1\trows scaled to length 1\n" in shell("inspect", "m").stdout
    assert shell.json("train", "train.svm", "-m", "m")["steps"] == []
    assert "prepared by" not in shell("train", "train.svm", "-m", "m").stdout


@pytest.mark.parametrize(
    ("options", "scaled"),
    [
        (["--loss", "ppd_squared_hinge"], True),
        (["--loss", "ppd_hinge"], True),
        (["--loss", "max_margin"], True),
        (["--loss", "squared_hinge", "--drop", "0.01"], True),
        (["--loss", "squared_hinge"], False),
        (["--loss", "hinge"], False),
        (["--loss", "ww"], False),
        (["--loss", "maxent", "--normalize"], True),
        (["--loss", "ppd_squared_hinge", "--no-normalize"], False),
        (["--loss", "squared_hinge", "--drop", "0.01", "--no-normalize"], False),
    ],
)
def test_losses_that_do_best_on_rows_of_length_1_have_them(shell, files, options, scaled):
    done = shell("train", "train.svm", *options, "-m", "m")
    assert bool(load_model("m").chain) == scaled
    by_itself = scaled and "--normalize" not in options
    assert ("use --no-normalize to turn it off" in done.stderr) == by_itself


def test_cv_scales_rows_as_train_does(shell, files):
    def accuracies(*options):
        found = shell.json("cv", *options, "-C", "0.1,1", "--folds", 2)["losses"]
        return {loss: (one["accuracy"], one["steps"]) for loss, one in found.items()}

    both = accuracies("train.svm", "--loss", "squared_hinge,ppd_squared_hinge")
    unit = accuracies("train.unit.svm", "--loss", "squared_hinge,ppd_squared_hinge", "--no-normalize")
    assert both["ppd_squared_hinge"] == (unit["ppd_squared_hinge"][0], ["rows scaled to length 1"])
    assert both["squared_hinge"][0] != unit["squared_hinge"][0] and both["squared_hinge"][1] == []
    assert (
        accuracies("train.svm", "--loss", "squared_hinge", "--normalize")["squared_hinge"][0]
        == unit["squared_hinge"][0]
    )
    raw = accuracies("train.svm", "--loss", "ppd_squared_hinge", "--no-normalize")
    assert raw["ppd_squared_hinge"][0] != unit["ppd_squared_hinge"][0]


def test_xmc_text_with_sets_of_labels(shell, files):
    X, y = load_svmlight("train.svm", dtype=np.float32)
    Y = sp.csr_matrix((np.ones(y.size), (np.arange(y.size), y)))
    save_xmc(X, Y, "x.txt")
    shell("train", "x.txt", "--loss", "ppd_squared_hinge", "-m", "m")
    wanted = PPDSparse().fit(UnitRows().transform(X), Y)
    np.testing.assert_array_equal(matrix_of("m")[:, 3:], wanted.coef_.T[:, 3:])
    found = shell.json("evaluate", "m", "x.txt")
    assert found["precision_at"]["1"] == pytest.approx(
        (wanted.predict(UnitRows().transform(X), k=1).multiply(Y)).sum() / 200
    )


def test_unknown_features_are_left_out_before_rows_are_scaled(shell, files, blobs):
    shell("train", "train.svm", "--normalize", "-m", "m")
    X, y = load_svmlight("test.svm", dtype=np.float32)
    save_svmlight(sp.hstack([X, X], "csr"), y, "wide.svm")
    wanted = shell("predict", "m", "test.svm", "--scores").stdout
    assert shell("predict", "m", "wide.svm", "--scores").stdout == wanted
    shell("convert", "wide.svm", "wide")
    assert shell("predict", "m", "wide", "--scores").stdout == wanted
    shell("convert", "wide.svm", "unit", "--normalize")  # by all of their features
    np.testing.assert_allclose(
        [float(line.split("\t")[1]) for line in shell("predict", "m", "unit", "--scores").stdout.splitlines()],
        [float(line.split("\t")[1]) for line in wanted.splitlines()],
        rtol=1e-5,
    )


# ---- Stores


def test_a_store_of_rows_of_length_1(shell, files):
    report = shell.json("convert", "train.svm", "s", "--normalize", "--blocks", 3)
    assert report["steps"] == shell.json("inspect", "s")["steps"] == ["rows scaled to length 1"]
    manifest = json.loads((files / "s" / "manifest.json").read_text())
    assert manifest["reading"] == {"index_base": 1, "normalize": "l2"} and manifest["version"] == 2
    unit = UnitRows().transform(load_svmlight("train.svm", dtype=np.float32)[0])
    assert (BlockStore("s").load()[0] != unit).nnz == 0
    shell("convert", "test.svm", "s", "--append")
    assert BlockStore("s").manifest.reading["normalize"] == "l2"
    more = UnitRows().transform(load_svmlight("test.svm", dtype=np.float32)[0])
    assert (BlockStore("s").load()[0][200:, : more.shape[1]] != more).nnz == 0
    X, y = load_svmlight("test.svm", dtype=np.float32)
    assert (BlockStore("s").append(X * 8, y).load()[0][260:, : more.shape[1]] != more).nnz == 0


def test_a_store_as_it_was_is_of_version_1(shell, files):
    for name, options in (("s", []), ("t", ["--no-normalize"])):
        shell("convert", "train.svm", name, *options)
        manifest = json.loads((files / name / "manifest.json").read_text())
        assert manifest["version"] == 1 and manifest["reading"] == {"index_base": 1}


def test_models_of_stores_scale_rows_of_files_and_take_those_of_stores_as_they_are(shell, files):
    for name in ("train", "test"):
        shell("convert", f"{name}.svm", f"{name}-s", "--normalize")
        shell("convert", f"{name}.svm", f"{name}-raw")
    report = shell.json("train", "train-s", "--loss", "squared_hinge", "--normalize", "-m", "m")
    assert report["steps"] == ["rows scaled to length 1"]
    wanted = shell("predict", "m", "test.svm", "--scores").stdout
    for data in ("test-s", "test-raw"):
        assert shell("predict", "m", data, "--scores").stdout == wanted
        assert shell.json("evaluate", "m", data)["error"] == shell.json("evaluate", "m", "test.svm")["error"]
    in_memory = OneVsRestSVC(engine="disk").fit(BlockStore("train-s"))
    X = load_svmlight("test.svm", dtype=np.float32, n_features=in_memory.n_features_in_)[0]
    np.testing.assert_array_equal(in_memory.predict(X), in_memory.predict(BlockStore("test-s")))
    np.testing.assert_array_equal(in_memory.predict(X), in_memory.predict(BlockStore("test-raw")))
    assert (
        shell.json("cv", "train-s", "--loss", "hinge", "-C", "1", "--folds", 2)["losses"]["hinge"]["steps"]
        == report["steps"]
    )
    shell("train", "train-raw", "--loss", "squared_hinge", "-m", "raw")
    for command in ("predict", "evaluate"):
        refused = shell(command, "raw", "test-s", code=2).stderr
        assert "test-s: the rows were prepared differently (rows scaled to length 1) from" in refused
        assert refused.count("test-s") == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["train", "raw", "--normalize"], "raw: --normalize is too late for a store; convert the data again"),
        (
            ["train", "unit", "--no-normalize"],
            "unit: --no-normalize is too late, because its rows have length 1; convert",
        ),
        (["cv", "raw", "--normalize"], "raw: --normalize is too late"),
        (["cv", "unit", "--no-normalize"], "unit: --no-normalize is too late"),
        (["convert", "train.svm", "raw", "--append", "--normalize"], "raw: --normalize is too late"),
        (["convert", "train.svm", "unit", "--append", "--no-normalize"], "unit: --no-normalize is too late"),
        (
            ["train", "t.csv", "--no-normalize"],
            "t.csv: rows made from texts always have length 1; omit --no-",
        ),
        (["cv", "t.csv", "--no-normalize"], "t.csv: rows made from texts always have length 1"),
        (["convert", "t.csv", "new", "--no-normalize"], "csv: rows made from texts always have length 1"),
        (["train", "texts", "--no-normalize"], "texts: rows made from texts always have length 1"),
        (["predict", "m", "train.svm", "--normalize"], "No such option"),
    ],
)
def test_what_cannot_be_done_is_refused(shell, files, arguments, reason):
    (files / "t.csv").write_text("text,label\na cat,x\na dog,y\na cow,x\n")
    shell("convert", "train.svm", "raw")
    shell("convert", "train.svm", "unit", "--normalize")
    shell("convert", "t.csv", "texts", "--normalize", "--hash-bits", 4)
    before = sorted(path.name for path in files.iterdir())
    assert reason in " ".join(shell(*arguments, code=2).stderr.replace("│", " ").split())
    assert sorted(path.name for path in files.iterdir()) == before


def test_rows_of_texts_are_not_scaled_twice(shell, files):
    (files / "t.csv").write_text("text,label\na cat,x\na dog,y\na cow,x\n")
    for options in ([], ["--normalize"]):
        assert shell.json("train", "t.csv", "--loss", "ppd_hinge", "-m", "m", *options)["steps"] == [
            "TF-IDF of 3 words"
        ]
    shell("convert", "t.csv", "texts", "--normalize", "--hash-bits", 4)
    assert shell.json("train", "texts", "--normalize", "-m", "m")["steps"] == ["words hashed to 16 features"]


def test_a_damaged_manifest_is_refused(shell, files):
    shell("convert", "train.svm", "s", "--normalize")
    path = files / "s" / "manifest.json"
    content = json.loads(path.read_text())
    for reading in ({"normalize": "l3"}, {"text": 3}, {"text": {"hash_bits": 99}}, {"text": {"evil": 1}}):
        path.write_text(json.dumps(content | {"reading": reading}))
        with pytest.raises(StoreError, match="damaged"):
            BlockStore("s")


# ---- Going on


def test_fits_of_rows_with_other_lengths_are_not_gone_on_from(shell, files):
    begun = ["--checkpoint", "c", "--max-iter", 1, "--tol", "1e-9", "-m", "m"]
    shell("train", "train.svm", "--normalize", *begun, code=3)
    refused = shell("train", "train.svm", *begun, "--resume", code=2).stderr
    assert "rows of X" in refused
    shell("train", "train.svm", "--normalize", "--checkpoint", "c", "--resume", "-m", "m")


def test_nor_are_those_of_a_store(shell, files):
    for name, options in (("s", ["--normalize"]), ("t", [])):
        shell("convert", "train.svm", name, *options)
    shell("train", "s", "--loss", "hinge", "--checkpoint", "c", "-m", "m")
    refused = shell("train", "t", "--loss", "hinge", "--checkpoint", "c", "--resume", "-m", "m", code=2).stderr
    assert "variables of another fit: steps" in refused
    shell("train", "s", "--loss", "hinge", "--checkpoint", "c", "--resume", "-m", "m")


def test_shards_of_rows_with_other_steps_are_not_gone_on_from(shell, files):
    # All of length 1 already, so that scaling them changes nothing.
    save_svmlight(sp.eye(20, format="csr", dtype=np.float32), np.arange(20) % 4, files / "unit.svm")
    options = ["--loss", "ppd_hinge", "--shards", "-m", "m"]
    shell("train", "unit.svm", *options, "--no-normalize")
    assert "a different fit" in shell("train", "unit.svm", *options, "--resume", code=2).stderr
    shell("train", "unit.svm", *options, "--no-normalize", "--resume")
    assert not load_model("m").chain


def test_a_conversion_that_was_stopped_goes_on_with_the_same_lengths_only(shell, files, monkeypatch):
    from manyclass.data.conversion import Conversion

    def stop(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(Conversion, "_write_blocks", stop)
        shell("convert", "train.svm", "s", "--normalize", code=130)
    assert "with different normalize" in shell("convert", "train.svm", "s", code=2).stderr
    shell("convert", "train.svm", "s", "--normalize")
    unit = UnitRows().transform(load_svmlight("train.svm", dtype=np.float32)[0])
    assert (BlockStore("s").load()[0] != unit).nnz == 0


def test_compressed_and_indexed_models_keep_their_steps(shell, files):
    shell("train", "train.svm", "--normalize", "--loss", "squared_hinge", "-m", "m")
    shell("compress", "m", "-o", "small", "--dtype", "int8")
    shell("index", "m")
    for name in ("m", "small"):
        assert shell.json("inspect", name)["steps"] == ["rows scaled to length 1"]
    assert shell("predict", "m", "test.svm", "-k", 1, "--beam", 9).stdout == shell("predict", "m", "test.svm").stdout
