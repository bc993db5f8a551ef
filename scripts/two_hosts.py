"""Train on two hosts that are network namespaces of this machine, joined by a cable; then cut the cable.

    python scripts/two_hosts.py

Needs root and iproute2 (`ip`); says so and leaves with code 77 where it cannot run. Nothing leaves the two
namespaces, and they are removed at the end.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import scipy.sparse as sp

from manyclass.data import save_svmlight

SKIPPED = 77
SILENCE = 4  # seconds without a message from a rank until the job ends
AT_MOST = 60  # seconds for each step
NETWORK = "10.213.7"
HOSTS = [f"manyclass-{os.getpid()}-{letter}" for letter in "ab"]
BIN = Path(sys.executable).parent
TRAIN = [str(BIN / "manyclass"), "train", "rows.svm", "--solver", "leagues", "--quiet"]


def ip(*arguments: str) -> str:
    """Run an iproute2 command."""
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def why_not() -> str | None:
    """Return what is missing on this machine, if anything."""
    if os.geteuid() != 0:
        return "only root may create network namespaces"
    missing = [tool for tool in ("ip", "unshare") if shutil.which(tool) is None]
    return f"there is no {missing[0]}" if missing else None


@contextmanager
def cable() -> Iterator[None]:
    """Create two hosts, each with an interface named `cable`."""
    try:
        for host in HOSTS:
            ip("netns", "add", host)
        ip("link", "add", "cable", "netns", HOSTS[0], "type", "veth", "peer", "name", "cable", "netns", HOSTS[1])
        for number, host in enumerate(HOSTS, 1):
            ip("-n", host, "address", "add", f"{NETWORK}.{number}/24", "dev", "cable")
            for interface in ("cable", "lo"):
                ip("-n", host, "link", "set", interface, "up")
        yield
    finally:
        for host in HOSTS:
            with suppress(subprocess.CalledProcessError):
                for pid in processes_on(host):
                    os.kill(pid, signal.SIGKILL)
                ip("netns", "delete", host)


def processes_on(host: str) -> list[int]:
    """Return the ids of the processes on a host."""
    return [int(pid) for pid in ip("netns", "pids", host).split()]


def on(host: str, command: str) -> list[str]:
    """Return the command that runs a shell command on a host, which has its own host name."""
    return ["ip", "netns", "exec", host, "unshare", "--uts", "sh", "-c", f"hostname {host}; {command}"]


def train_on_both(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start mpirun on the first host, with a rank there and one on the second."""
    # Replaces ssh: called with a host and the command to run there.
    agent = folder / "agent"
    agent.write_text(f'#!/bin/sh\nshift\nexec {" ".join(on(HOSTS[1], "X")[:-1])} "hostname {HOSTS[1]}; $*"\n')
    agent.chmod(0o755)
    subnet = f"{NETWORK}.0/24"
    mpirun = [str(BIN / "mpirun"), "-n", "2", "--map-by", "node", "--host", f"{NETWORK}.1,{NETWORK}.2"]
    mpirun += ["--prtemca", "plm_ssh_agent", str(agent), "--prtemca", "prte_if_include", subnet]
    mpirun += ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", subnet]
    mpirun += ["-x", f"MANYCLASS_SILENCE={SILENCE}"]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.Popen(
        on(HOSTS[0], f"exec {' '.join([*mpirun, *TRAIN, *options])}"),
        cwd=folder,
        env=os.environ | allowed,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def same_bytes(folder: Path) -> None:
    """Train on both hosts and on this machine, and compare the models."""
    subprocess.run([*TRAIN, "-m", "alone"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with train_on_both(folder, "-m", "both") as job:
        _, stderr = job.communicate(timeout=AT_MOST)
    assert job.returncode == 0, stderr
    assert (folder / "alone").read_bytes() == (folder / "both").read_bytes()
    print("two hosts give the model of one, to the last bit")


def cut(folder: Path) -> None:
    """Cut the cable during training."""
    endless = ["--stop", "kkt", "--tol", "1e-300", "--max-iter", "1000000000", "--dtype", "float64"]
    with train_on_both(folder, "-m", "never", "--checkpoint", "c", "--every", "0.2", *endless) as job:
        end = time.monotonic() + AT_MOST
        while job.poll() is None and not list(folder.glob("c/*.json")) and time.monotonic() < end:
            time.sleep(0.05)
        ip("-n", HOSTS[1], "link", "set", "cable", "down")
        begin = time.monotonic()
        _, stderr = job.communicate(timeout=AT_MOST)
        seconds = time.monotonic() - begin
    assert job.returncode != 0
    assert f"on {HOSTS[1]} has not been heard from for {SILENCE} seconds" in stderr, stderr
    print(f"the job has ended {seconds:.1f} seconds after the cable was cut, with code {job.returncode} and this:")
    print(stderr.strip())
    while (left := [pid for host in HOSTS for pid in processes_on(host)]) and time.monotonic() < begin + AT_MOST:
        time.sleep(0.1)
    assert not left, f"processes are left: {left}"


def main() -> None:
    """Run both checks."""
    if reason := why_not():
        print(reason)
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Enough classes for matches on both hosts, with leagues that travel between them.
        X = sp.random(512, 300, 0.05, "csr", dtype="float32", random_state=0)
        save_svmlight(X, [row % 256 for row in range(512)], folder / "rows.svm")
        try:
            with cable():
                same_bytes(folder)
                cut(folder)
        except subprocess.CalledProcessError as error:
            if error.cmd[0] != "ip":
                raise
            print(f"{' '.join(error.cmd)}: {error.stderr.strip()}")
            sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
