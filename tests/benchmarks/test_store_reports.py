"""From measured figures to the document and the plots, with invented figures."""

import re

import pytest
from benchmarks.block_methods import IN_MEMORY, NUMBERS, SPLITS
from benchmarks.block_report import BLOCKS_PLOT, DOCUMENT, METHODS_PLOT
from benchmarks.block_report import write as write_blocks
from benchmarks.entries import ENTRIES
from benchmarks.entries.block_minimisation import PROBLEMS, _rows, curve, in_memory
from benchmarks.entries.stores import OVERHEAD
from benchmarks.league_report import between
from benchmarks.results import Bar, Row
from benchmarks.results import write as write_rows
from benchmarks.store_report import write as write_stores

MARKERS = ("methods", "compression", "store-conversion", "disk-vs-memory")


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "store.md"
    path.write_text(DOCUMENT.read_text())
    return path


def rows_of_block_minimisation():
    """As if every pass divided the difference by ten, except for StreamSVM, which has one point."""
    for place, case in enumerate(ENTRIES["block-minimisation"].cases):
        if case.measure in (curve, in_memory):
            passes = 1 if case.ours.name == "StreamSVM" else 4
            found = {
                "pass": [float(k + 1) for k in range(passes)],
                "seconds": [0.1 * (place + 1) * (k + 1) for k in range(passes)],
                "primal": [100 * (1 + 0.9 * 10.0**-k) for k in range(passes)],
                "accuracy": [0.9 - 0.3 * 10.0**-k for k in range(passes)],
            }
            yield from _rows(case, found, 100.0 if case.ours.loss == "hinge" else float("nan"), note="")
        else:
            for metric in ("bytes a non-zero", "seconds of ten passes", "seconds to read and decode"):
                yield case.row(metric, 5.25)


def test_tables_and_plots_follow_from_the_curves(document, tmp_path):
    write_rows(tmp_path / "results.csv", rows_of_block_minimisation())
    write_blocks(tmp_path / "results.csv", document, tmp_path / "images")
    text = document.read_text()
    for problem in PROBLEMS:
        for name in (IN_MEMORY.name, *(split.name for split in SPLITS), f"BLOCK-L-D, {NUMBERS[-1]} blocks"):
            (line,) = (line for line in text.splitlines() if line.startswith(f"| {problem} | {name} |"))
            assert re.search(r"\| 3 \| [\d.]+ \| 4 \| [\d.]+ \| 9\.0e-04 \| 0\.8997 \|$", line)
        assert f"| {problem} | StreamSVM | – | – | – | – | – | 0.6000 |" in text
        assert f"| {problem} | zlib | 5.25 | 5.25 | 5.250 |" in text
    for plot in (METHODS_PLOT, BLOCKS_PLOT):
        assert (tmp_path / "images" / plot).read_bytes().startswith(b"\x89PNG")
        assert f"(images/{plot})" in text
    write_blocks(tmp_path / "results.csv", document, tmp_path / "images")
    assert document.read_text() == text
    assert without_tables(text) == without_tables(DOCUMENT.read_text())


def without_tables(text):
    for marker in MARKERS:
        text = between(text, marker, "")
    return text


def test_without_curves_nothing_is_written(document, tmp_path):
    write_rows(tmp_path / "results.csv", [Row("block-minimisation", "news20", "x", "", None, note="no data")])
    write_blocks(tmp_path / "results.csv", document, tmp_path / "images")
    assert document.read_text() == DOCUMENT.read_text()


def test_figures_of_stores_are_shown_with_their_bars(document, tmp_path):
    rows = [
        Row("store-conversion", "lshtc-2012", "convert", "MB of text a second", 101.25, bar=Bar(60)),
        Row("store-conversion", "text-2m", "convert", "MB of text a second", 3.0),
        Row("disk-vs-memory", "text-700m", "cs", "peak", -7.0, bar=OVERHEAD, note="420 MB of rows"),
    ]
    write_rows(tmp_path / "results.csv", rows)
    write_stores(tmp_path / "results.csv", document)
    text = document.read_text()
    assert "| convert | MB of text per second | 101.2 | >= 60 |" in text and "| 3 |" not in text
    assert "| cs | peak | -7 | <= 64 |" in text and "420 MB of rows." in text
    assert without_tables(text) == without_tables(DOCUMENT.read_text())
