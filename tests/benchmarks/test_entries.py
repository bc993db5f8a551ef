"""Every entry from its cases to its rows, with a runner that makes figures up."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.cost_model import parcels
from benchmarks.entries import ENTRIES, alone
from benchmarks.environments import ENVIRONMENTS, UnavailableError
from benchmarks.measure import Run
from benchmarks.problems import NAMES, encode
from benchmarks.protocol import Reply
from benchmarks.session import Session

from benchmarks import __main__ as command

MEMORY = {"data": 10, "weights": 20, "dual_variables": 30, "phases": 1000}


class MadeUp:
    """Peers take 100 s to primal value 100; manyclass 4 s on one thread, 2 s on two, to 100 (1 + tol)."""

    def __init__(self, folder, memory):
        self.folder = folder
        self.memory = memory
        self.asked = []

    def train(self, solver, problem, *, evaluate=False, one_core=False, **options):
        options = solver.options | options
        self.asked.append((solver.name, options))
        if solver.module not in ("benchmarks.ours", "benchmarks.leagues"):
            return self._run(100.0, 100.0, evaluate)
        return self._run(4.0 / options.get("n_jobs", 2), 100.0 * (1 + options["tol"]), evaluate)

    def epochs(self, solver, problem):
        assert solver.module == "benchmarks.leagues" and solver.ranks
        leagues, ranks = solver.options["leagues"], solver.ranks
        run = self._run(1.0, 0.0, evaluate=False)
        run.reply.figures |= {
            name: 1.0 for name in ("seconds", "waiting", "league_bytes", "support", "packing", "peak_bytes")
        }
        run.reply.figures["bytes"] = 1.1 * parcels(leagues, ranks)
        return run

    def search(self, solver, problem, **options):
        return self._run(2.0 if solver.module == "benchmarks.ours" else 30.0, 0.0, evaluate=False)

    def read(self, solver, path):
        return self._run(1.0 if "manyclass" in solver.name else 3.5, 0.0, evaluate=False)

    def _run(self, seconds, primal, evaluate):
        certificate = {"gap": 0.01, "primal": primal}
        reply = Reply(seconds, 172, 100, {"x": "1"}, 7, certificate, self.memory, note="same")
        return Run(reply, primal, 0.25) if evaluate else Run(reply)


@pytest.fixture
def session(tmp_path, monkeypatch):
    def load(name):
        X = sp.csr_matrix(np.eye(3))
        return encode(name, X, np.arange(3), X, np.arange(3))

    def decompress(name, part, folder):
        path = folder / "text"
        path.write_text("1 1:1\n")
        return path

    monkeypatch.setattr("benchmarks.entries.reading.decompress", decompress)
    return Session(MadeUp(tmp_path, MEMORY), repetitions=3, load=load)


@pytest.mark.parametrize("entry", [entry for name, entry in ENTRIES.items() if name != "threads-busy"])
def test_every_case_gives_a_figure_for_its_bar(entry, session):
    assert entry.cases
    for case in entry.cases:
        rows = case.run(session)
        assert all(row.value is not None and row.metric for row in rows)
        assert [row.bar for row in rows if row.bar] == ([case.bar] if case.bar else [])
        assert case.problem in NAMES
        assert case.peer is None or case.peer.environment in {None, *ENVIRONMENTS}


def test_bytes_are_compared_with_the_cost_model(session):
    case = next(case for case in ENTRIES["ranks-vs-threads"].cases if case.ours.name.startswith("leagues:"))
    row = figure(case.run(session), "bytes exchanged an epoch, away from the cost model")
    assert (row.value, row.met) == (pytest.approx(0.1), "met")


def figure(rows, metric):
    return next(row for row in rows if row.metric == metric)


def test_time_is_compared_at_the_peers_primal_value(session):
    case = ENTRIES["cs-liblinear"].cases[0]
    rows = case.run(session)
    ratio = figure(rows, "times faster")
    assert (ratio.value, ratio.met) == (50.0, "met")
    # 1 + tol <= 1.001 first holds at 0.001. The peer may use 180 s beyond its first fit: one more of 100 s.
    assert ratio.repetitions == {"ours": [2.0] * 3, "peer": [100.0] * 2}
    assert figure(rows, "primal, ours / peer").value == pytest.approx(1.001)
    assert session.runner.asked[-1][1]["tol"] == 0.001


def test_the_intercept_is_fitted_against_pecos_only(session):
    for name, intercept in (("squared-hinge-pecos", True), ("squared-hinge-liblinear", False)):
        assert {case.ours.options["fit_intercept"] for case in ENTRIES[name].cases} == {intercept}


def test_memory_counts_what_is_stored_above_the_interpreter(session):
    case = ENTRIES["memory"].cases[0]
    assert figure(case.run(session), "peak / stored").value == pytest.approx((172 - 100) / 60)
    session.runner.memory = {}
    row = figure(case.run(session), "peak / stored")
    assert (row.value, row.met) == (None, "not measured")
    assert row.note == f"n/a: memory_ does not tell the bytes of {', '.join(alone.STORED)}"


def test_what_is_not_to_be_had_is_a_row_with_the_reason(session):
    def load(name):
        raise UnavailableError("set MANYCLASS_DATA")

    session.load = load
    (row,) = ENTRIES["cs-liblinear"].cases[1].run(session)
    assert (row.value, row.met, row.note) == (None, "not measured", "set MANYCLASS_DATA")


def test_quick_covers_small_cases_of_these_entries():
    quick = {case.benchmark for entry in ENTRIES.values() for case in entry.cases if case.quick}
    assert quick == {"cs-liblinear", "hinge-liblinear", "squared-hinge-liblinear", "reading", "threads"}


def test_the_command_lists_and_refuses(capsys):
    assert command.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{entry.name} " in listed and entry.title in listed for entry in ENTRIES.values())
    with pytest.raises(SystemExit):
        command.main(["no-such-entry"])
    assert "no entry no-such-entry" in capsys.readouterr().err


def test_the_command_writes_what_it_shows(session, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(command, "_session", lambda runner, asked: session)
    assert command.main(["threads", "--problem", "bench-1k", "--problem", "news20"]) == 0
    assert "8 bars met, 0 missed, 0 not measured" in capsys.readouterr().out
    assert len((tmp_path / "results" / "results.csv").read_text().splitlines()) == 1 + 8
