"""Commit the faults named as arguments (address, undefined, thread) in the core; fail if one goes unnoticed."""

import ctypes
import subprocess
import sys

from manyclass._native import core

# What a sanitizer says of the fault of its name.
REPORTS = {"address": "heap-buffer-overflow", "undefined": "signed integer overflow", "thread": "data race"}

if sys.argv[1] == "--commit":
    getattr(ctypes.CDLL(core.__file__), f"fault_{sys.argv[2]}")(5)
    sys.exit(0)

for name in sys.argv[1:]:
    command = [sys.executable, __file__, "--commit", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0 or REPORTS[name] not in done.stderr:
        sys.exit(f"the {name} sanitizer is not at work: a deliberate fault went unnoticed\n{done.stderr}")
    print(f"the {name} sanitizer is at work: it found {REPORTS[name]}")
