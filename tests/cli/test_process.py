"""What only shows in a process of its own: signals, closed pipes, missing packages."""

import json
import os
import signal
import subprocess
import sys

import pytest

from manyclass.engines import CheckpointFolder
from manyclass.model import load_model

START = [sys.executable, "-c", "from manyclass.cli import main; main()"]
# The same, with a line on standard error from the moment that Ctrl-C no longer ends the process at once.
ANNOUNCED = """
import sys
from contextlib import contextmanager
from manyclass.cli import main
from manyclass.engines import training

@contextmanager
def announced(*given, listening=training.listening):
    with listening(*given) as found:
        print("listening", file=sys.stderr, flush=True)
        yield found

training.listening = announced
main()
"""


@pytest.mark.parametrize("loss", ["ww", "hinge"])
def test_ctrl_c_gives_130_and_a_usable_model(svm, loss):
    endless = ["--tol", "1e-300", "--stop", "kkt", "--max-iter", "1000000000", "--dtype", "float64"]
    command = [sys.executable, "-c", ANNOUNCED, "train", "train.svm", "--loss", loss, "--json", "--checkpoint", "c"]
    with subprocess.Popen(
        [*command, *endless], cwd=svm, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert "training" in process.stderr.readline()
        assert process.stderr.readline() == "listening\n"
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted" in stderr and "Traceback" not in stderr
    assert "resume from there with --resume" in stderr
    assert CheckpointFolder(svm / "c").read() is not None
    assert json.loads(stdout)["certificate"]["exit_reason"] == "interrupted"
    assert load_model(svm / "train.manyclass").n_classes == 4


# Ctrl-C in the middle of the imports.
EARLY = """
import os, signal, sys
from manyclass.cli import main

class Interrupted:
    def find_spec(self, name, *_):
        if name == "manyclass.cli.train":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupted())
main()
"""


def test_ctrl_c_while_starting_gives_130_without_a_traceback():
    done = subprocess.run([sys.executable, "-c", EARLY, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_ctrl_c_while_reading_gives_130_and_no_model(tmp_path):
    with subprocess.Popen(
        [*START, "train", "-"], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        # More than a pipe holds: the text has left our hands when the process is reading it.
        process.stdin.write("1 1:1\n" * 50_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_enough_causes_no_complaint(svm):
    subprocess.run([*START, "train", "train.svm", "-q"], cwd=svm, check=True, stdout=subprocess.DEVNULL)
    rows = (svm / "test.svm").read_text() * 500
    (svm / "many.svm").write_text(rows)
    command = [*START, "predict", "train.manyclass", "many.svm", "-k", "4", "--scores"]
    with subprocess.Popen(command, cwd=svm, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        stderr = process.stderr.read()
    assert process.returncode == 141 and stderr == b""


def test_without_typer_the_error_names_the_extra():
    code = "import sys; sys.modules['typer'] = None; from manyclass.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1 and 'pip install "manyclass[cli]"' in result.stderr


@pytest.mark.parametrize("command", [["--help"], ["train", "-h"], ["--version"]])
def test_help_is_given_by_the_first_rank(command):
    answers = [
        subprocess.run(
            [*START, *command],
            env=os.environ | {"OMPI_COMM_WORLD_RANK": str(rank)},
            capture_output=True,
            text=True,
            check=True,
        )
        for rank in (0, 1)
    ]
    assert answers[0].stdout and answers[1].stdout == answers[1].stderr == ""


def test_python_can_run_the_package(svm):
    run = [
        subprocess.run(start, capture_output=True, text=True, cwd=svm)
        for start in ([sys.executable, "-m", "manyclass", "inspect", "train.svm"], [*START, "inspect", "train.svm"])
    ]
    assert run[0].returncode == 0 and run[0].stdout == run[1].stdout != ""
    wrong = subprocess.run([sys.executable, "-m", "manyclass", "inspct"], capture_output=True, text=True, cwd=svm)
    assert wrong.returncode == 2 and "Usage: manyclass " in wrong.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("manyclass tr", "train"),
        ("manyclass train --loss squ", "squared_hinge"),
        ("manyclass predict --str", "--strict"),
    ],
)
def test_shells_complete_commands_options_and_choices(words, expected):
    asked = {"_MANYCLASS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    found = subprocess.run(START, env=os.environ | asked, capture_output=True, text=True)
    assert expected in found.stdout.split() and found.stderr == ""


def test_the_script_for_completion_is_printed():
    shown = subprocess.run(
        [*START, "--show-completion", "bash"],
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0 and "_MANYCLASS_COMPLETE" in shown.stdout and "complete" in shown.stdout
