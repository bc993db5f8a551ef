"""From measured figures to docs/extreme-tables.md and its plot, with invented figures."""

import pytest
from benchmarks.entries import ENTRIES
from benchmarks.extreme_report import BENCHMARKS, DOCUMENT, PEERS, PLOT, SERIES, published, write
from benchmarks.league_report import between
from benchmarks.results import Row
from benchmarks.results import write as write_rows

OF_A_FIT = {"P@1": 0.6421, "P@3": 0.3966, "P@5": 0.2861, "seconds": 1.5, "MB of the model": 3.25}
OF_A_FIT |= {"peak MB above imports": 40.0, "density": 0.125}
OF_A_LABEL = {"rows": 5_000, "milliseconds a label": 2.5, "support a label": 30.0, "weights a label": 400.0}


def rows():
    """As if all fits were alike, the other library four times as slow, and labels cheaper the more there are."""
    for name in BENCHMARKS:
        for case in ENTRIES[name].cases:
            if case.peer:
                yield case.row("times faster", 4.0)
                for metric, value in OF_A_FIT.items():
                    yield case.row(f"{metric} of ours", value)
                    yield case.row(f"{metric} of the peer", 4 * value if metric == "seconds" else value)
            else:
                own = OF_A_FIT | OF_A_LABEL if name == "label-scaling" else OF_A_FIT
                yield from (case.row(metric, value) for metric, value in own.items())
    # Later rows of a figure replace none: each problem has its own number of labels.
    for problems in SERIES.values():
        for place, problem in enumerate(problems):
            yield Row("label-scaling", problem, "PPDSparse, 2 threads", "labels", 1000.0 * 3**place)


@pytest.fixture
def written(tmp_path):
    document, plot = tmp_path / "extreme-tables.md", tmp_path / "images" / PLOT.name
    document.write_text(DOCUMENT.read_text())
    write_rows(tmp_path / "results.csv", rows())
    write(tmp_path / "results.csv", document, plot)
    return document, plot


def test_tables_and_plot_follow_from_the_figures(written):
    document, plot = written
    text = document.read_text()
    assert "| 4.00 | 1.5 / 6 | 64.21, 39.66, 28.61 / 64.21, 39.66, 28.61 | 3.25 / 3.25 | 40 / 40 |" in text
    ours = (
        "| bibtex | PPDSparse, 2 threads | 64.21, 39.66, 28.61 | 63.69, 39.43, 28.67 | 1.5 | 0.232 | 3.25 | 12.50% |"
    )
    assert ours in text
    assert "| delicious | PPDSparse, C=0.5, 2 threads | 64.21, 39.66, 28.61 | – | 1.5 | – | 3.25 | 12.50% |" in text
    assert "| 1,000 | 5,000 | 1.5 | 2.5 | 30 | 400 | 3 | 40 | 64.21% | 6 | 6 |" in text
    assert "| 81,000 | 5,000 | 1.5 | 2.5 | 30 | 400 | 3 | 40 | 64.21% | – | – |" in text
    assert plot.read_bytes().startswith(b"\x89PNG") and f"(images/{PLOT.name})" in text


def test_only_what_is_between_markers_changes(written):
    def plain(text):
        for benchmark in BENCHMARKS:
            text = between(text, benchmark, "")
        return text

    document, _ = written
    assert plain(document.read_text()) == plain(DOCUMENT.read_text())


def test_without_figures_nothing_is_written(tmp_path):
    document = tmp_path / "extreme-tables.md"
    document.write_text(DOCUMENT.read_text())
    write_rows(tmp_path / "results.csv", [Row("extreme-tables", "bibtex", "x", "", None, note="no data")])
    write(tmp_path / "results.csv", document, tmp_path / "plot.png")
    assert document.read_text() == DOCUMENT.read_text() and not (tmp_path / "plot.png").exists()


def test_papers_and_peers_are_those_of_the_entries():
    tables = {(case.problem, case.ours.options["estimator"]) for case in ENTRIES["extreme-tables"].cases}
    assert set(published()) <= tables
    assert {case.peer.name for case in ENTRIES["label-scaling"].cases if case.peer} == set(PEERS.values())
