import pytest

from manyclass.model import load_model


def test_a_compressed_model_is_smaller_and_predicts_as_before(shell, svm):
    shell("train", "train.svm", "--model", "m")
    report = shell.json("compress", "m", "-o", "small", "--dtype", "int8", "--prune", "0.001")
    assert report["file_bytes_before"] == (svm / "m").stat().st_size
    assert report["file_bytes"] == (svm / "small").stat().st_size
    assert report["density"] <= report["density_before"]
    assert shell("predict", "small", "test.svm").stdout == shell("predict", "m", "test.svm").stdout
    inspected = shell.json("inspect", "small")
    assert (inspected["dtype"], inspected["layout"], inspected["shards"]) == ("int8", "sparse", 1)
    assert inspected["settings"]["compression"] == {"dtype": "int8", "prune": 0.001, "keep": None}
    assert "was" in shell("compress", "m", "-o", "small", "--keep", 2).stdout
    assert (load_model("small").weights != 0).sum(axis=0).max() <= 2


def test_the_features_of_a_class_of_a_compressed_model(shell, svm):
    shell("train", "train.svm", "--model", "m")
    shell("compress", "m", "-o", "small", "--dtype", "int8")
    before, after = (shell.json("inspect", name, "--class", "5", "--top", 3)["largest"] for name in ("m", "small"))
    assert [feature for feature, _ in before] == [feature for feature, _ in after]
    for (_, weight), (_, narrow) in zip(before, after, strict=True):
        assert narrow == pytest.approx(weight, abs=before[0][1] / 127)


def test_what_to_do_has_to_be_said(shell, svm):
    shell("train", "train.svm", "--model", "m")
    assert "--dtype, --prune or --keep" in shell("compress", "m", "-o", "small", code=2).stderr
    assert "Invalid value" in shell("compress", "m", "-o", "small", "--dtype", "int4", code=2).output
