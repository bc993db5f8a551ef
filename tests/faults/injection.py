"""Run operations in forked processes, undisturbed, with one failing call, or killed, and judge the outcome."""

import ast
import contextlib
import ctypes
import errno
import faulthandler
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field, fields
from pathlib import Path

HERE = Path(__file__).parent
SECONDS = 300  # a run that takes longer hangs
INTERPOSER = "MANYCLASS_INTERPOSER"
# Code whose allocations fail. NumPy is not included: some of its functions crash when memory runs out.
WATCHED = r"manyclass/_native/"


@dataclass(frozen=True)
class Fault:
    """A kind of call that fails; the numbers are those of interposer.cpp."""

    name: str
    kind: int
    way: int
    error: int


CREATE, WRITE, FSYNC, RENAME, UNLINK, ALLOCATION = range(1, 7)
ONCE, HALF_DONE, FROM_THEN_ON = range(3)
TEMPORARY = re.compile(r"\.[^ /]+\.[0-9a-f]{8}")  # of `open_atomic`
FAULTS = [
    Fault("create: no space", CREATE, ONCE, errno.ENOSPC),
    Fault("write: no space from then on", WRITE, FROM_THEN_ON, errno.ENOSPC),
    Fault("write: input/output error", WRITE, ONCE, errno.EIO),
    Fault("write: half of the bytes", WRITE, HALF_DONE, 0),
    Fault("fsync: input/output error", FSYNC, ONCE, errno.EIO),
    Fault("rename: input/output error", RENAME, ONCE, errno.EIO),
    Fault("unlink: input/output error", UNLINK, ONCE, errno.EIO),
    Fault("allocation: none", ALLOCATION, ONCE, errno.ENOMEM),
]


def start_again_with_interposer(folder):
    """Compile the library and restart this program with it."""
    library = Path(folder) / "interposer.so"
    compiled = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", library, HERE / "interposer.cpp", "-ldl"]
    subprocess.run(compiled, check=True)
    environment = os.environ | {INTERPOSER: str(library), "LD_PRELOAD": str(library)}
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


class Interposer:
    """The library in this process."""

    def __init__(self):
        import numpy as np  # only after the restart

        from manyclass._native import core

        self._library = ctypes.CDLL(os.environ[INTERPOSER])
        # nanobind aborts if its table of objects cannot grow, so it has to be large enough before.
        some = [
            core.Layout64(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0), 1, 0.0, 0) for _ in range(2000)
        ]
        some.clear()
        self._library.faults_watch.argtypes = [ctypes.c_size_t] * 2
        for line in Path("/proc/self/maps").read_text().splitlines():
            addresses, permissions, *_, path = line.split(maxsplit=5)
            if "x" in permissions and re.search(WATCHED, path):
                self._library.faults_watch(*(int(address, 16) for address in addresses.split("-")))

    def arm(self, fault, which, folder):
        """Make one call fail, counted from 1, or none with 0."""
        where = os.fsencode(folder)
        self._library.faults_arm(fault.kind, ctypes.c_long(which), fault.way, fault.error, where)

    def disarm(self):
        """Let all calls succeed again, and return how many were counted."""
        return self._library.faults_disarm()


@dataclass
class Ended:
    """How a process ended: exit code (negative for a signal, None for a hang), output and number of calls."""

    code: int | None
    said: str
    calls: int = 0
    seconds: float = 0.0


def forked(action, folder, kill_after=None):
    """Run an action, which returns an exit code and a number of calls, in a separate process and folder."""
    told, tell = os.pipe()
    log = folder.parent / "log"
    begin = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        _be_child(action, folder, log, tell)
    os.close(tell)
    code = _wait(pid, kill_after)
    seconds = time.perf_counter() - begin
    with os.fdopen(told) as pipe:
        counted = pipe.read() if code is not None else ""
    return Ended(code, log.read_text(errors="replace") if log.exists() else "", int(counted or 0), seconds)


def _be_child(action, folder, log, tell):
    code, calls = 99, 0
    try:
        os.chdir(folder)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        faulthandler.enable(sys.stderr)
        code, calls = action()
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os.write(tell, str(calls).encode())
    os._exit(code)


def _wait(pid, kill_after):
    end = time.monotonic() + (SECONDS if kill_after is None else kill_after)
    pause = 0.0005
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(min(pause, max(0.0, end - time.monotonic())))
        pause = min(pause * 1.2, 0.01)
    _kill(pid)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return None if kill_after is None else code


def _kill(pid):
    """Kill a process and its children with SIGKILL."""
    family = [pid]
    for parent in family:
        with contextlib.suppress(OSError):
            family += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    for one in family:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def exit_code_of(run):
    """Return the exit code of an operation; errors of the library count like those of commands."""
    try:
        run()
    except SystemExit as end:
        return end.code or 0
    except OSError as error:
        print(f"error: {error}")
        return 2 if error.filename else 98
    except MemoryError:
        print("error: not enough memory")
        return 1
    return 0


@dataclass
class Report:
    """The outcomes of one operation with one kind of accident."""

    tried: int = 0
    old: int = 0
    new: int = 0
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __add__(self, other):
        return Report(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


class Bench:
    """One operation with its old and its new state.

    Parameters
    ----------
    operation : Operation
    folder : Path
        For copies of its files.
    """

    def __init__(self, operation, folder):
        self.operation, self.folder = operation, folder
        self.template, self.place = folder / "template", folder / "place"
        self.template.mkdir(parents=True)
        here = os.getcwd()
        os.chdir(self.template)
        operation.prepare()
        os.chdir(here)
        self.old, _ = self.look(self.template)
        self.reset()
        modules = set(sys.modules)
        whole = forked(lambda: (exit_code_of(operation.run), self._tell_modules(modules)), self.place)
        assert whole.code == 0, whole.said
        for name in (folder / "modules").read_text().split():
            __import__(name)  # so that failing allocations are never those of an import
        self.reset()
        self.seconds = forked(lambda: (exit_code_of(operation.run), 0), self.place).seconds
        self.new, self.files = self.look(self.place)
        assert self.old != self.new

    def _tell_modules(self, before):
        (self.folder / "modules").write_text("\n".join(sorted(set(sys.modules) - before)))
        return 0

    def reset(self):
        """Restore the old state."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.template, self.place, symlinks=True)

    def look(self, folder):
        """Return what a fresh reader finds, and the files."""
        answer = self.folder / "answer"

        def looking():
            answer.write_text(repr((self.operation.look(), self.operation.files())))
            return 0, 0

        ended = forked(looking, folder)
        if ended.code != 0:
            raise AssertionError(ended.said)
        return ast.literal_eval(answer.read_text())

    # ---- Faults

    def calls(self, interposer, fault):
        """Count the calls that could fail."""
        self.reset()
        return self._run(interposer, fault, 0).calls

    def _run(self, interposer, fault, which):
        def disturbed():
            interposer.arm(fault, which, self.place)
            code = exit_code_of(self.operation.run)
            return code, interposer.disarm()

        return forked(disturbed, self.place)

    def inject(self, interposer, fault, which, report):
        """Make one call fail and judge the result."""
        self.reset()
        ended = self._run(interposer, fault, which)
        report.tried += 1
        where = f"{self.operation.name}, {fault.name}, call {which}"
        for complaint in _complaints(ended, fault):
            report.wrong.append(f"{where}: {complaint}")
        self._judge(where, ended, report, tidy=fault.kind != UNLINK)

    # ---- Kills

    def kill(self, moment, report):
        """Kill the operation at a moment, given as a share of its time, and judge the result."""
        self.reset()
        moment = self.operation.beginning + (1 - self.operation.beginning) * moment
        ended = forked(lambda: (exit_code_of(self.operation.run), 0), self.place, moment * self.seconds)
        report.tried += 1
        where = f"{self.operation.name}, killed after {moment:.3f} of its time"
        self._judge(where, ended, report, tidy=False)

    def _judge(self, where, ended, report, *, tidy):
        """Let a fresh reader look at the files; if the operation may be unfinished, repeat it and look again."""
        answers = self.folder / "answers"
        answers.write_text("")

        def look_and_do_it_again():
            with answers.open("a", buffering=1) as out:
                found = self.operation.look()
                again = ended.code != 0 and (found != self.new or self.operation.may_be_repeated())
                print(repr((found, self.operation.files(), again)), file=out)
                if again:
                    print(exit_code_of(self.operation.run), file=out)
                    print(repr((self.operation.look(), self.operation.files())), file=out)
            return 0, 0

        judged = forked(look_and_do_it_again, self.place)
        if judged.code != 0:
            report.lost.append(f"{where}: exit code {ended.code}, then {judged.code}: {judged.said}")
            return
        (found, files, again), *rest = map(ast.literal_eval, answers.read_text().splitlines())
        if found == self.new:
            report.new += 1
        elif found == self.old and ended.code != 0:
            report.old += 1
        else:
            report.wrong.append(f"{where}: exit code {ended.code}, found {found}")
        if tidy and (strays := [name for name in files if _is_temporary(name)]):
            report.wrong.append(f"{where}: left {strays}")
        if again:
            code, (after, files) = rest
            if code != 0:
                report.lost.append(f"{where}: repeated, exit code {code}: {judged.said}")
            elif after != self.new:
                report.wrong.append(f"{where}: repeated, found {after}")
        files, expected = map(self.operation.lasting, (files, self.files))
        if (again or (tidy and ended.code == 0)) and files != expected:
            differ = sorted(name for name in {*files, *expected} if files.get(name) != expected.get(name))
            report.wrong.append(f"{where}: these files differ at the end: {differ}")


def _is_temporary(name):
    return TEMPORARY.fullmatch(name.rpartition("/")[2]) is not None


def _complaints(ended, fault):
    """Yield what is wrong with the way a process ended in which a call failed."""
    if ended.code is None:
        yield f"the process hangs: {ended.said}"
    elif ended.code not in ((0, 1, 2) if fault.kind == ALLOCATION else (0, 2)):
        yield f"exit code {ended.code}: {ended.said}"
    elif "Traceback" in ended.said or "Exception ignored" in ended.said:
        yield f"a traceback: {ended.said}"
    elif ended.code == 1 and "memory" not in ended.said:
        yield f"an error that does not name the cause: {ended.said}"
    elif ended.code == 2 and fault.kind != ALLOCATION and not _is_clear(ended.said, fault):
        yield f"an error that does not name the file and the cause: {ended.said}"


def _is_clear(said, fault):
    last = said.splitlines()[-1]
    named = re.search(r"(?<![\w.])((s|c|m)\b|\w+\.manyclass\b)", last)
    return last.startswith("error: ") and os.strerror(fault.error) in last and named and not TEMPORARY.search(last)
