"""From measured figures to the document, with figures computed by the model itself."""

import pytest
from benchmarks.cost_model import Machine, Shape, epoch_seconds, league_bytes, packing_work, parcels
from benchmarks.entries.leagues import LEAGUES, OTHER_LEAGUES, SETUPS
from benchmarks.league_report import DOCUMENT, LOCAL, between, write
from benchmarks.results import Row
from benchmarks.results import write as write_rows
from benchmarks.solvers import epochs_of_leagues

from manyclass.solvers.schedule import league_count

MACHINE = Machine(2e-10, 3e-9, 5e-7, 1e-9, 4e-10, 6e-9, 2e-9)
SHAPES = {
    "lshtc-small": Shape(4_463, 1_139, 124.25, 15_646, 35_306, 0.2, 300.0),
    "wordnet-min5": Shape(60_096, 4_796, 9.5, 8_000, 20_000, 0.02, 50.0),
    "wordnet": Shape(75_000, 12_582, 9.0, 9_000, 22_000, 0.01, 80.0),
}


def rows_of(monkeypatch):
    """Write what the benchmark would measure on a machine that follows the model."""
    monkeypatch.setattr("benchmarks.results.processor", lambda: "A Processor, at 2 GHz, 2 cores")
    for problem, shape in SHAPES.items():
        first = epochs_of_leagues(LEAGUES[problem]).name
        names = ("rows", "classes", "non-zeros a row of frequent features", "frequent features")
        values = (shape.rows, shape.classes, shape.nonzeros, shape.heads)
        for metric, value in zip((*names, "features of two rows or more"), (*values, shape.shared), strict=True):
            yield Row("league-scaling", problem, first, metric, value)
        more = [(other, 1, 1) for other in OTHER_LEAGUES if other != LEAGUES[problem]]
        for leagues, ranks, threads in [*((LEAGUES[problem], *setup) for setup in SETUPS), *more]:
            seconds = epoch_seconds(shape, leagues, ranks, MACHINE, LOCAL, threads=threads, cores=2)
            size = league_bytes(shape, leagues)
            packing = packing_work(shape, leagues) @ [MACHINE.scan, MACHINE.entry, MACHINE.feature]
            for metric, value in {
                "seconds an epoch": seconds,
                "seconds waiting an epoch": 0.5,
                "MB exchanged an epoch": parcels(leagues, ranks) * size / 1e6,
                "MB of a league": size / 1e6,
                "dual variables a row": shape.support,
                "seconds to pack and unpack a league": packing,
                "peak GB of a rank": 0.25,
            }.items():
                name = epochs_of_leagues(leagues, ranks, threads).name
                yield Row("league-scaling", problem, name, metric, value)


def test_leagues_are_as_many_as_the_solver_chooses():
    assert {problem: league_count(shape.classes) for problem, shape in SHAPES.items()} == LEAGUES


def test_document_and_plot_follow_from_the_figures(tmp_path, monkeypatch):
    write_rows(tmp_path / "results.csv", rows_of(monkeypatch))
    monkeypatch.setattr("benchmarks.league_report.RANKS", (4, 600))
    document, plot = tmp_path / "leagues.md", tmp_path / "images" / "plot.png"
    document.write_text(DOCUMENT.read_text())
    write(tmp_path / "results.csv", document, plot)
    text = document.read_text()
    assert (
        "0.2 ns per multiply-add, 3 ns per read of the weight of a row's own class, 0.5 µs per visit, 1 ns per"
        in text
    )
    assert "off by 0% to 0%" in text and "it is 20% over the first ten passes" in text
    assert len([line for line in text.splitlines() if line.startswith("| wordnet | 32 |")]) == len(SETUPS)
    # 600 ranks need more leagues than LSHTC-small has classes.
    assert "| lshtc-2011 | 600 | 1,200 |" in text and "| lshtc-small | 600 |" not in text
    assert plot.read_bytes().startswith(b"\x89PNG")
    # Writing again changes nothing, and the text outside the markers stays as it was.
    write(tmp_path / "results.csv", document, plot)
    assert document.read_text() == text
    plain = [between(between(each, "measured", ""), "predicted", "") for each in (text, DOCUMENT.read_text())]
    assert plain[0] == plain[1]


def test_a_document_without_markers_is_refused():
    with pytest.raises(ValueError, match="one <!-- measured: begin -->"):
        between("nothing", "measured", "")
