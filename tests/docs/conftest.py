"""A shell as a newcomer has it, in a folder of its own."""

import os
import sys
from pathlib import Path

import pytest
import warm_command
from following import ALL


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


@pytest.fixture
def empty_folder(programs, tmp_path, monkeypatch):
    """An empty folder to work in, with the commands at hand."""
    monkeypatch.chdir(tmp_path)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):  # tests often run in containers
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path
