"""An empty folder and a shell with the commands, like those of a new user."""

import os
import sys
from pathlib import Path

import pytest
import warm_command
from following import ALL


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Yield the folders of the commands: as installed with MANYCLASS_ALL_DOCS, else a version that starts at once."""
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
    """Change to an empty folder, with the commands on the path."""
    monkeypatch.chdir(tmp_path)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):  # for tests in containers
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path
