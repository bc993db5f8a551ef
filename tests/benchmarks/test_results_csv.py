"""Bars, printed names, and a CSV file that keeps what was not measured again."""

import csv
import io

import pytest
from benchmarks.results import Bar, Row, printed, table, write
from rich.console import Console


def row(benchmark="cs", value=9.0, **more):
    return Row(benchmark, "bench-1k", "manyclass cs", "times faster", value, **more)


@pytest.mark.parametrize(
    ("bar", "value", "met"),
    [
        (Bar(8), 8.0, "met"),
        (Bar(8), 7.99, "missed"),
        (Bar(1.3, at_least=False), 1.3, "met"),
        (Bar(1.3, at_least=False), 1.31, "missed"),
        (Bar(8), None, "not measured"),
        (None, 3.0, ""),
    ],
)
def test_bars(bar, value, met):
    assert row(value=value, bar=bar).met == met


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("microseconds a row of ours", "microseconds per row, manyclass"),
        ("microseconds of the peer, median", "microseconds, median, the other library"),
        ("seconds waiting an epoch", "seconds waiting per pass"),
        ("peak MB above imports", "peak MB beyond imports"),
        ("int8, weights from 0.01 on", "int8, weights of at least 0.01"),
        ("MB of a league", "MB of a league"),
    ],
)
def test_names_are_printed_in_plain_english(name, words):
    assert printed(name) == words


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_reads_back(tmp_path):
    path = tmp_path / "results" / "results.csv"
    repetitions = {"ours": [1.0, 1.25], "peer": [10.0]}
    write(path, [row(bar=Bar(8), peer="LIBLINEAR -s 4", repetitions=repetitions, versions={"a": "1", "b": "2"})])
    (record,) = read(path)
    assert record["processor"]
    expected = {
        "benchmark": "cs",
        "problem": "bench-1k",
        "ours": "manyclass cs",
        "peer": "LIBLINEAR -s 4",
        "metric": "times faster",
        "value": "9",
        "bar": ">= 8",
        "met": "met",
        "repetitions": "ours: 1 1.25; peer: 10",
        "versions": "a 1; b 2",
        "note": "",
    }
    assert expected.items() <= record.items()


def test_a_repeated_benchmark_replaces_only_itself(tmp_path):
    path = tmp_path / "results.csv"
    write(path, [row("a", 1.0), row("b", 2.0), row("b", 3.0)])
    write(path, [row("b", 4.0)])
    assert [(record["benchmark"], record["value"]) for record in read(path)] == [("a", "1"), ("b", "4")]


def test_series_have_a_file_of_their_own(tmp_path):
    path = tmp_path / "results.csv"
    write(path, [row("a", series={"pass": [1.0, 2.0], "seconds": [0.5, 1.5]}), row("a"), row("b")])
    write(path, [row("b", 4.0)])
    assert [(record["ours"], record["pass"], record["seconds"]) for record in read(tmp_path / "a.csv")] == [
        ("manyclass cs", "1", "0.5"),
        ("manyclass cs", "2", "1.5"),
    ]
    assert not (tmp_path / "b.csv").exists()


def test_the_table_shows_figure_bar_and_verdict():
    console = Console(width=250, record=True, file=io.StringIO())
    console.print(table("Title", [row(bar=Bar(10)), row(value=None, bar=Bar(3), note="set MANYCLASS_DATA")]))
    text = console.export_text()
    assert all(part in text for part in ("Title", ">= 10", "missed", "not measured", "set MANYCLASS_DATA"))
