"""Labels with an elastic net: each reaches its optimum, however its rows are found, and has its own certificate."""

import numpy as np
import pytest
import scipy.sparse as sp
from losses import dual_variables, slow_if, text_like
from oracle import optimum

from manyclass import PPDSparse
from manyclass._native import core
from manyclass.data import check_matrix
from manyclass.problems.sparse_binary import SparseHinge, SparseSquaredHinge
from manyclass.solvers import SolverOptions, StopRule, TrainingSet, elastic_net_blocks

LOSSES = {"hinge": SparseHinge, "squared_hinge": SparseSquaredHinge}
# Labels find their rows separately, by the index and by passes over all rows; or are trained together.
ALONE, ON_ALL_ROWS = 0, 10**6


@pytest.fixture(params=[ALONE, ON_ALL_ROWS], ids=["alone", "together"])
def way(request, monkeypatch):
    monkeypatch.setattr(elastic_net_blocks, "ON_ALL_ROWS", request.param)
    return request.param


def sets_of_labels(n=300, d=80, K=9, seed=0):
    """Rows with up to three labels; the last label has no rows, and the one before has all."""
    X, y = text_like(n, d, K - 2, seed=seed)
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, K), np.int8)
    Y[np.arange(n), y] = rng.random(n) < 0.9
    Y[np.arange(n), rng.integers(0, K - 2, n)] = 1
    Y[::17, : K - 2] = 0
    Y[:, K - 2] = 1
    return X, sp.csr_matrix(Y)


def exact(loss, **parameters):
    return PPDSparse(loss, tol=1e-8, dtype="float64", max_iter=100_000, **parameters)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_each_label_is_at_its_optimum(loss, fit_intercept, way):
    X, Y = sets_of_labels()
    C = np.random.default_rng(1).uniform(0.3, 2, X.shape[0])
    fitted = exact(loss, lam=0.05, tau=0.7, fit_intercept=fit_intercept, intercept_scaling=0.8)
    fitted.fit(X, Y, sample_weight=C)
    constant = 0.8 if fit_intercept else 0.0
    found = fitted.label_certificates_
    for label in (0, 3, 7, 8):
        # For two classes, the independent solver has one problem per class, with the same value.
        y = 1 - Y[:, [label]].toarray().ravel()
        best = optimum(f"ppd_{loss}", X, y, C, 2, constant, lam=0.05, tau=0.7) / 2
        assert found["primal"][label] == pytest.approx(best, rel=1e-6)
        assert found["dual"][label] == pytest.approx(best, rel=1e-6)
        assert found["dual"][label] <= best * (1 + 1e-8)
    assert fitted.certificate_.primal == pytest.approx(found["primal"].sum(), rel=1e-12)
    assert fitted.certificate_.violation == found["violation"].max()


def test_support_and_weights_are_those_of_full_coordinate_ascent(way):
    """The same rows have variables above 0, and the same weights are 0, as without any active set."""
    X, y = text_like(200, 60, 5, seed=2)
    fitted = exact("squared_hinge", lam=0.5, warm_start=True).fit(X, y)
    problem = SparseSquaredHinge(0.5, 1.0, constant=True)
    dense = np.hstack([X.toarray(), np.ones((200, 1))])
    alpha, V, C = np.zeros((200, 5)), np.zeros((61, 5)), np.ones(200)
    for number in range(3000):
        for i in np.random.default_rng(number).permutation(200):
            new = problem.solve_row(dense[i] @ problem.shrink(V), alpha[i], y[i], float(dense[i] @ dense[i]), 1.0)
            code = y[i : i + 1]
            V += np.outer(dense[i], problem.coefficients((new - alpha[i])[None], code)[0])
            alpha[i] = new
        W = problem.shrink(V)
        if problem.primal(W, dense, y, C) - problem.dual(alpha, dense, y, C) < 1e-9:
            break
    np.testing.assert_allclose(fitted.coef_.T, W[:-1], atol=2e-4)
    assert ((np.abs(W[:-1]) > 1e-3) <= (fitted.coef_.T != 0)).all()
    assert (fitted.coef_ == 0).mean() > 0.2
    used = dual_variables(fitted._dual_state[2], 5) > 1e-3
    np.testing.assert_array_equal(used, alpha > 1e-3)
    assert 0.1 < used.mean() < 0.9


@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_equal_the_formulas_far_from_the_optimum(loss, way):
    """Also with a bias that is lowered below -1 for the weights of the model."""
    X, y = text_like(400, 50, 8, seed=3)
    fitted = PPDSparse(loss, lam=0.02, C=5.0, tol=1e-9, max_iter=1, dtype="float64", warm_start=True)
    with pytest.warns(match="stopped after max_iter=1"):
        fitted.fit(X, y)
    problem, C = LOSSES[loss](0.02, 1.0, constant=True), np.full(400, 5.0)
    rows = np.hstack([X.toarray(), np.ones((400, 1))])
    alpha = dual_variables(fitted._dual_state[2], 8)
    W = np.vstack([fitted.coef_.T, fitted.intercept_])
    found = fitted.certificate_
    assert found.primal == pytest.approx(problem.primal(W, rows, y, C), rel=1e-10)
    assert found.dual == pytest.approx(problem.dual(alpha, rows, y, C), rel=1e-10)
    assert found.violation == pytest.approx(problem.violations(rows @ W, alpha, y, C).max(), rel=1e-7)
    assert found.gap > 1e-3


def test_alone_and_together_agree(monkeypatch):
    X, Y = sets_of_labels(seed=4)
    values = []
    for together in (ALONE, 2, ON_ALL_ROWS):  # for 2, some labels grow too large to be trained alone
        monkeypatch.setattr(elastic_net_blocks, "ON_ALL_ROWS", together)
        values.append(exact("squared_hinge", C=3.0).fit(X, Y).label_certificates_["primal"])
    np.testing.assert_allclose(values[0], values[2], rtol=1e-7)
    np.testing.assert_allclose(values[1], values[2], rtol=1e-7)


def test_drawn_features_find_the_same_optimum(monkeypatch):
    monkeypatch.setattr(elastic_net_blocks, "ON_ALL_ROWS", ALONE)
    X, y = text_like(500, 200, 10, seed=5)
    plain, drawn = exact("squared_hinge").fit(X, y), exact("squared_hinge", draws=5).fit(X, y)
    np.testing.assert_allclose(drawn.label_certificates_["primal"], plain.label_certificates_["primal"], rtol=1e-7)
    assert not np.array_equal(drawn.coef_, plain.coef_)  # reached in a different way


def test_every_label_meets_the_rule(way):
    X, Y = sets_of_labels(seed=6)
    found = PPDSparse(tol=1e-4).fit(X, Y).label_certificates_
    gaps = (found["primal"] - found["dual"]) / found["primal"]
    assert gaps.max() <= 1e-4 and gaps.min() >= -1e-12
    assert found["support"].min() > 0


def test_threads_do_not_matter(way):
    X, y = text_like(600, 300, 200, seed=7)
    one, three = (PPDSparse(n_jobs=jobs).fit(X, y) for jobs in (1, 3))
    np.testing.assert_array_equal(one.coef_, three.coef_)
    np.testing.assert_array_equal(one.label_certificates_, three.label_certificates_)


def test_rows_of_mixed_signs_are_found(monkeypatch):
    """Negative weights of negative values raise scores too."""
    monkeypatch.setattr(elastic_net_blocks, "ON_ALL_ROWS", ALONE)
    rng = np.random.default_rng(8)
    X = sp.random(400, 60, 0.1, random_state=rng, data_rvs=lambda n: rng.normal(size=n), format="csr")
    y = np.asarray(X @ rng.normal(size=(60, 12))).argmax(axis=1)
    fitted = exact("squared_hinge", lam=0.2).fit(X, y)
    best = optimum("ppd_squared_hinge", X, y, np.ones(400), len(fitted.classes_), 1.0, lam=0.2)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("labels", slow_if([10, 25, 60], 10, 60))
def test_blocked_passes_miss_no_row(labels, dtype, monkeypatch):
    """One pass searches for some or all labels of a block of 64, with features shared by few or many of them."""
    monkeypatch.setattr(elastic_net_blocks, "ON_ALL_ROWS", ALONE)
    X, y = text_like(400, 1500, labels, seed=9, nnz=12)
    Y = sp.csr_matrix((np.ones(400), (np.arange(400), y)), shape=(400, 4200))
    X = X.astype(dtype)
    fitted = PPDSparse(lam=0.1, tol=1e-3, dtype=dtype).fit(X, Y)
    found = fitted.label_certificates_
    assert (1 - found["dual"] / found["primal"]).max() <= 1e-3
    problem = SparseSquaredHinge(0.1, 1.0, constant=True)
    rows = np.hstack([X.toarray().astype(float), np.ones((400, 1))])
    for label in range(0, 64, 3):
        w = np.append(fitted.coef_[label], fitted.intercept_[label]).astype(float)
        margins = np.where(Y[:, [label]].toarray().ravel() > 0, rows @ w, -rows @ w)
        primal = 0.1 * np.abs(w[:-1]).sum() + w @ w / 2 + problem.loss_at(margins).sum()
        assert found["primal"][label] == pytest.approx(primal, rel=1e-9)
    few = PPDSparse(lam=0.1, tol=1e-3, dtype=dtype).fit(X, Y[:, :61])
    np.testing.assert_array_equal(fitted.coef_[:60], few.coef_[:60])


def test_variables_at_the_bound_violate_nothing(way):
    """Even if float32 cannot represent the penalty."""
    X, y = text_like(200, 60, 5, seed=10)
    found = PPDSparse("hinge", C=0.7, tol=1e-6, max_iter=100_000).fit(X, y).certificate_
    assert found.violation < 0.05


def test_a_label_above_the_target_is_not_hidden_by_others():
    X, Y = sets_of_labels(seed=11)
    with pytest.warns(match="stopped after max_iter=4"):
        fitted = PPDSparse(C=100.0, tol=0.02, max_iter=4).fit(X, Y)
    gaps = 1 - fitted.label_certificates_["dual"] / fitted.label_certificates_["primal"]
    assert gaps.max() > 0.02
    assert fitted.certificate_.exit_reason == "max_iter"


# ---- Ctrl-C while labels are trained again

LOOSE, STRICT = StopRule("gap", 0.1), StopRule("gap", 1e-6)


def trained_block(keep_state):
    """Train the first block of 4,200 labels, so that blocks are large, to a loose rule."""
    X, y = text_like(1500, 100, 100, seed=9, nnz=5)
    solver = elastic_net_blocks.ElasticNetBlocks(
        SparseSquaredHinge(0.01, 1.0, constant=True),
        TrainingSet(check_matrix(X), y.astype(np.int32), np.ones(1500), 4200, 1.0),
        SolverOptions(keep_state=keep_state),
        interrupt=core.Interrupt(),
    )
    solver.choose_blocks([0])
    assert solver.advance(LOOSE).ready
    return solver


def labels_of(blocks):
    """Return the weights and dual variables of each label of one block."""
    parts = [blocks["constants"].tolist()]
    for ptr, names in (("weight_ptr", ("features", "weights")), ("row_ptr", ("rows", "variables"))):
        bounds = list(zip(blocks[ptr][:-1], blocks[ptr][1:], strict=True))
        parts += [[blocks[name][begin:end].tolist() for begin, end in bounds] for name in names]
    return np.array(list(zip(*parts, strict=True)), object)


@pytest.mark.parametrize("keep_state", [True, False])
def test_labels_left_out_by_an_interrupt_do_not_change(keep_state):
    solver = trained_block(keep_state)
    before, seconds = solver.export_blocks(), 1e-5
    for _ in range(300):  # until the interrupt comes after some labels and before others
        interrupt = core.Interrupt()
        again = solver.sibling(interrupt)
        again.choose_blocks([0])
        again.import_blocks(before)
        interrupt.stop_after(seconds)
        _, found = again._kernel.train(iter([0, -1]).__next__, True, STRICT.tol, 1000, 0, 1, interrupt)
        reached = np.reshape(found, (64, -1))[:, elastic_net_blocks.RESULT.index("rounds")] > 0
        if reached.any() and not reached.all():
            break
        seconds *= 0.6 if reached.all() else 1.3
    assert interrupt.requested and reached.any() and not reached.all()
    old, new = labels_of(before), labels_of(again.export_blocks([0]))
    assert (old[~reached] == new[~reached]).all()
    assert keep_state or (old[reached] != new[reached]).any()  # without variables they start from scratch


def test_a_block_with_labels_left_out_by_an_interrupt_is_not_done():
    """Nor where it is imported, although its other labels have earlier results."""
    solver = trained_block(keep_state=True)
    lines = solver.by_label()[:64].copy()
    lines[40:] = 0  # as the core reports labels that it did not reach
    assert solver._add_results([0], lines) == [0]
    there = solver.sibling(core.Interrupt())
    there.choose_blocks([0])
    there.import_blocks(solver.export_blocks())
    for one in (solver, there):
        assert one._results[0].cut and not one._results[0].done and not one.complete()
        assert one.checkpoint()["blocks"].size == 0
        np.testing.assert_array_equal(
            one.by_label()[:64, elastic_net_blocks.RESULT.index("cut")], np.arange(64) >= 40
        )
    there.train_again()
    there.advance(STRICT)
    assert there.complete() and there.meets(STRICT, there.certificate())


def test_a_block_left_out_by_an_interrupt_is_not_done(monkeypatch):
    solver = trained_block(keep_state=True)
    deal = solver._deal

    def interrupting():
        given = deal()

        def one():
            solver._interrupt.request()
            return given()

        return one

    monkeypatch.setattr(solver, "_deal", interrupting)
    assert not solver.advance(STRICT).ready
    again = solver.sibling(core.Interrupt())
    again.choose_blocks([0])
    again.restore([solver.checkpoint()])
    assert again.advance(STRICT).ready and again.meets(STRICT, again.certificate())
