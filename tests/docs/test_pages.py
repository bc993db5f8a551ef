"""Every command and every block of Python in the documents works as printed.

Each page is followed from top to bottom in a separate folder with the files of `manyclass samples` (the README starts
in an empty one, and writes them itself). Slow commands are only run with MANYCLASS_ALL_DOCS=1; commands that cannot
run here are listed with the reason. The Python blocks of a page share their variables. A block whose first line is a
comment with a file name is saved as that file.
"""

import ast
import re

import pytest
from following import NEVER, NEVER_IN_PYTHON, SLOW, SLOW_IN_PYTHON, begins, is_executed, run
from pages import LANGUAGES, PAGES, ROOT, blocks, commands

from manyclass.data.samples import write_samples


def names(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_blocks_say_what_they_are(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.place}: a block has to be one of {', '.join(LANGUAGES)}"
        if block.language == "python":
            ast.parse(block.code)
    outside = re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text())
    indented = re.findall(r"\n\n {4}[^\n]*", outside)
    assert not indented, f"{page.name}: fence these blocks and give their language: {indented}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(block.language != "text" for block in blocks(page))], ids=names
)
def test_a_page_can_be_followed(page, empty_folder):
    if page != ROOT / "README.md":
        write_samples(empty_folder)
    variables: dict = {"__name__": "__main__"}
    for block in blocks(page):
        if name := re.match(r"# (\w+\.py)\n", block.code):
            (empty_folder / name[1]).write_text(block.code)
        elif block.language == "python" and is_executed(block.code):
            exec(compile(block.code, block.place, "exec"), variables)
        elif block.language == "sh":
            for command in commands(block.code):
                run(command, block.place)


def test_nothing_is_left_out_that_is_not_there():
    found = [block for page in PAGES for block in blocks(page)]
    given = [command for block in found if block.language == "sh" for command in commands(block.code)]
    python = [block.code for block in found if block.language == "python"]
    stale = [mark for mark in NEVER | SLOW if not any(begins(command, mark) for command in given)]
    stale += [mark for mark in NEVER_IN_PYTHON | SLOW_IN_PYTHON if not any(mark in code for code in python)]
    assert not stale
