"""Reading LIBSVM text on one core, compared with scikit-learn's reader."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.environments import UnavailableError
from benchmarks.measure import alternate, seconds, times_faster
from benchmarks.problems import decompress
from benchmarks.results import Bar, Row
from benchmarks.session import Case, Session
from benchmarks.solvers import OUR_READER, SKLEARN_READER

TITLES = {"reading": "Reading LIBSVM text, one core"}


def cases() -> Iterator[Case]:
    """A single case, on the text of 20 newsgroups."""
    yield Case("reading", "news20", OUR_READER, reading, SKLEARN_READER, Bar(3), quick=True)


def reading(session: Session, case: Case) -> list[Row]:
    """Measure the speedup on plain text that is in the page cache for both."""
    text = decompress(case.problem, "train", session.runner.folder)
    # Reading takes only about a second, and a single run would depend too much on the page cache.
    times = max(3, session.repetitions)
    our_runs, peer_runs = alternate(
        lambda: session.runner.read(case.ours, text),
        lambda: session.runner.read(case.peer, text),
        (times, times),
    )
    if our_runs[0].reply.note != peer_runs[0].reply.note:
        raise UnavailableError(f"the readers disagree: {our_runs[0].reply.note}, {peer_runs[0].reply.note}")
    megabytes = text.stat().st_size / 1e6
    return [
        case.compared("times faster", times_faster(our_runs, peer_runs), our_runs, peer_runs),
        case.row("MB/s of ours", megabytes / median(seconds(our_runs))),
        case.row("MB/s of the peer", megabytes / median(seconds(peer_runs))),
    ]
