"""The max-margin loss with an elastic net (PD-Sparse), on rows with any number of labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from losses import dual_variables, make, text_like
from oracle import max_margin_optimum

from manyclass import PDSparse
from manyclass.data import BlockStore, check_matrix
from manyclass.engines import check_engine
from manyclass.problems import MaxMargin
from manyclass.solvers import FrankWolfe, SolverOptions, StopRule, TrainingSet

TIGHT = StopRule("gap", 1e-8)


def rows_with_sets(n=60, d=40, K=6, seed=0):
    """Sparse rows; the first has no labels, the second has all."""
    X, y = text_like(n, d, K, seed=seed)
    Y = np.random.default_rng(seed).random((n, K)) < 1.5 / K
    Y[np.arange(n), y] = True
    Y[0], Y[1] = False, True
    return X, Y


def training_set(X, Y, C, constant=0.0):
    sets = sp.csr_matrix(np.asarray(Y, np.float32))
    return TrainingSet(check_matrix(X), np.empty(0, np.int32), C, sets.shape[1], constant, Y=sets)


def train(data, rule=TIGHT, *, lam=0.05, tau=1.0, dtype="float64", threads=1, passes=None):
    """Advance until the rule is met or this many full passes are done; return the solver and its certificate."""
    solver = FrankWolfe(MaxMargin(lam, tau), data, SolverOptions(np.dtype(dtype), threads=threads))
    while True:
        progress = solver.advance(rule)
        if progress.ready or progress.epochs == passes:
            found = solver.certificate()
            if rule.met(found) or progress.epochs == passes:
                return solver, found
        assert progress.epochs < 50_000


@pytest.mark.parametrize("constant", [0.0, 0.7])
@pytest.mark.parametrize(("lam", "tau"), [(0.0, 1.0), (0.05, 0.5), (0.5, 2.0)])
def test_sets_of_labels_equal_an_independent_solver(lam, tau, constant):
    X, Y = rows_with_sets()
    C = np.random.default_rng(1).uniform(0.2, 3, len(Y))
    _, found = train(training_set(X, Y, C, constant), lam=lam, tau=tau)
    best = max_margin_optimum(X, Y, C, constant, lam=lam, tau=tau)
    assert found.primal == pytest.approx(best, rel=1e-6)
    assert found.dual == pytest.approx(best, rel=1e-6)
    assert found.dual <= best * (1 + 1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_certificate_of_sets_equals_the_formulas(dtype):
    """Also far from the optimum, and at the weights as stored."""
    X, Y = rows_with_sets(100, 50, 20)
    X, C = X.astype(dtype).astype(float), np.full(len(Y), 4.0)
    problem = MaxMargin(0.05, 0.5, constant=True)
    solver, found = train(training_set(X, Y, C, 0.5), lam=0.05, tau=0.5, dtype=dtype, passes=2)
    X1 = np.hstack([X.toarray(), np.full((len(Y), 1), 0.5)])
    alpha = dual_variables(solver.state(), 20)
    W = solver.weights()
    rounding = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(W, problem.weights(alpha, X1, Y), atol=rounding)
    assert found.primal == pytest.approx(problem.primal(W.astype(float), X1, Y, C), rel=1e-10)
    assert found.dual == pytest.approx(problem.dual(alpha, X1, Y, C), rel=rounding)
    own, others = np.where(Y, alpha, 0).sum(axis=1), np.where(Y, 0, alpha).sum(axis=1)
    np.testing.assert_allclose(own, others, rtol=rounding, atol=rounding)
    assert own.max() <= 4 * (1 + rounding)
    if dtype == "float64":
        assert found.violation == pytest.approx(problem.violations(X1 @ W, alpha, Y, C).max(), rel=1e-8)
    assert found.gap > 1e-3


def test_without_l1_it_is_crammer_singer():
    X, y = text_like(150, 60, 9, seed=3)
    tight = {"tol": 1e-8, "dtype": "float64", "max_iter": 100_000}
    sparse, plain = PDSparse(lam=0.0, **tight).fit(X, y), make("cs", **tight).fit(X, y)
    assert sparse.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(sparse.coef_, plain.coef_, atol=1e-3)


def test_bits_do_not_depend_on_threads():
    """There are enough labels for features with lists, with indices and with dense rows of weights."""
    X, Y = rows_with_sets(400, 600, 250, seed=3)
    data = training_set(X, Y, np.ones(len(Y)), 1.0)
    one, three = (train(data, StopRule("gap", 1e-3), dtype="float32", threads=threads) for threads in (1, 3))
    assert one[1] == three[1]
    np.testing.assert_array_equal(one[0].weights(), three[0].weights())


def test_weights_equal_repetition():
    X, Y = rows_with_sets()
    times = np.random.default_rng(0).integers(1, 4, len(Y))
    repeated = np.repeat(np.arange(len(Y)), times)
    _, weighted = train(training_set(X, Y, times.astype(float)))
    _, again = train(training_set(X[repeated], Y[repeated], np.ones(len(repeated))))
    assert weighted.primal == pytest.approx(again.primal, rel=1e-7)


def test_empty_and_duplicate_rows():
    X, Y = rows_with_sets(30, 40, 5)
    X = sp.csr_matrix(sp.diags((np.arange(30) % 5 > 0).astype(float)) @ X)
    X.eliminate_zeros()
    X, Y, C = sp.vstack([X, X]).tocsr(), np.vstack([Y, Y[::-1]]), np.ones(60)
    _, found = train(training_set(X, Y, C))
    assert found.primal == pytest.approx(max_margin_optimum(X, Y, C, lam=0.05), rel=1e-6)


@pytest.mark.parametrize("K", [1, 3])
def test_rows_without_pairs_of_labels_have_no_loss(K):
    """With a single label, or with rows that have either no labels or all of them."""
    X, _ = text_like(20, 30, 2)
    Y = np.repeat(np.arange(20)[:, None] % 2 == 0, K, axis=1)
    solver, found = train(training_set(X, Y, np.ones(20), 1.0))
    assert (found.primal, found.dual, found.violation) == (0, 0, 0)
    assert not np.any(solver.weights())


def test_training_continues_from_the_state_of_sets():
    X, Y = rows_with_sets()
    data = training_set(X, Y, np.full(len(Y), 2.0))
    solver, found = train(data)
    again = FrankWolfe(MaxMargin(0.05, 1.0), data, SolverOptions(np.dtype("float64")))
    again.load_state(solver.state())
    assert again.advance(TIGHT).ready
    assert again.certificate().dual == pytest.approx(found.dual, rel=1e-12)
    smaller = training_set(X, Y, np.full(len(Y), 0.1))
    cut = FrankWolfe(MaxMargin(0.05, 1.0), smaller, SolverOptions(np.dtype("float64")))
    cut.load_state(solver.state())
    assert cut.certificate().dual <= train(smaller)[1].primal * (1 + 1e-12)


def test_memory_follows_the_non_zeros():
    """A dense array of labels by features would take 40 GB here."""
    n, d, K = 300, 100_000, 100_000
    rng = np.random.default_rng(0)

    def ones(columns, width):
        matrix = sp.csr_matrix((np.ones(columns.size), (np.repeat(np.arange(n), columns.shape[1]), columns.ravel())))
        matrix.resize(n, width)
        matrix.data[:] = 1
        return matrix.astype(np.float32)

    X, Y = ones(np.column_stack([np.full(n, 7), rng.integers(0, d, (n, 50))]), d), ones(rng.integers(0, K, (n, 2)), K)
    data = TrainingSet(check_matrix(X), np.empty(0, np.int32), np.ones(n), K, 1.0, Y=Y)
    solver, _ = train(data, StopRule("gap", 0.01), dtype="float32")
    assert sum(solver.memory().values()) < 50e6
    weights = solver.weights()
    assert sp.issparse(weights) and weights.shape == (d + 1, K)


def test_more_l1_means_fewer_weights():
    X, y = text_like(300, 200, 12, seed=1)
    counts = [np.count_nonzero(PDSparse(lam=lam).fit(X, y).coef_) for lam in (0.0, 0.05, 0.5)]
    assert counts[0] > counts[1] > 3 * counts[2] > 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"engine": "joblib"}, "engine='memory'"),
        ({"feature_reduction": True}, "feature_reduction is not available for PDSparse"),
        ({"lam": -1.0}, "lam"),
        ({"tau": 0.0}, "tau"),
    ],
)
def test_rejects_unsupported_parameters(parameters, message):
    X, y = text_like(40, 30, 4)
    with pytest.raises(ValueError, match=message):
        PDSparse(**parameters).fit(X, y)


def test_trains_in_memory_only(tmp_path):
    X, y = text_like(40, 30, 4)
    with pytest.raises(ValueError, match="needs engine='memory'"):
        check_engine("mpi", MaxMargin())
    with pytest.raises(ValueError, match=r"load the rows with store.load\(\)"):
        PDSparse().fit(BlockStore.create(tmp_path / "store", X, y))
