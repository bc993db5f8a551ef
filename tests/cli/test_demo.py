import json

import pytest

from manyclass.model import load_model

# Classes of at least 300 glosses: a handful, trained in a moment.
FEW = ("--min-members", 300)


def test_four_svms_are_compared_and_one_is_kept(shell):
    report = shell.json("demo", *FEW)
    assert [result["loss"] for result in report["results"]] == ["ww", "cs", "hinge", "squared_hinge"]
    for result in report["results"]:
        assert result["exit_reason"] == "converged" and result["dual"] <= result["primal"]
        assert 0 <= result["top5_error"] <= result["test_error"] < 0.5
        assert result["peak_memory"] > 0 and 0 < result["density"] <= 1
    assert load_model("wordnet-ww.manyclass").settings["loss"] == "ww"
    assert report["answers"][0]["definition"] == "a small domesticated feline that catches mice"
    assert all(len(answer["classes"]) == 5 for answer in report["answers"])


def test_asking_trains_once_and_prints_only_the_answer(shell):
    question = "a person who writes novels"
    first = shell("demo", "--ask", question, *FEW, "--model", "w", "--quiet")
    model = load_model("w")
    written = (shell.folder / "w").stat().st_mtime_ns
    again = shell("demo", "--ask", question, "--model", "w")
    assert (shell.folder / "w").stat().st_mtime_ns == written
    assert again.stdout == first.stdout and again.stderr == ""
    codes, _ = model.topk([question], 5)
    assert [line.split("\t")[0] for line in first.stdout.splitlines()] == model.classes[codes[0]].tolist()
    asked = json.loads(shell("demo", "--ask", question, "--model", "w", "--json").stdout)
    assert asked["classes"] == model.classes[codes[0]].tolist()


def test_words_that_nobody_knows_are_refused(shell):
    shell("demo", "--ask", "a person", *FEW, "--model", "w", "--quiet")
    assert "no word of 'qwrtz' occurs" in shell("demo", "--ask", "qwrtz", "--model", "w", code=2).stderr


@pytest.mark.parametrize(
    ("members", "message"),
    [(1, "Invalid value for '--min-members'"), (10**6, "--min-members 1000000 leaves 0 classes")],
)
def test_impossible_numbers_of_members_are_rejected(shell, members, message):
    assert message in shell("demo", "--min-members", members, code=2).stderr
