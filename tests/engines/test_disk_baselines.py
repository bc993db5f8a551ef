"""Baselines from the literature: they compute what their papers say, and their certificates are right."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from losses import make, text_like
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from stored_fits import (
    assert_certificate_follows_from_formulas,
    assert_same_bits,
    memory_needed,
    store_of,
    variables_of,
    weights_of,
    with_constant,
)

from manyclass import DiskEngine, MulticlassSVC, OneVsOneSVC, OneVsRestSVC, select_C
from manyclass.problems import PROBLEMS
from manyclass.solvers import EnclosingBallStream, PegasosStream

LOSSES = ["hinge", "squared_hinge", "logistic"]
K = 6


def rows_with_features_of_their_own(n, d, seed):
    """Give every fifth row a feature of its own."""
    X, y = text_like(n, d, K, seed=seed)
    own = np.arange(0, n, 5)
    alone = sp.csr_matrix((np.linspace(0.5, 1.5, own.size), (own, np.arange(own.size))), (n, own.size))
    return sp.hstack([X, alone]).tocsr(), y


def pegasos(update="row", **options):
    return DiskEngine("40MB", method="pegasos", update=update, **options)


def streamsvm(**options):
    return DiskEngine("40MB", method="streamsvm", **options)


def fit_all_passes(loss, store, engine, passes=1, **parameters):
    """Fit with `warm_start` until `max_iter`."""
    given = {"tol": 1e-12, "dtype": "float64", "max_iter": passes, "warm_start": True, "n_jobs": 1} | parameters
    with pytest.warns(ConvergenceWarning):
        return make(loss, engine=engine, **given).fit(store)


# ---- The order of visits, as in native/parallel/shuffle.hpp and the engine

MASK = (1 << 64) - 1


def scramble(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def visits(store, pass_number):
    """Yield the row ids of each block in the order in which a pass with single blocks visits them."""
    for batch, number in enumerate(np.random.default_rng([0, pass_number]).permutation(store.n_blocks)):
        ids = store.read(int(number)).ids.tolist()
        seed = int(np.random.SeedSequence([0, pass_number, batch]).generate_state(1)[0])
        state = scramble(seed ^ scramble(0))
        for j in range(len(ids), 1, -1):
            state = (state ^ (state << 13)) & MASK
            state ^= state >> 7
            state = (state ^ (state << 17)) & MASK
            other = (state * j) >> 64
            ids[j - 1], ids[other] = ids[other], ids[j - 1]
        yield ids


# ---- Pegasos


def respond(loss, m, C):
    if loss == "hinge":
        return C * (m < 1)
    return 2 * C * np.maximum(0, 1 - m) if loss == "squared_hinge" else C * expit(-np.clip(m, -20, 20))


def reference(loss, sets, X, y, C):
    """Return the weights of the paper's recursion, and the mean response of each row; `sets` are rows per update."""
    X, t = X.toarray(), np.where(np.arange(K) == y[:, None], 1.0, -1.0)
    n = len(y)
    w, rows = np.zeros((X.shape[1], K)), 0
    given, visited = np.zeros((n, K)), np.zeros((n, 1))
    for B in sets:
        after = rows + len(B)
        w *= rows / after
        shrunk = 1.0 if loss == "squared_hinge" or rows == 0 else after / rows
        r = respond(loss, t[B] * (X[B] @ w) * shrunk, C)
        d = X[B].T @ (t[B] * r)
        if loss == "squared_hinge":
            S = (r**2).sum(axis=0) / (2 * C)
            theta = S / np.maximum(S + n / after * (d**2).sum(axis=0), 1e-300)
            r, d = r * theta, d * theta
        w += n / after * d
        given[B] += r
        visited[B] += 1
        rows = after
    return w, given / visited


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("update", "blocks"), [("block", 1), ("block", 3), ("row", 1), ("row", 3)])
def test_pegasos_is_the_recursion_of_the_paper(loss, update, blocks, tmp_path):
    X, y = rows_with_features_of_their_own(100, 60, seed=1)
    store = store_of(X, y, tmp_path / "s", blocks)
    fitted = fit_all_passes(loss, store, pegasos(update, blocks_per_batch=1), 3, C=0.3)
    assert fitted.n_iter_ == 3
    blocks_seen = [ids for p in range(3) for ids in visits(store, p)]
    sets = blocks_seen if update == "block" else [[i] for ids in blocks_seen for i in ids]
    w, alpha = reference(loss, sets, with_constant(X), y, 0.3)
    np.testing.assert_allclose(weights_of(fitted), w, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(variables_of(fitted, store, loss, 0.3), alpha, rtol=1e-7, atol=2e-9)


@pytest.mark.parametrize("blocks", [1, 7])
@pytest.mark.parametrize("update", ["row", "block"])
@pytest.mark.parametrize("loss", LOSSES)
def test_pegasos_comes_near_the_optimum(loss, update, blocks, tmp_path):
    X, y = text_like(150, 90, K, seed=blocks)
    store = store_of(X, y, tmp_path / "s", blocks)
    parameters = {"C": 0.1, "dtype": "float64", "n_jobs": 1, "max_iter": 1000}
    fitted = make(loss, tol=0.02, engine=pegasos(update, blocks_per_batch=1), warm_start=True, **parameters).fit(
        store
    )
    best = make(loss, tol=1e-6, **parameters).fit(X, y).certificate_
    found = fitted.certificate_
    assert found.exit_reason == "converged" and found.gap <= 0.02
    assert found.primal >= best.dual and found.dual <= best.primal
    assert_certificate_follows_from_formulas(fitted, store, loss, X, y, 0.1)


def test_pegasos_does_not_diverge_with_a_large_penalty(tmp_path):
    X, y = text_like(150, 90, K, seed=2)
    store = store_of(X, y, tmp_path / "s", 3, np.float32)
    best = make("squared_hinge", C=10.0, tol=1e-4, max_iter=5000).fit(X, y).certificate_
    for update in ("row", "block"):
        found = fit_all_passes("squared_hinge", store, pegasos(update), 30, C=10.0, dtype="float32").certificate_
        assert best.dual <= found.primal <= 30 * best.primal, update


@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_do_not_disturb_pegasos(loss, tmp_path, monkeypatch):
    X, y = rows_with_features_of_their_own(100, 60, seed=3)
    store = store_of(X, y, tmp_path / "s", 4)
    plain = fit_all_passes(loss, store, pegasos(), 5, C=0.3)
    end_pass = PegasosStream.end_pass

    def always_ready(self, rule):
        end_pass(self, rule)
        self.progress = replace(self.progress, ready=True)

    monkeypatch.setattr(PegasosStream, "end_pass", always_ready)
    often = fit_all_passes(loss, store, pegasos(), 5, C=0.3)
    assert [line["certified"] for line in often.history_] == [True] * 5
    assert [line["certified"] for line in plain.history_] == [False] * 4 + [True]
    np.testing.assert_allclose(weights_of(often), weights_of(plain), rtol=1e-9, atol=1e-11)


def test_rows_that_take_no_part_change_nothing(tmp_path):
    X, y = text_like(123, 60, K, seed=4)
    X = sp.vstack([X[:120], sp.csr_matrix((3, 60))]).tocsr()
    store = store_of(X, y, tmp_path / "s", 5)
    weight = np.random.default_rng(0).uniform(0, 2, 123)
    weight[::7] = 0
    parameters = {"C": 0.1, "dtype": "float64", "fit_intercept": False, "max_iter": 1000}
    for loss in LOSSES:
        best = make(loss, tol=1e-6, **parameters).fit(X, y, weight).certificate_
        fitted = make(loss, tol=0.02, engine=pegasos(), **parameters).fit(store, sample_weight=weight)
        found = fitted.certificate_
        assert found.exit_reason == "converged" and found.primal >= best.dual and found.dual <= best.primal, loss


def test_methods_resume_from_each_others_variables(tmp_path):
    X, y = text_like(120, 60, K, seed=5)
    store = store_of(X, y, tmp_path / "s", 4)
    for loss in LOSSES:
        estimator = make(
            loss, C=0.1, tol=1e-3, dtype="float64", warm_start=True, engine=DiskEngine("40MB"), max_iter=2000
        )
        there = estimator.fit(store).certificate_
        again = estimator.set_params(engine=pegasos()).fit(store)  # already optimal
        assert again.n_iter_ == 1 and again.certificate_.primal == pytest.approx(there.primal, rel=1e-9)
        moved = estimator.set_params(C=0.15, tol=0.03).fit(store)
        assert moved.certificate_.exit_reason == "converged"
        assert_certificate_follows_from_formulas(moved, store, loss, X, y, 0.15)


# ---- StreamSVM


def enclosing_balls(order, X, y, C):
    """Grow the ball of each class around explicit points; return the weights and dual variables."""
    n = len(y)
    alpha, weights = np.zeros((n, K)), np.zeros((X.shape[1], K))
    for c in range(K):
        points = np.hstack([X.toarray() * np.where(y == c, 1.0, -1.0)[:, None], np.eye(n) / np.sqrt(2 * C)])
        a, R = np.zeros(n), 0.0
        a[order[0]] = 1
        for i in order[1:]:
            d = np.linalg.norm(points[i] - a @ points)
            if d < R:
                continue
            beta = (1 - R / d) / 2
            a *= 1 - beta
            a[i] += beta
            R += (d - R) / 2
        alpha[:, c] = a / np.sum((a @ points) ** 2)
        weights[:, c] = alpha[:, c] @ points[:, : X.shape[1]]
    return weights, alpha


@pytest.mark.parametrize("blocks", [1, 4])
def test_streamsvm_grows_a_ball_around_the_points(blocks, tmp_path):
    X, y = rows_with_features_of_their_own(100, 60, seed=6)
    store = store_of(X, y, tmp_path / "s", blocks)
    fitted = fit_all_passes("squared_hinge", store, streamsvm(blocks_per_batch=1), 50, C=0.7)
    found = fitted.certificate_
    assert found.exit_reason == "one_pass" and fitted.n_iter_ == 1
    assert "one pass, as StreamSVM does" in found.message and "target" in found.message
    weights, alpha = enclosing_balls([i for ids in visits(store, 0) for i in ids], with_constant(X), y, 0.7)
    np.testing.assert_allclose(weights_of(fitted), weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(variables_of(fitted, store, "squared_hinge"), alpha, rtol=1e-9, atol=1e-12)
    assert_certificate_follows_from_formulas(fitted, store, "squared_hinge", X, y, 0.7)
    best = make("squared_hinge", C=0.7, tol=1e-6, dtype="float64").fit(X, y).certificate_
    assert found.primal >= best.dual and found.dual <= best.primal
    # No class gains from weights of another length.
    problem, X1, C = PROBLEMS["squared_hinge"], with_constant(X), np.full(100, 0.7)
    for c in range(K):
        for factor in (0.99, 1.01):
            other = alpha.copy()
            other[:, c] *= factor
            assert problem.dual(other, X1, y, C) < found.dual


def test_streamsvm_starts_from_scratch_and_stops_at_its_target(tmp_path):
    X, y = text_like(100, 60, K, seed=7)
    store = store_of(X, y, tmp_path / "s", 3)
    first = fit_all_passes("squared_hinge", store, streamsvm())
    coef = first.coef_.copy()
    with pytest.warns(ConvergenceWarning, match="one pass"):
        again = first.fit(store)
    np.testing.assert_array_equal(coef, again.coef_)
    reached = make("squared_hinge", tol=0.9999, engine=streamsvm()).fit(store)
    assert reached.certificate_.exit_reason == "converged"


# ---- Both


@pytest.mark.parametrize(
    ("loss", "engine"),
    [(loss, pegasos(update, blocks_per_batch=3)) for loss in LOSSES for update in ("row", "block")]
    + [("squared_hinge", streamsvm(blocks_per_batch=3))],
)
def test_bits_do_not_depend_on_threads(loss, engine, tmp_path):
    X, y = text_like(300, 200, 40, seed=8)
    store = store_of(X, y, tmp_path / "s", 12, np.float32)
    models = [fit_all_passes(loss, store, engine, 4, dtype="float32", n_jobs=n) for n in (1, 2, 4)]
    assert_same_bits(models)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("hinge", {"method": "pegasos"}),
        ("logistic", {"method": "pegasos", "update": "block"}),
        ("squared_hinge", {"method": "streamsvm"}),
    ],
)
def test_little_memory_changes_nothing(loss, options, tmp_path):
    X, y = text_like(300, 200, 40, seed=4)
    store = store_of(X, y, tmp_path / "s", 12)
    with pytest.raises(ValueError, match="is not enough") as refused:
        make(loss, engine=DiskEngine(1, blocks_per_batch=2, **options), dtype="float64").fit(store)
    least = memory_needed(str(refused.value))
    little, much = (
        fit_all_passes(loss, store, DiskEngine(memory, blocks_per_batch=2, **options), 3)
        for memory in (least, "100MB")
    )
    np.testing.assert_array_equal(little.coef_, much.coef_)
    assert little.certificate_.primal == pytest.approx(much.certificate_.primal, rel=1e-12)
    assert little.certificate_.dual == pytest.approx(much.certificate_.dual, rel=1e-12)


@pytest.mark.parametrize(
    ("engine", "stream", "loss"),
    [(pegasos(blocks_per_batch=1), PegasosStream, loss) for loss in LOSSES]
    + [(streamsvm(blocks_per_batch=1), EnclosingBallStream, "squared_hinge")],
)
def test_an_interrupted_pass_is_certified_as_it_is(engine, stream, loss, tmp_path, monkeypatch):
    X, y = rows_with_features_of_their_own(100, 60, seed=9)
    store = store_of(X, y, tmp_path / "s", 7)
    visit, seen = stream.visit, []

    def visit_three(self, *how):
        visit(self, *how)
        seen.append(how)
        if len(seen) == 3:
            self._interrupt.request()

    monkeypatch.setattr(stream, "visit", visit_three)
    fitted = fit_all_passes(loss, store, engine, 5, C=0.5)
    assert fitted.certificate_.exit_reason == "interrupted" and len(seen) == 3
    assert_certificate_follows_from_formulas(fitted, store, loss, X, y, 0.5)
    assert weights_of(fitted).any()


def test_folds_are_trained_by_every_method(tmp_path):
    X, y = text_like(150, 60, 3, seed=10)
    store = store_of(X, y, tmp_path / "s", 5)
    estimator = make("logistic", tol=0.05, dtype="float64", engine=pegasos(), max_iter=500)
    found = select_C(estimator, store, Cs=[0.1, 0.3], cv=3)
    assert found.converged.all() and found.gaps.max() <= 0.05
    with pytest.warns(ConvergenceWarning):
        found = select_C(OneVsRestSVC("squared_hinge", engine=streamsvm()), store, Cs=[0.1, 0.3], cv=3)
    assert not found.converged.any() and found.gaps.min() > 0


def test_what_is_refused(tmp_path):
    X, y = text_like(60, 40, 4, seed=11)
    store = store_of(X, y, tmp_path / "s", 4)
    for estimator in (MulticlassSVC("ww"), MulticlassSVC("cs"), OneVsOneSVC("hinge"), make("maxent")):
        with pytest.raises(ValueError, match=r"method='pegasos' only trains the one-vs-rest losses .* omit method"):
            estimator.set_params(engine=pegasos()).fit(store)
    for loss in ("hinge", "logistic", "ww"):
        with pytest.raises(ValueError, match=r"method='streamsvm' only trains .* 'squared_hinge'"):
            make(loss, engine=streamsvm()).fit(store)
    for wrong, why in (
        ({"method": "sgd"}, "method must be one of 'dual', 'pegasos', 'streamsvm'"),
        ({"method": "pegasos", "update": "all"}, "update must be 'row' or 'block'"),
        ({"update": "block"}, "requires method='pegasos'"),
        ({"method": "streamsvm", "update": "block"}, "requires method='pegasos'"),
        ({"method": "pegasos", "rounds": 3}, "visits each row once per pass"),
    ):
        with pytest.raises(ValueError, match=why):
            DiskEngine(**wrong)
