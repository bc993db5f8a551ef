"""What commands make of the environment that mpirun gives its ranks; `engines/test_mpi.py` has mpirun itself."""

import pytest

from manyclass.cli import ranks


@pytest.mark.parametrize(
    "command", [["cv", "train.svm"], ["demo"], ["inspect", "train.svm"], ["reproduce", "alber-b1"]]
)
def test_what_does_not_divide_its_work_refuses_several_ranks(command, shell, svm, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    result = shell(*command, code=2)
    assert result.stderr.startswith(f"error: mpirun has started 3 ranks, and each would do all of {command[0]}: ")
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
