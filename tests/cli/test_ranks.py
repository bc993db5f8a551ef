"""What commands make of the environment that mpirun gives its ranks; `engines/test_mpi.py` has mpirun itself."""

import re
from pathlib import Path

import pytest

from manyclass.cli import ranks

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command", [["cv", "train.svm"], ["demo"], ["inspect", "train.svm"], ["reproduce", "alber-b1"]]
)
def test_what_does_not_divide_its_work_refuses_several_ranks(command, shell, svm, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    result = shell(*command, code=2)
    assert result.stderr.startswith(f"error: mpirun has started 3 ranks, and each would do all of {command[0]}; ")
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1


def test_one_rank_is_no_reason_to_refuse(shell, svm, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert shell.json("inspect", "train.svm")["rows"] == 200


@pytest.mark.parametrize("command", [["cv", "train.svm"], ["train", "--no-such"], ["no-such"], ["--no-such"]])
@pytest.mark.parametrize("rank", ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"])
def test_other_ranks_wait_before_they_speak(rank, command, shell, svm, monkeypatch):
    waited = []
    monkeypatch.setattr(ranks.time, "sleep", waited.append)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    for number in (0, 1):
        monkeypatch.setenv(rank, str(number))
        assert "rror" in shell(*command, code=2).stderr
        assert waited == [ranks.PATIENCE] * number


@pytest.mark.parametrize(
    "page", ["README.md", "docs/command-line.md", "docs/clusters.md", "src/manyclass/cli/train.py"]
)
def test_commands_for_mpirun_are_printed_for_machines_of_two_cores(page):
    """Open MPI starts no more ranks than there are cores unless it is told to."""
    lines = [line for line in (ROOT / page).read_text().splitlines() if re.match(r"\s*mpirun -n", line)]
    assert lines
    for line in lines:
        wanted = int(re.search(r"mpirun -n (\d+)", line)[1])
        assert wanted <= 2 or "--oversubscribe" in line or "--map-by node" in line, line
