import pytest

from manyclass.model import load_model


def test_a_model_tells_what_it_is(shell, svm):
    trained = shell.json("train", "train.svm", "--loss", "cs")
    report = shell.json("inspect", "train.manyclass")
    assert report["certificate"] == trained["certificate"] and report["settings"] == trained["settings"]
    assert (report["classes"], report["features"], report["takes_text"]) == (4, 20, False)
    assert report["class_names"] == [3, 5, 7, 9]
    assert "certificate: gap\t" in shell("inspect", "train.manyclass").stdout


def test_a_model_is_known_by_its_content(shell, svm):
    shell("train", "train.svm", "--model", "plain-name")
    assert shell.json("inspect", "plain-name")["classes"] == 4


def test_the_words_that_speak_for_a_class(shell, tables):
    shell("train", "train.tsv")
    report = shell.json("inspect", "train.manyclass", "--class", "food", "--top", 3)
    words = [word for word, _ in report["largest"]]
    assert len(words) == 3 and set(words) <= {"bread", "cheese", "soup", "apple", "oven", "plate", "salt"}
    weights = [weight for _, weight in report["largest"]]
    assert weights == sorted(weights, reverse=True)


def test_features_are_counted_as_in_the_file(shell, svm):
    shell("train", "train.svm", "--model", "m")
    weights = load_model("m").weights
    column = weights.toarray()[:, 0] if load_model("m").is_sparse else weights[:, 0]
    [[feature, weight]] = shell.json("inspect", "m", "--class", "3", "--top", 1)["largest"]
    assert int(feature) == column.argmax() + 1 and weight == pytest.approx(column.max())


def test_an_unknown_class_names_similar_ones(shell, tables):
    shell("train", "train.tsv")
    assert "did you mean animals?" in shell("inspect", "train.manyclass", "--class", "Anim", code=2).stderr


def test_data_tell_their_shape(shell, tmp_path):
    (tmp_path / "small.svm").write_text("1 1:1 3:2\n1\n2 5:1\n")
    report = shell.json("inspect", "small.svm")
    assert (report["rows"], report["features"], report["features_used"], report["classes"]) == (3, 5, 3, 2)
    assert report["nonzeros_a_row"] == {"smallest": 0, "mean": 1.0, "largest": 2}
    assert report["empty_rows"] == 1
    assert report["rows_a_class"] == {"smallest": 1, "median": 1.5, "largest": 2, "with_one_row": 1}


def test_the_estimate_adds_up_and_follows_the_type(shell, svm):
    narrow = shell.json("inspect", "train.svm", "--estimate", "--loss", "cs")["estimate"]
    wide = shell.json("inspect", "train.svm", "--estimate", "--loss", "cs", "--dtype", "float64")["estimate"]
    parts = ("data", "weights", "dual_variables", "scratch")
    assert narrow["peak"] == sum(narrow[part] for part in parts)
    assert wide["data"] > narrow["data"]
    assert "fit, besides the rows: peak" in shell("inspect", "train.svm", "--estimate").stdout


def test_tables_and_stdin_are_inspected(shell, tables):
    assert shell.json("inspect", "train.tsv")["classes"] == 3
    text = (tables / "train.jsonl").read_text()
    assert shell.json("inspect", "-", "--format", "jsonl", stdin=text)["rows"] == 90


def test_options_of_the_other_kind_of_file_are_refused(shell, svm):
    shell("train", "train.svm", "--model", "m")
    assert "--estimate" in shell("inspect", "m", "--estimate", code=2).stderr
    assert "--class" in shell("inspect", "train.svm", "--class", "3", code=2).stderr
    assert "absent" in shell("inspect", "absent", code=2).stderr


def test_a_truncated_model_is_not_taken_for_data(shell, svm):
    shell("train", "train.svm")
    content = (svm / "train.manyclass").read_bytes()
    for size in (0, 5, 40, len(content) // 2):
        (svm / "cut.manyclass").write_bytes(content[:size])
        assert "not a model file" in shell("inspect", "cut.manyclass", code=2).stderr


@pytest.mark.parametrize("loss", ["cs", "llw", "squared_hinge"])
def test_the_estimate_of_a_store_is_what_training_from_it_demands(loss, shell, svm):
    shell("convert", "train.svm", "store")
    least = shell.json("inspect", "store", "--estimate", "--loss", loss)["least_memory"]
    shell("train", "store", "--loss", loss, "--memory", str(least), "--model", "m")
    refused = shell("train", "store", "--loss", loss, "--memory", str(least // 2), "--model", "n", code=2)
    assert "of memory is not enough" in refused.stderr
    assert "minimum memory for a fit" in shell("inspect", "store", "--estimate", "--loss", loss).stdout


def test_losses_that_are_not_trained_from_stores_have_no_estimate(shell, svm):
    shell("convert", "train.svm", "store")
    for loss in ("ovo_hinge", "ppd_hinge"):
        refused = shell("inspect", "store", "--estimate", "--loss", loss, code=2)
        assert f"--loss {loss} cannot be trained from a store" in refused.stderr
