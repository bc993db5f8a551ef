"""liblinear-multicore: LIBLINEAR's ``-s 1`` and ``-s 3`` with the work for each class divided among threads.

The objectives and the layout of the model are LIBLINEAR's. The package has the import name of
liblinear-official, so it needs its own environment. ``-s 4`` has no parallel version there.
"""

from __future__ import annotations

from benchmarks.peers.liblinear import fit, outcome, prepare
from benchmarks.protocol import Request, Task, serve


def prepare_threads(request: Request):
    return prepare(request, extra=f"-m {request.options['threads']}")


if __name__ == "__main__":
    serve({"train": Task(prepare_threads, fit, outcome)}, packages=("liblinear-multicore",))
