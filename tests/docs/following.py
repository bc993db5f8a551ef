"""Which commands and Python blocks of the documents are run, and how."""

import os
import re
import subprocess

ALL = os.environ.get("MANYCLASS_ALL_DOCS") == "1"
# Never run, with the reason: commands by their first words, Python blocks by some text in them.
NEVER = {
    "pip install": "the tests use the installed package",
    "make": "`make test` would run itself, and other targets take minutes or change the repository",
    "python -m benchmarks": "measures for minutes to hours; tests/benchmarks tests the package",
    "manyclass --install-completion": "changes the shell of whoever runs the tests",
    "manyclass train train.svm.xz": "needs WordNet's rows as svmlight text, which are not in the package",
    "manyclass reproduce": "needs the data sets of the papers; tests/cli/test_reproduce.py runs it on small ones",
}
NEVER_IN_PYTHON = {
    'Client("scheduler:8786")': "there is no such cluster; tests/engines/test_label_parallel.py starts its own",
    "class TopTwo": "a part of a file, as an example",
}
# Only run with MANYCLASS_ALL_DOCS=1.
SLOW = {
    "manyclass predict wordnet.manyclass": "needs the model of the block below",
    "manyclass demo": "trains 4,796 classes",
    "mpirun": "starts processes that import everything",
}
SLOW_IN_PYTHON = {"load_wordnet(min_members=5)": "trains 4,796 classes"}


def begins(command, mark):
    """Return whether a command, or one that it pipes to, begins with these words."""
    return re.search(rf"(^|\| ){re.escape(mark)}(?![\w-])", command) is not None


def is_run(command):
    return not any(begins(command, mark) for mark in (NEVER if ALL else NEVER | SLOW))


def is_executed(code):
    return not any(mark in code for mark in (NEVER_IN_PYTHON if ALL else NEVER_IN_PYTHON | SLOW_IN_PYTHON))


def run(command, place):
    """Run a command in a shell as printed, unless it is left out."""
    if not is_run(command):
        return
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    stopped_by_head = 141 if "| head" in command else 0  # head may close the pipe before everything is written
    assert done.returncode in (0, stopped_by_head), f"{place}: {command}\n{done.stdout}{done.stderr}"
