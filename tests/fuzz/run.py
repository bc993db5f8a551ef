"""Fuzz the readers: `python tests/fuzz/run.py [--seconds 600] [READER ...]`; see `make fuzz`.

Each reader is fuzzed in separate processes, starting from the corpus in this folder. libFuzzer, which is part of
atheris, keeps inputs that reach new code. If atheris is not available for this Python, inputs are changed at random.
An input that fails is saved in a folder of findings, and a new process continues until the time is up.
"""

import argparse
import importlib.util
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
NAMES = ("svmlight", "xmc", "csv", "jsonl", "parquet", "model", "shards", "store", "checkpoint")
LONGEST = 10  # seconds of processor time for one input
HANGING = 120  # seconds on the clock after which an input is taken to hang, also on a busy machine
MEMORY = 1000  # MB for one input
MOST_FINDINGS = 20  # per reader
LARGEST_INPUT = 1 << 16


# ---- One process


def fuzz(name: str, corpus: Path, findings: Path, seconds: float, seed: int) -> None:
    """Fuzz one reader until the time is up or an input fails."""
    if importlib.util.find_spec("atheris") is None:
        _fuzz_at_random(name, corpus, findings, seconds, seed)
    else:
        _fuzz_by_coverage(name, corpus, findings, seconds, seed)


def _fuzz_by_coverage(name: str, corpus: Path, findings: Path, seconds: float, seed: int) -> None:
    import atheris
    from reader import check
    from readers import READERS

    _instrument(atheris.instrument_func)
    reader = READERS[name]
    _add_seeds(reader.seeds(), corpus)
    limits = _Limits()

    def one_input(data: bytes) -> None:
        with limits:
            check(reader, data)

    def changed(data: bytes, max_size: int, seed: int) -> bytes:
        rng = Random(seed)
        if rng.random() < 0.2:
            return atheris.Mutate(data, max_size)
        return reader.mutate(data, rng)[:max_size]

    options = [
        f"-artifact_prefix={findings}/",
        f"-timeout={HANGING}",
        f"-rss_limit_mb={2 * MEMORY + limits.before}",
        f"-max_total_time={max(1, round(seconds))}",
        f"-max_len={LARGEST_INPUT}",
        f"-seed={seed}",
        "-print_final_stats=1",
        "-reload=0",
        "-detect_leaks=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input, custom_mutator=changed)
    atheris.Fuzz()


def _instrument(instrument: Callable[[Any], Any]) -> None:
    """Count the branches of every function of the package.

    atheris can do this to modules as they are imported, but not to those of an editable install.
    """
    done: set[Any] = set()
    found = [vars(module) for name, module in sys.modules.items() if name.split(".")[0] == "manyclass"]
    for names in found:
        for thing in list(names.values()):
            thing = getattr(thing, "__func__", getattr(thing, "fget", getattr(thing, "__wrapped__", thing)))
            of_ours = getattr(thing, "__module__", "") or ""
            if of_ours.split(".")[0] != "manyclass" or id(thing) in done:
                continue
            done.add(id(thing))
            if isinstance(thing, type):
                found.append(vars(thing))
            elif isinstance(thing, FunctionType):
                instrument(thing)


def _fuzz_at_random(name: str, corpus: Path, findings: Path, seconds: float, seed: int) -> None:
    import faulthandler

    from reader import check
    from readers import READERS

    reader, rng, limits = READERS[name], Random(seed), _Limits()
    _add_seeds(reader.seeds(), corpus)
    inputs = [path.read_bytes() for path in sorted(corpus.iterdir())]
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = reader.mutate(rng.choice(inputs), rng)[:LARGEST_INPUT]
        # Written first, so that inputs that kill the process are kept too.
        (findings / "last").write_bytes(data)
        faulthandler.dump_traceback_later(HANGING, exit=True)
        try:
            with limits:
                check(reader, data)
        finally:
            faulthandler.cancel_dump_traceback_later()
            count += 1
            print(f"stat::number_of_executed_units: {count}", flush=True) if count % 100 == 0 else None
    (findings / "last").unlink()
    print(f"stat::number_of_executed_units: {count}")


class _Limits:
    """Checks the processor time of an input, and how far the peak memory of this process has grown."""

    def __init__(self) -> None:
        self.before = self._peak()
        self.begin = 0.0

    @staticmethod
    def _peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    def __enter__(self) -> None:
        self.begin = time.process_time()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return  # that error is the finding
        if (taken := time.process_time() - self.begin) > LONGEST:
            raise AssertionError(f"took {taken:.1f} seconds")
        if self._peak() > self.before + MEMORY:
            raise AssertionError(f"took more than {MEMORY} MB")


def _add_seeds(seeds: list[bytes], corpus: Path) -> None:
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)


# ---- All of them


def run(name: str, seconds: float, work: Path) -> tuple[int, int, list[Path]]:
    """Fuzz a reader; return the number of inputs tried, the size of the corpus, and the inputs that failed."""
    corpus, findings, log = work / name / "corpus", work / name / "findings", work / name / "log.txt"
    shutil.rmtree(findings, ignore_errors=True)
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((CORPUS / name).glob("*")):
        shutil.copy(path, corpus)
    executions, end = 0, time.monotonic() + seconds
    seed = 1
    log.write_bytes(b"")
    failed: list[Path] = []
    while time.monotonic() < end and len(failed) < MOST_FINDINGS:
        left = end - time.monotonic()
        arguments = [name, str(corpus), str(findings), str(left), str(seed)]
        begin = log.stat().st_size
        with log.open("ab") as out:
            command = [sys.executable, __file__, "--one", *arguments]
            code = subprocess.run(command, stdout=out, stderr=out, env=_environment(), check=False).returncode
        told = log.read_bytes()[begin:].decode(errors="replace")
        counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", told)
        executions += int(counts[-1]) if counts else 0
        if code != 0:
            failed.append(_keep(findings, seed, told))
        seed += 1
    return executions, len(list(corpus.iterdir())), failed


def _keep(findings: Path, seed: int, told: str) -> Path:
    """Rename the input that made a process fail, and save the output of the process next to it."""
    new = [path for path in findings.iterdir() if not path.name.startswith("finding-")]
    kept = findings / f"finding-{seed}"
    for path in new:
        path.rename(kept)
    kept.with_suffix(".txt").write_text(told[-20_000:])
    return kept


def _environment() -> dict[str, str]:
    """Return the environment of a fuzzing process; a sanitized core gets libFuzzer's runtime instead of gcc's."""
    environment = dict(os.environ)
    atheris = importlib.util.find_spec("atheris")
    if atheris is not None and atheris.origin is not None and "libasan" in environment.get("LD_PRELOAD", ""):
        *_, libstdcpp = environment["LD_PRELOAD"].split()
        own = Path(atheris.origin).parent
        (mutator,) = own.glob("custom_mutator.*.so")
        environment["LD_PRELOAD"] = f"{own.parent / 'asan_with_fuzzer.so'} {libstdcpp} {mutator}"
        environment["ASAN_OPTIONS"] += f":quarantine_size_mb=16:max_allocation_size_mb={MEMORY}"
    return environment


def main() -> int:
    """Fuzz the requested readers and print the results."""
    parser = argparse.ArgumentParser(description="Fuzz the readers.")
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"any of {', '.join(NAMES)}; all by default")
    parser.add_argument("--seconds", type=float, default=600, help="seconds per reader")
    parser.add_argument("--work", type=Path, default=Path("build/fuzz"), help="folder for corpora and findings")
    given = parser.parse_args()
    if unknown := set(given.readers) - set(NAMES):
        parser.error(f"unknown reader {', '.join(sorted(unknown))}; choose from {', '.join(NAMES)}")
    if importlib.util.find_spec("atheris") is None:
        version = ".".join(map(str, sys.version_info[:2]))
        print(f"atheris is not installed for Python {version}: inputs are changed at random, not guided by coverage")
    print(f"{'reader':<12}{'executions':>12}{'corpus':>9}{'failures':>10}", flush=True)
    failures = 0
    for name in given.readers or NAMES:
        executions, corpus, failed = run(name, given.seconds, given.work.resolve())
        failures += len(failed)
        print(f"{name:<12}{executions:>12,}{corpus:>9,}{len(failed):>10,}", flush=True)
        for path in failed:
            print(f"  {path}, output in {path.name}.txt", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        name, corpus, findings, seconds, seed = sys.argv[2:]
        fuzz(name, Path(corpus), Path(findings), float(seconds), int(seed))
    else:
        sys.exit(main())
