"""Ranks on two hosts, if the machine can simulate them: see `scripts/two_hosts.py`."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "two_hosts.py"


@pytest.mark.slow
def test_two_hosts_train_as_one_and_notice_when_the_cable_is_cut():
    pytest.importorskip("mpi4py")
    found = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=300)
    if found.returncode == 77:
        pytest.skip(found.stdout.strip())
    assert found.returncode == 0, found.stderr
    assert "to the last bit" in found.stdout and "has not been heard from" in found.stdout
