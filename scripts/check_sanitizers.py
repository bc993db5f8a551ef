"""Trigger the faults named as arguments (keys of `REPORTS`) in the core; fail if one goes undetected."""

import ctypes
import subprocess
import sys

from manyclass._native import core

# What the sanitizer reports for each fault.
REPORTS = {
    "address": "heap-buffer-overflow",
    "undefined": "signed integer overflow",
    "thread": "data race",
    "openmp": "data race",  # between threads of a parallel region
}

if sys.argv[1] == "--commit":
    getattr(ctypes.CDLL(core.__file__), f"fault_{sys.argv[2]}")(5)
    sys.exit(0)

for name in sys.argv[1:]:
    command = [sys.executable, __file__, "--commit", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0 or REPORTS[name] not in done.stderr:
        sys.exit(f"the sanitizer does not work: it did not detect the deliberate fault {name!r}\n{done.stderr}")
    print(f"the sanitizer works: it found a {REPORTS[name]} in the deliberate fault {name!r}")
