"""Ranks of mpirun: the same bits for any number of them, common checkpoints, and the end of a job when one rank ends.

Starting mpirun takes seconds, so each job does a lot: see the package `under_mpirun`.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from operator import methodcaller

import numpy as np
import pytest
from losses import text_like
from typer.testing import CliRunner
from under_mpirun import checkpoints, fits
from under_mpirun.rows import LARGE

from manyclass.cli.app import app
from manyclass.data import save_svmlight
from manyclass.engines import CheckpointFolder

pytest.importorskip("mpi4py")
MPIRUN = pathlib.Path(sys.executable).with_name("mpirun")
if not MPIRUN.exists():
    pytest.skip("mpirun is not installed next to Python", allow_module_level=True)

# One worker of pytest runs all of this, so that the jobs that several tests share run once.
pytestmark = pytest.mark.xdist_group("mpirun")
HERE = pathlib.Path(__file__).parent
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent / 'common'}",
}
AT_MOST = 120  # seconds for any job; one that hangs is killed and fails the test


class Job(subprocess.Popen):
    """A job of mpirun; processes that are left at the end are killed."""

    def __init__(self, ranks, *command, program=("-m", "under_mpirun"), within=()):
        start = [*within, MPIRUN, "--oversubscribe", "-n", str(ranks), sys.executable, *program, *map(str, command)]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        super().__init__(start, env=ENVIRONMENT, **streams)

    def __exit__(self, *exc):
        self.kill_all()
        super().__exit__(*exc)

    def kill_all(self):
        """`kill -9` mpirun and all ranks."""
        family = [self.pid]
        for parent in family:
            family += [int(child) for child in children_of(parent)]
        if self.poll() is None:
            for pid in family:
                kill(pid)
            self.wait()

    def kill_mpirun(self):
        """`kill -9` mpirun alone, and wait for its ranks to notice."""
        ranks = children_of(self.pid)
        self.kill()
        end = time.monotonic() + 30
        while any(pathlib.Path(f"/proc/{rank}").exists() for rank in ranks):
            time.sleep(0.05)
            assert time.monotonic() < end, "ranks keep running without mpirun"

    def kill_a_rank(self):
        """`kill -9` the last rank."""
        kill(int(children_of(self.pid)[-1]))

    def end(self):
        """Return the standard output and error of a job that ends by itself."""
        return self.communicate(timeout=AT_MOST)


def kill(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def act(ranks, *command, **options):
    with Job(ranks, *command, **options) as job:
        _, stderr = job.end()
    return job.returncode, stderr


# ---- Jobs that succeed


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    rough = checkpoints.fit_with_checkpoints("ww", "leagues", "memory", None, tol=0.1)
    return {
        "closer": checkpoints.closer_targets("memory", tmp_path_factory.mktemp("closer")),
        "shared out": fits.digest(fits.fit("ppd_hinge", "memory", *text_like(150, 100, 100))),
        "shards": fits.shards_in_common(tmp_path_factory.mktemp("shards") / "model", "memory")[:1],
        "fits": fits.all_fits("memory"),
        "whole": checkpoints.whole_fits("memory"),
        "rough": fits.digest(rough),
    }


@pytest.fixture(scope="module")
def by_ranks(tmp_path_factory):
    """The results of all ranks, by the size of their group."""
    folder = tmp_path_factory.mktemp("ranks")
    code, stderr = act(4, "everything", folder)
    assert code == 0, stderr
    found = {int(ranks): each for ranks, each in json.loads((folder / "found.json").read_text()).items()}
    assert all(len(found[ranks]) == ranks for ranks in (1, 2, 3, 4))
    return found | {"folder": folder}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_every_rank_has_the_model_and_certificate_of_one_process(ranks, by_ranks, alone):
    for found in by_ranks[ranks]:
        assert found["fits"] == alone["fits"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_any_number_of_ranks_resumes_from_checkpoints_of_three(ranks, by_ranks, alone):
    for found in by_ranks[ranks]:
        assert found["resumed"] == alone["whole"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_ranks_without_a_match_write_no_part_of_a_checkpoint(ranks, by_ranks, alone):
    for found in by_ranks[ranks]:
        assert found["few"] == alone["fits"]["ww by leagues, 3 classes"]
    assert 1 <= len(CheckpointFolder(by_ranks["folder"] / f"few-{ranks}").read().parts) <= 2


def test_one_process_resumes_from_checkpoints_of_three_ranks(by_ranks, alone):
    stopped = by_ranks["folder"] / "stopped"
    assert {len(CheckpointFolder(stopped / f"ww-leagues-{k}").read().parts) for k in (1, 5, 8, 19)} == {3}
    assert checkpoints.resume_all(stopped, stopped.with_name("resumed"), "memory") == alone["whole"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_blocks_that_miss_a_smaller_tol_are_trained_further(ranks, by_ranks, alone):
    for found in by_ranks[ranks]:
        assert found["closer"] == alone["closer"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_every_shared_number_goes_to_exactly_one_rank(ranks, by_ranks):
    for found in by_ranks[ranks]:
        assert found["numbers"] == [list(range(count)) for count in (0, 1, 1000, 7)]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_late_rank_does_not_hold_up_the_others(ranks, by_ranks, alone):
    for found in by_ranks[ranks]:
        for late, (trained, model) in zip((0, ranks - 1), found["late"], strict=True):
            assert len(trained[late]) == 1
            assert sorted(block for each in trained for block in each) == list(range(7))
            assert model == alone["shared out"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_messages_larger_than_a_piece_arrive_intact(ranks, by_ranks, alone):
    for found in by_ranks[ranks]:
        assert found["pieces"] == [True, alone["fits"]["ww by 7 leagues"]]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_all_ranks_raise_if_one_has_other_rows(ranks, by_ranks):
    for found in by_ranks[ranks]:
        assert f"rank {ranks - 1} trains a different problem from rank 0: rows of X" in found["different"]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_train_shards_together_in_a_common_folder(ranks, by_ranks, alone):
    for found in by_ranks[ranks]:
        assert found["shards"][:2] == 2 * alone["shards"]
        assert f"rank {ranks - 1} sees shards of 0 labels" in found["shards"][2]
        assert "use a folder that all hosts share" in found["shards"][2]


def check_full_disk(found, folder, reason, alone):
    """There is one warning and the right model, and only the checkpoints from before are left, intact."""
    for rank, (seen, model) in enumerate(found):
        assert len(seen) == (rank == 0) and model == alone["rough"]
        assert all(reason in message for message in seen)
    assert len(list(folder.iterdir())) == 2 * (len(found) + 1)
    assert CheckpointFolder(folder).read().generation == 2
    resumed = checkpoints.fit_with_checkpoints("ww", "leagues", "memory", folder, 600, resume=True, tol=0.1)
    assert fits.digest(resumed) == alone["rough"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_rank_that_cannot_write_causes_one_warning(ranks, by_ranks, alone):
    found = [each["full disk"] for each in by_ranks[ranks]]
    check_full_disk(found, by_ranks["folder"] / f"full-{ranks}", "File too large", alone)


def test_a_full_disk_causes_one_warning(tmp_path, alone):
    disk = tmp_path / "disk"
    disk.mkdir()
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = 'mount -t tmpfs -o size=1m small "$0" && exec "$@"'
    within = ["unshare", "--mount", *as_root, "sh", "-c", mount, disk]
    allowed = subprocess.run([*within, "true"], capture_output=True, text=True)
    if allowed.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {allowed.stderr.strip()}")
    code, stderr = act(2, "small_disk", tmp_path, within=within)
    assert code == 0, stderr
    found = json.loads((tmp_path / "found.json").read_text())
    check_full_disk(found, tmp_path / "c", "No space left on device", alone)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_rows_are_read_once_and_shared_by_all_ranks(ranks, by_ranks, alone):
    rows = [found["rows"] for found in by_ranks[ranks]]
    assert [row["calls"] for row in rows] == [1] + [0] * (ranks - 1)
    assert all(row["model"] == alone["fits"]["hinge"] for row in rows)
    if ranks > 1:
        assert all(row["places"] == rows[0]["places"] for row in rows)
        assert {place[0] for place in rows[0]["places"]} == {"r--s"} and not any(row["writable"] for row in rows)
        assert max(row["own memory"] for row in rows) < 8 * LARGE * 3 / 4


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_parts_of_all_ranks_are_joined_once(ranks, by_ranks, alone):
    parts = [found["parts"] for found in by_ranks[ranks]]
    assert [part["joined"] for part in parts] == [ranks] + [0] * (ranks - 1)
    assert all(part["model"] == alone["fits"]["hinge"] for part in parts)
    assert all(part["place"] == parts[0]["place"] for part in parts)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_parts_of_all_ranks_are_joined_on_each_host(ranks, by_ranks, alone):
    *here, there = [found["parts on two hosts"] for found in by_ranks[ranks]]
    assert [part["joined"] for part in here] == [ranks] + [0] * (ranks - 2) and there["joined"] == ranks
    assert all(part["model"] == alone["fits"]["hinge"] for part in (*here, there))
    assert all(part["place"] == here[0]["place"] for part in here)
    assert there["place"][0] == "rw-p"  # alone on its host: private memory


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_all_ranks_raise_the_error_of_the_one_that_reads(ranks, by_ranks):
    assert {found["unreadable"] for found in by_ranks[ranks]} == {"[Errno 2] No such file: 'asked for by 0'"}


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_that_cannot_share_memory_get_copies_and_log_why(ranks, by_ranks, alone):
    for rank, found in enumerate(by_ranks[ranks]):
        models, messages = found["copied"]
        assert models == [alone["fits"]["hinge"]] * 2
        assert len(messages) == (2 if rank == 0 else 0)
    everyone, last = by_ranks[ranks][0]["copied"][1]
    others = ", ".join(map(str, range(1, ranks)))
    assert f"copied to rank {others}, because" in everyone and everyone.count("File too large") == 1
    assert f"copied to rank {ranks - 1}, because" in last and "not visible in /proc" in last


def test_ranks_on_one_host_share_its_cores(by_ranks):
    cores = len(os.sched_getaffinity(0))
    for ranks in (2, 3, 4):
        assert sum(found["threads"] for found in by_ranks[ranks]) <= max(cores, ranks)


# ---- Jobs that end early


@pytest.mark.parametrize(("where", "cause"), [("before", "NaN"), ("parcel", "made up for the test")])
def test_a_rank_that_raises_ends_the_job_and_says_why(where, cause, tmp_path):
    code, stderr = act(2, "raises", tmp_path, where)
    assert code == 1
    [line] = [line for line in stderr.splitlines() if line.startswith("manyclass: ")]
    assert line.startswith(f"manyclass: rank 1 of 2 on {os.uname().nodename} ends the job: ") and cause in line


def wait_for(job, condition):
    """Wait until the condition holds or the job has ended."""
    end = time.monotonic() + AT_MOST
    while job.poll() is None and not condition() and time.monotonic() < end:
        time.sleep(0.005)


@pytest.mark.slow
def test_stopped_again_and_again_the_model_is_the_same(tmp_path):
    """Stop at random moments by kill -9 of everything, of mpirun or of a rank, by Ctrl-C, SIGTERM and SIGUSR1."""
    fit = partial(checkpoints.fit_with_checkpoints, "ww", "leagues", "memory", tol=1e-3)
    whole = fits.digest(fit(None))
    rng = np.random.default_rng(0)
    folder, codes, said = CheckpointFolder(tmp_path / "c"), [], []
    signals = [methodcaller("send_signal", number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]
    for stop in (Job.kill_all, Job.kill_mpirun, Job.kill_a_rank, *signals):
        with Job(2, "until_the_end", tmp_path, 0) as job:
            before = folder.generations()
            wait_for(job, lambda before=before: folder.generations() != before)
            time.sleep(rng.uniform(0, 0.1))
            stop(job)
            begin = time.monotonic()
            said.append(job.end()[1])
            assert time.monotonic() - begin < 30
        codes.append(job.returncode)
        copy = shutil.copytree(folder.path, tmp_path / f"copy-{len(codes)}")
        assert fits.digest(fit(copy, 600, resume=True)) == whole
    assert codes[:2] == [-signal.SIGKILL] * 2 and 0 not in codes[2:5]
    # A rank whose fit is over when the signal arrives no longer handles it, and is killed by it.
    assert codes[5] in (0, 128 + signal.SIGUSR1)
    assert "rank 1" in said[2] and "signal 9" in said[2]
    code, stderr = act(2, "until_the_end", tmp_path, 600)
    assert code == 0, stderr
    assert (tmp_path / "digest").read_text() == whole


# ---- The command line


def test_the_mpirun_of_another_mpi_is_an_error():
    command = [sys.executable, "-c", "from manyclass.cli import main; main()", "train", "rows.svm"]
    found = subprocess.run(command, env=ENVIRONMENT | {"OMPI_COMM_WORLD_SIZE": "4"}, capture_output=True, text=True)
    assert found.returncode == 2
    assert "mpirun started 4 processes, but MPI sees 1" in found.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [(["cv", "rows.svm"], "error: mpirun has started 2 ranks"), (["train", "--no-such"], "No such option")],
)
def test_an_error_of_all_ranks_is_printed_once(command, said):
    with Job(2, *command, program=("-c", "from manyclass.cli import main; main()")) as job:
        stdout, stderr = job.end()
    assert job.returncode == 2 and stdout == ""
    assert stderr.count(said) == 1


def test_commands_give_the_results_of_one_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = text_like(200, 50, 12)
    X = X.astype(np.float32).tolil()
    X[120:123, 0] = 0  # so that features of the second part seem to count from 1
    X = X.tocsr()
    parts = {"train": (0, 200), "part-0": (0, 120), "part-1": (120, 123), "part-2": (123, 200)}
    for name, (first, last) in (parts | {"last-0": (0, 50), "last-2": (50, 200)}).items():
        save_svmlight(X[first:last], y[first:last], f"{name}.svm", zero_based=True)
    texts = [f"{' '.join(f'w{word}' for word in row.indices)},{label}\n" for row, label in zip(X, y, strict=True)]
    for name, (first, last) in parts.items():
        table = pathlib.Path(name.replace("train", "texts").replace("part", "texts")).with_suffix(".csv")
        table.write_text("text,label\n" + "".join(texts[first:last]))
    pathlib.Path("wrong.svm").write_text("1 1:1\n2 1:x\n")
    with Job(3, "commands", tmp_path) as job:
        stdout, stderr = job.end()

    def alone(*arguments):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    trained = json.loads(alone("train", "train.svm", "--solver", "leagues", "-m", "alone", "--json", "-q"))
    evaluated = json.loads(alone("evaluate", "alone", "train.svm", "--json"))
    predicted = alone("predict", "alone", "train.svm", "-k", "2", "--scores")
    alone("train", "texts.csv", "-m", "texts-alone", "-q")
    assert pathlib.Path("alone").read_bytes() == pathlib.Path("whole").read_bytes()
    assert pathlib.Path("alone").read_bytes() == pathlib.Path("parts").read_bytes()
    assert pathlib.Path("texts-alone").read_bytes() == pathlib.Path("texts").read_bytes()
    assert pathlib.Path("texts-alone").read_bytes() == pathlib.Path("text-parts").read_bytes()
    assert predicted == pathlib.Path("whole.txt").read_text() == pathlib.Path("parts.txt").read_text()
    # Only one rank prints.
    *reports, short = map(json.loads, stdout.splitlines())
    assert [report["rows"] for report in reports] == [200] * 6
    assert [report["training_error"] for report in reports[:2]] == [trained["training_error"]] * 2
    assert [report["error"] for report in reports[4:]] == [evaluated["error"]] * 2
    assert short["certificate"]["exit_reason"] == "max_iter"
    errors = [line for line in stderr.splitlines() if line.startswith(("error", "manyclass"))]
    assert [line.split(" ")[1] for line in errors] == ["stopped", "not", "wrong.svm:2:5:", "standard", "rank"]
    # The last command ends the job, because only one rank lacks its file.
    assert errors[-1].startswith("manyclass: rank 1 of 3 on") and "last-1.svm: No such file" in errors[-1]
    assert job.returncode == 2
