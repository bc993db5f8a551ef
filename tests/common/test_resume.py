"""A fit that is stopped and resumed gives the same model file as an undisturbed one, for every loss and solver."""

import numpy as np
import pytest
from losses import LOSSES, make, text_like

from manyclass import save_model
from manyclass.solvers import CoupledRows, FrankWolfe, L2Blocks, Leagues, coupled_rows, frank_wolfe, l2_blocks

SOLVERS = (L2Blocks, CoupledRows, FrankWolfe, Leagues)


class Crash(BaseException):
    """Ends a fit without a certificate and without a last checkpoint, like a crash."""


def rows_for(loss):
    return text_like(300, 500, 30 if loss.startswith("ovo_") else 170, seed=3, nnz=90)


def with_twins(n=150, twins=40, d=400, K=5):
    """Return rows, the first of which occur again with another class: a hard fit if C is large."""
    X, y = text_like(n, d, K, nnz=12)
    X = X.toarray()
    noise = np.random.default_rng(0).random((twins, d))
    return np.vstack([X, X[:twins] + np.where(noise < 0.02, 0.1 * noise / 0.02, 0)]), np.append(
        y, (y[:twins] + 1) % K
    )


def file_of(fitted, tmp_path):
    save_model(fitted.model_, tmp_path / "model")
    return (tmp_path / "model").read_bytes()


def crash_after(pieces, estimator, X, y):
    """Fit, but crash after this many pieces of work; return whether there were more to do."""
    left = [pieces]

    def advance_of(solver):
        plain = solver.advance

        def advance(self, rule):
            if left[0] == 0:
                raise Crash
            left[0] -= 1
            return plain(self, rule)

        return advance

    with pytest.MonkeyPatch.context() as patch:
        # Several calls per pass, so that checkpoints fall in the middle. How a pass is divided must not matter
        # either.
        patch.setattr(coupled_rows, "WORK_AT_ONCE", 3e6)
        for module in (l2_blocks, frank_wolfe):
            patch.setattr(module, "SECONDS_AT_ONCE", 0.0)
        for solver in SOLVERS:
            patch.setattr(solver, "advance", advance_of(solver))
        try:
            estimator.fit(X, y)
        except Crash:
            return True
    return False


def check_stops(tmp_path, X, y, make_one, stops):
    """Crash repeatedly, with another number of threads each time."""
    whole = make_one(n_jobs=1).fit(X, y)
    expected = file_of(whole, tmp_path)
    folder = tmp_path / "checkpoints"
    crashed = [
        crash_after(pieces, make_one(checkpoint=folder, every=0, resume=True, n_jobs=1 + k % 3), X, y)
        for k, pieces in enumerate(stops)
    ]
    assert crashed[0]
    last = make_one(checkpoint=folder, every=1e9, resume=True, n_jobs=2).fit(X, y)
    assert file_of(last, tmp_path) == expected
    names = ("primal", "dual", "violation", "certified")
    rows, expected_rows = ([row for row in e.history_ if row["active"] in (0, 1)] for e in (last, whole))
    assert [[row[n] for n in names] for row in rows] == [[row[n] for n in names] for row in expected_rows]
    seconds = [row["seconds"] for row in last.history_]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss(loss, dtype, tmp_path):
    X, y = rows_for(loss)
    C = 100.0 if loss in ("llw", "mmr") else 1.0  # with C = 1, one or two passes would be enough
    check_stops(tmp_path, X, y, lambda **more: make(loss, C=C, dtype=dtype, **more), [1, 1, 3])


@pytest.mark.parametrize(
    ("loss", "solver", "C"),
    [("squared_hinge", "newton", 1.0), ("logistic", "newton", 1.0), ("llw", "alternating", 10.0)],
)
def test_other_solvers(loss, solver, C, tmp_path):
    X, y = rows_for(loss) if solver == "newton" else text_like(200, 60, 20)
    check_stops(tmp_path, X, y, lambda **more: make(loss, solver=solver, C=C, **more), [1, 1])


@pytest.mark.parametrize("loss", ["ww", "maxent", "hinge"])
def test_feature_reduction(loss, tmp_path):
    X, y = rows_for(loss)
    check_stops(tmp_path, X, y, lambda **more: make(loss, feature_reduction=True, **more), [1, 2])


@pytest.mark.parametrize("loss", ["ww", "llw"])
def test_hard_fits(loss, tmp_path):
    X, y = with_twins()

    def make_one(**more):
        return make(loss, C=300.0, tol=1e-3, max_iter=3000, **more)

    begun = make_one(warm_start=True).fit(X, y).n_iter_
    assert begun > 2 * coupled_rows.EASY_PASSES
    # Before and after the hard part has begun, and after certificates with a factor on the weights.
    check_stops(tmp_path, X, y, make_one, [5, 3 * begun // 4, 7])


@pytest.mark.parametrize("loss", ["ww", "maxent", "hinge", "logistic", "ovo_squared_hinge"])
def test_warm_starts(loss, tmp_path):
    X, y = rows_for(loss)
    state = make(loss, C=0.1, warm_start=True).fit(X, y)._dual_state

    def make_one(**more):
        # A resumed fit needs no dual variables: the checkpoint has them.
        one = make(loss, warm_start=True, tol=1e-4, **more)
        one._dual_state = state if not any((tmp_path / "checkpoints").glob("*")) else None
        return one

    check_stops(tmp_path, X, y, make_one, [2, 1])


@pytest.mark.filterwarnings("ignore:stopped")
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("loss", ["ww", "hinge", "logistic", "ovo_hinge"])
def test_out_of_time(loss, warm, tmp_path):
    """Unfinished blocks of classes start again from the same dual variables."""
    X, y = rows_for(loss)
    parameters = {"warm_start": warm, "tol": 1e-5, "dtype": "float64", "max_iter": 10**5}
    state = make(loss, C=0.1, **parameters).fit(X, y)._dual_state if warm else None

    def fit(**more):
        one = make(loss, C=10.0, n_jobs=2, **parameters, **more)
        one._dual_state = state
        return one.fit(X, y)

    expected = file_of(fit(), tmp_path)
    resumed, stops = {"checkpoint": tmp_path / "checkpoints", "resume": True}, []
    while (fitted := fit(time_limit=0.003 * 2 ** len(stops), **resumed)).certificate_.exit_reason != "converged":
        stops.append((fitted.certificate_.exit_reason, fitted.history_[-1]["epochs"]))
        state = None  # the checkpoint has the dual variables
    assert {reason for reason, _ in stops} == {"time_limit"} and stops[-1][1] > 0
    assert file_of(fit(**resumed), tmp_path) == expected


@pytest.mark.parametrize("loss", ["ww", "maxent"])
def test_out_of_passes(loss, tmp_path):
    X, y = rows_for(loss)
    expected = file_of(make(loss, tol=1e-5).fit(X, y), tmp_path)
    stopped = make(loss, tol=1e-5, max_iter=2, checkpoint=tmp_path / "checkpoints")
    with pytest.warns(UserWarning, match="raise max_iter"):
        stopped.fit(X, y)
    assert stopped.n_iter_ == 2
    gone_on = stopped.set_params(max_iter=1000, resume=True).fit(X, y)
    assert file_of(gone_on, tmp_path) == expected


@pytest.mark.parametrize("loss", ["ww", "maxent", "hinge", "logistic", "ovo_hinge"])
def test_another_target(loss, tmp_path):
    """A fit that met its target resumes with a stricter one."""
    X, y = rows_for(loss)
    fitted = make(loss, tol=0.1, checkpoint=tmp_path, every=0).fit(X, y)
    closer = fitted.set_params(tol=1e-4, resume=True, n_jobs=1)
    crash_after(1, closer, X, y)  # some blocks have met the old target, some the new one
    closer.fit(X, y)
    assert closer.certificate_.exit_reason == "converged" and closer.certificate_.gap <= 1e-4


def test_penalties_one_after_another(tmp_path):
    X, y = text_like(120, 60, 7)
    whole = make("ww").fit_path(X, y, [0.01, 0.1, 1.0])
    one = make("ww", checkpoint=tmp_path / "checkpoints", every=0)
    assert len(one.fit_path(X, y, [0.01, 0.1])) == 2
    again = one.set_params(resume=True).fit_path(X, y, [0.01, 0.1, 1.0])
    assert [file_of(a, tmp_path) for a in again] == [file_of(w, tmp_path) for w in whole]
    assert all(model.checkpoint == tmp_path / "checkpoints" for model in again)


def test_an_unbounded_penalty(tmp_path):
    X, y = np.eye(6), np.arange(6)
    parameters = {"loss": "llw", "C": np.inf}
    expected = make(**parameters).fit(X, y)
    first = make(**parameters, checkpoint=tmp_path, every=0).fit(X, y)
    again = make(**parameters, checkpoint=tmp_path, every=0, resume=True).fit(X, y)
    assert expected.C_ == first.C_ == again.C_
    np.testing.assert_array_equal(again.coef_, expected.coef_)


def test_leagues_in_the_middle_of_a_pass(tmp_path):
    X, y = text_like(600, 100, 260)
    check_stops(tmp_path, X, y, lambda **more: make("ww", solver="leagues", C=10.0, **more), [2, 1, 3, 5])
