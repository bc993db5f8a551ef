"""Every command and every block of Python in the documents works as printed.

Each page is followed from top to bottom in a folder of its own that holds nothing but what `manyclass samples` writes
(the README begins in an empty one, and writes them itself). What takes long is only run with MANYCLASS_ALL_DOCS=1;
what cannot be run here is listed with the reason. The Python blocks of a page share their variables. One that begins
with the name of a file, as a comment, is saved as that file.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warm_command
from pages import LANGUAGES, PAGES, ROOT, blocks, commands

from manyclass.data.samples import write_samples

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


def names(page):
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The folders with the commands: with MANYCLASS_ALL_DOCS as they are installed, else one that starts at once."""
    installed = str(Path(sys.executable).parent)
    if ALL:
        yield installed
        return
    folder = tmp_path_factory.mktemp("bin")
    server = warm_command.start(folder)
    yield f"{folder}:{installed}"
    server.terminate()
    server.wait()


def begins(command, mark):
    """Whether a command, or one that it pipes to, begins with these words."""
    return re.search(rf"(^|\| ){re.escape(mark)}(?![\w-])", command) is not None


def is_run(command):
    return not any(begins(command, mark) for mark in (NEVER if ALL else NEVER | SLOW))


def is_executed(code):
    return not any(mark in code for mark in (NEVER_IN_PYTHON if ALL else NEVER_IN_PYTHON | SLOW_IN_PYTHON))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_blocks_say_what_they_are(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.place}: a block has to be one of {', '.join(LANGUAGES)}"
        if block.language == "python":
            ast.parse(block.code)
    outside = re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text())
    indented = re.findall(r"\n\n {4}[^\n]*", outside)
    assert not indented, f"{page.name}: fence these blocks, and say what they are: {indented}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(block.language != "text" for block in blocks(page))], ids=names
)
def test_a_page_can_be_followed(page, programs, tmp_path, monkeypatch):
    if page != ROOT / "README.md":
        write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):  # tests often run in containers
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    variables: dict = {"__name__": "__main__"}
    for block in blocks(page):
        if name := re.match(r"# (\w+\.py)\n", block.code):
            (tmp_path / name[1]).write_text(block.code)
        elif block.language == "python" and is_executed(block.code):
            exec(compile(block.code, block.place, "exec"), variables)
        elif block.language == "sh":
            follow(block)


def follow(block):
    for command in commands(block.code):
        if not is_run(command):
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block.place}: {command}\n{done.stdout}{done.stderr}"


def test_nothing_is_left_out_that_is_not_there():
    found = [block for page in PAGES for block in blocks(page)]
    given = [command for block in found if block.language == "sh" for command in commands(block.code)]
    python = [block.code for block in found if block.language == "python"]
    stale = [mark for mark in NEVER | SLOW if not any(begins(command, mark) for command in given)]
    stale += [mark for mark in NEVER_IN_PYTHON | SLOW_IN_PYTHON if not any(mark in code for code in python)]
    assert not stale
