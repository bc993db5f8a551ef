"""`make torture`: make every call that can fail fail once, and kill processes at random moments.

After each accident, a fresh reader must find either the old state or the new one, complete, and repeating the
operation must produce the same files as without the accident.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "common")]

import injection  # noqa: E402


def main():
    """Parse the arguments, restart with the interposer, and run the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", nargs="*", help="only these operations")
    parser.add_argument("--faults", nargs="*", default=[""], help="only faults whose names start with these words")
    parser.add_argument(
        "--most", type=int, default=sys.maxsize, help="maximum number of calls to try per kind, spread evenly"
    )
    parser.add_argument("--kills", type=int, default=300, help="number of kills, over all operations")
    parser.add_argument("--seed", type=int, default=None, help="seed of the moments of kills")
    arguments = parser.parse_args()
    if injection.INTERPOSER not in os.environ:
        # In memory if possible: waiting for a disk thousands of times would take too long.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        injection.start_again_with_interposer(tempfile.mkdtemp(prefix="torture-", dir=memory))
    folder = Path(os.environ[injection.INTERPOSER]).parent
    try:
        sys.exit(torture(arguments, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def torture(arguments, folder):
    """Disturb the operations; return 1 if anything was lost or wrong."""
    from operations import OPERATIONS

    chosen = arguments.operations or list(OPERATIONS)
    benches = {name: injection.Bench(OPERATIONS[name], folder / f"{n}") for n, name in enumerate(chosen)}
    interposer = injection.Interposer()
    totals = {"faults": injection.Report(), "kills": injection.Report()}
    faults = [fault for fault in injection.FAULTS if fault.name.startswith(tuple(arguments.faults))]
    for name, bench in benches.items():
        for fault in faults if bench.operation.in_this_process else []:
            begin, report = time.monotonic(), injection.Report()
            count = bench.calls(interposer, fault)
            for which in chosen_calls(count, arguments.most):
                bench.inject(interposer, fault, which, report)
            tell(f"{name}: {fault.name}", f"{report.tried} of {count} calls", report, begin)
            totals["faults"] += report
    random_numbers = random.Random(arguments.seed)
    for name, kills in shares(arguments.kills, benches).items():
        begin, report = time.monotonic(), injection.Report()
        for _ in range(kills):
            benches[name].kill(random_numbers.random(), report)
        tell(f"{name}: kill -9", f"{report.tried} moments", report, begin)
        totals["kills"] += report
    for what, total in totals.items():
        print(f"{total.tried} {what}: lost {len(total.lost)}, wrong {len(total.wrong)}")
    return int(any(total.lost or total.wrong for total in totals.values()))


def shares(kills, benches):
    """Return how often to kill each operation: less often if it takes long to start."""
    weights = {name: 1 if bench.operation.in_this_process else 0.5 for name, bench in benches.items()}
    begun, found = 0.0, {}
    for name, weight in weights.items():
        end = begun + weight * kills / sum(weights.values())
        found[name] = round(end) - round(begun)
        begun = end
    return found


def chosen_calls(count, most):
    """Return all calls or at most this many, spread evenly and including the last."""
    most = min(count, most)
    return [step * count // most for step in range(1, most + 1)]


def tell(what, tried, report, begin):
    """Print a summary line and the problems found."""
    ended = f"{report.old} ended in the old state, {report.new} in the new one"
    bad = f"lost {len(report.lost)}, wrong {len(report.wrong)}"
    print(f"{what}: {tried}: {ended}; {bad}; {time.monotonic() - begin:.0f} s", flush=True)
    for found in [*report.lost, *report.wrong]:
        print(f"    {found}", flush=True)


if __name__ == "__main__":
    main()
