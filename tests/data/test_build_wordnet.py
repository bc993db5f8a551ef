"""The script that builds the WordNet data set reproduces the file that is shipped."""

import importlib.util
import lzma
from importlib import resources
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_wordnet.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("build_wordnet", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_builds_the_shipped_file(script):
    if not (script.DEFAULT_SOURCE / "data.noun").exists():
        pytest.skip("needs the files of WordNet 3.0 (Debian: apt-get install wordnet-base)")
    shipped = resources.files("manyclass.data").joinpath("wordnet.txt.xz").read_bytes()
    assert script.build(script.DEFAULT_SOURCE) == lzma.decompress(shipped).decode()


def test_first_hypernym_gloss_and_names(script, tmp_path):
    (tmp_path / "data.noun").write_text(
        "  1 licence\n"
        "00000010 03 n 01 Bank 0 000 | money house  \n"
        "00000020 03 n 02 bank 0 shore 0 000 | river side  \n"
        '00000030 03 n 01 till 0 003 ~ 00000099 n 0000 @ 00000010 n 0000 @ 00000020 n 0000 | a box; "e  g"\n'
        "00000040 03 n 01 vault 0 001 @i 00000010 n 0000 | a room  \n"
        "00000050 03 n 01 levee 0 001 @ 00000020 n 0000 | a wall  \n"
        "00000060 03 n 01 dam 0 001 @ 00000020 n 0000 | a block  \n"
        "00000070 03 n 01 alone 0 001 @ 00000060 n 0000 | an only child  \n"
    )
    (tmp_path / "index.noun").write_text(
        "  1 licence\nbank n 2 0 2 0 00000020 00000010  \nshore n 1 0 1 0 00000020  \n"
    )
    (tmp_path / "data.verb").write_text("")
    (tmp_path / "index.verb").write_text("")
    lines = script.build(tmp_path).splitlines()
    classes = ["Bank (noun, sense 2)", "bank (noun, sense 1)"]
    assert [line[2:] for line in lines if line.startswith("=")] == classes
    assert [line[2:] for line in lines] == [
        classes[0],
        'a box; "e g"',
        "a room",
        classes[1],
        "a wall",
        "a block",
    ]
