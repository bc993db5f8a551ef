"""Which commands and Python of the documents are run, and how."""

import os
import re
import subprocess

ALL = os.environ.get("MANYCLASS_ALL_DOCS") == "1"
# What is not run, and why: commands by how they begin, Python by what it contains.
NEVER = {
    "pip install": "the tests run on what it has installed",
    "make": "targets of the repository: `make test` would run itself, the others take minutes or change it",
    "python -m benchmarks": "measures for minutes to hours; tests/benchmarks tests the package",
    "manyclass --install-completion": "changes the shell of whoever runs the tests",
    "manyclass train train.svm.xz": "needs WordNet's rows as svmlight text, which are not in the package",
    "manyclass reproduce": "needs the data sets of the papers; tests/cli/test_reproduce.py runs it on small ones",
}
NEVER_IN_PYTHON = {
    'Client("scheduler:8786")': "there is no such cluster; tests/engines/test_label_parallel.py has one of its own",
    "class TopTwo": "a part of a file, as an example",
}
# What is run with MANYCLASS_ALL_DOCS=1 only.
SLOW = {
    "manyclass predict wordnet.manyclass": "needs the model of the block below",
    "manyclass demo": "trains 4,796 classes",
    "mpirun": "starts processes that import everything",
}
SLOW_IN_PYTHON = {"load_wordnet(min_members=5)": "trains 4,796 classes"}


def begins(command, mark):
    """Whether a command, or one that it pipes to, begins with these words."""
    return re.search(rf"(^|\| ){re.escape(mark)}(?![\w-])", command) is not None


def is_run(command):
    return not any(begins(command, mark) for mark in (NEVER if ALL else NEVER | SLOW))


def is_executed(code):
    return not any(mark in code for mark in (NEVER_IN_PYTHON if ALL else NEVER_IN_PYTHON | SLOW_IN_PYTHON))


def run(command, place):
    """Run a command in a shell as it is printed, unless it is one of those that are left out."""
    if not is_run(command):
        return
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    stopped_by_head = 141 if "| head" in command else 0  # head may close the pipe before everything is written
    assert done.returncode in (0, stopped_by_head), f"{place}: {command}\n{done.stdout}{done.stderr}"
