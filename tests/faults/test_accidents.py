"""A short version of `make torture`: a few calls of each kind fail, and a few processes are killed."""

import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).with_name("torture.py")


def torture(*arguments):
    command = [sys.executable, TORTURE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=1800)


@pytest.mark.parametrize(
    ("operations", "most", "kills"),
    [
        (["save", "shards"], 2, 4),
        pytest.param(["save", "compress", "remove", "shards"], 3, 12, marks=pytest.mark.slow),
        pytest.param(["convert", "append"], 2, 8, marks=pytest.mark.slow),
        pytest.param(
            ["train from a store", "train (ww)", "train (maxent)", "train (one-vs-one)", "train (PPDSparse)"],
            1,
            15,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_nothing_is_lost_and_nothing_wrong_is_accepted(operations, most, kills):
    done = torture("--operations", *operations, "--most", most, "--kills", kills)
    assert done.returncode == 0, done.stdout + done.stderr
    *_, faults, killed = done.stdout.splitlines()
    assert faults.endswith(" faults: lost 0, wrong 0") and int(faults.split()[0]) >= 6 * len(operations)
    assert killed == f"{kills} kills: lost 0, wrong 0"
