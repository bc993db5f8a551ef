"""Errors say what to do in the words of the command line."""

import ast
import re
from pathlib import Path

import pytest

import manyclass
from manyclass.cli import wording
from manyclass.data import remedies

SOURCE = Path(manyclass.__file__).parent
# A parameter with a value, a call, a constant, or a name with an underscore.
PYTHON = re.compile(r"\b[A-Za-z_]+=['\"\w{]|\w\(\)|\b(True|False|None)\b|\b(n_jobs|max_iter|fit_intercept)\b")
# Parameters of functions and methods that no command calls with what a user has given.
IN_PYTHON_ONLY = {
    *("n", "n_test", "K", "nnz", "d", "shape", "unknown", "unknown_features", "format", "input"),
    "MANYCLASS_ISA",  # a variable of the environment
}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("solver='newton' trains loss 'ww' only", "--solver newton trains loss 'ww' only"),
        ("pass resume=True to go on", "pass --resume to go on"),
        ("stopped after max_iter=5 passes; raise max_iter", "stopped after --max-iter 5 passes; raise --max-iter"),
        ("C=inf is for the loss", "-C inf is for the loss"),
        ("lam=0.5, n_jobs=2", "--lambda 0.5, --jobs 2"),
        ("the solver of this loss", "the solver of this loss"),
        ("the label abC=3", "the label abC=3"),
        ("already --max-iter 5", "already --max-iter 5"),
    ],
)
def test_parameters_become_options(message, expected):
    assert wording.with_options(message) == expected


def test_both_interfaces_have_a_word_for_every_remedy():
    assert wording.REMEDIES.keys() == remedies.REMEDIES.keys()
    assert not [text for text in wording.REMEDIES.values() if PYTHON.search(text)]


def test_options_of_messages_exist(shell):
    helps = "".join(shell(command, "--help").stdout for command in ("train", "cv", "demo", "convert"))
    for option in wording.options().values():
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", helps), option


def raised_texts():
    """The constant parts of all texts that the library raises, with where they are."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] in ("cli", "reproductions"):
            continue
        for raised in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Raise)):
            for node in ast.walk(raised):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{path.name}:{node.lineno}", node.value


def test_every_parameter_that_an_error_names_has_an_option():
    unknown = {
        f"{place}: {name}="
        for place, text in raised_texts()
        for name in re.findall(r"(?<![\w-])([A-Za-z_]+)=", text)
        if name not in wording.options() and name not in IN_PYTHON_ONLY
    }
    assert not unknown


@pytest.mark.parametrize(
    ("content", "arguments"),
    [
        ("1 1:nan\n2 2:1\n", ["train", "x.svm"]),
        ("1 1:1e39\n2 2:1\n", ["train", "x.svm"]),
        ("1,2 1:1\n2 2:1\n", ["train", "x.svm", "--loss", "cs"]),
        ("3 0:1\n", ["predict", "m", "x.svm"]),
        ("3 99:1\n", ["predict", "m", "x.svm", "--strict"]),
        ("3 1:inf\n", ["evaluate", "m", "x.svm"]),
        ("", ["train", "train.svm", "--loss", "hinge", "--solver", "newton"]),
        ("", ["train", "train.svm", "--loss", "cs", "--engine", "joblib"]),
        ("", ["train", "train.svm", "--loss", "hinge", "--solver", "leagues"]),
        ("", ["train", "train.svm", "--loss", "mmr", "--feature-reduction"]),
        ("", ["train", "train.svm", "--jobs", "0"]),
        ("", ["train", "store", "--loss", "squared_hinge", "--update", "block"]),
        ("", ["train", "store", "--loss", "squared_hinge", "--method", "pegasos", "--rounds", "2"]),
        ("", ["train", "store", "--loss", "ww", "--method", "pegasos"]),
        ("", ["train", "store", "--memory", "1kB"]),
        ("", ["cv", "train.svm", "--folds", "500"]),
        ("", ["demo", "--min-members", "100000"]),
    ],
)
def test_errors_of_commands_have_no_python(shell, svm, content, arguments):
    (svm / "x.svm").write_text(content)
    shell("train", "train.svm", "-m", "m", "-q")
    shell("convert", "train.svm", "store")
    message = shell(*arguments, code=2).stderr
    assert "rror" in message
    assert not PYTHON.search(message), message
