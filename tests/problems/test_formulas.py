"""The plain formulas: a NumPy coordinate ascent on them and the compiled kernels end at the same point."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from losses import LOSSES, dual_variables, make, slow_if, text_like

from manyclass.estimators import ESTIMATORS
from manyclass.problems import LOSSES as ENTRIES
from manyclass.problems import PROBLEMS, ElasticNet, MaxMargin, Reinforced
from manyclass.problems.max_margin import project
from manyclass.problems.sparse_binary import SparseHinge


def ascend(problem, X, y, C, K, epochs):
    """Coordinate ascent a row at a time, with weights kept up to date, to a tiny gap."""
    alpha = np.zeros((len(y), problem.columns(K)))
    V = np.zeros((X.shape[1], problem.columns(K)))
    W = problem.shrink(V)
    norms = np.square(X).sum(axis=1)
    for epoch in range(epochs):
        for i in np.random.default_rng(epoch).permutation(len(y)):
            new = problem.solve_row(X[i] @ W, alpha[i], y[i], norms[i], C[i])
            change = problem.coefficients(np.stack([new]), y[i : i + 1]) - problem.coefficients(
                alpha[i : i + 1], y[i : i + 1]
            )
            V += np.outer(X[i], change)
            W = problem.shrink(V)
            alpha[i] = new
        primal = problem.primal(W, X, y, C)
        if primal - problem.dual(alpha, X, y, C) < 1e-8 * primal:
            break
    return alpha, W


@pytest.mark.parametrize("loss", slow_if(LOSSES, "adm", "atm"))
def test_numpy_and_native_agree(loss):
    X, y = text_like(50, 30, 4, seed=0)
    X, C, problem = X.toarray(), np.random.default_rng(1).uniform(0.2, 2, 50), PROBLEMS[loss]
    alpha, W = ascend(problem, X, y, C, 4, 400)
    native = make(loss, fit_intercept=False, tol=1e-9, dtype="float64", max_iter=100_000).fit(X, y, sample_weight=C)
    np.testing.assert_allclose(W, problem.weights(alpha, X, y), atol=1e-9)
    assert problem.primal(W, X, y, C) == pytest.approx(native.certificate_.primal, rel=1e-6)
    assert problem.dual(alpha, X, y, C) == pytest.approx(native.certificate_.dual, rel=1e-6)
    assert problem.violations(X @ W, alpha, y, C).max() < 1e-3


POINTS = {"plain": {"fit_intercept": False}, "intercept": {"fit_intercept": True, "intercept_scaling": 0.7}}
ELASTIC = {"lam": 0.05, "tau": 3.0}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_equals_the_formulas(loss, point):
    """Far from the optimum too, where no two of primal, dual and zero coincide."""
    X, y = text_like(80, 40, 20, seed=2)
    parameters, problem = POINTS[point], PROBLEMS[loss]
    if isinstance(problem, ElasticNet):
        problem = type(problem)(**ELASTIC, constant=point == "intercept")
        parameters = parameters | ELASTIC
    fitted = make(loss, C=20.0, tol=1e-9, max_iter=2, dtype="float64", warm_start=True, **parameters)
    C = np.random.default_rng(3).uniform(5, 20, 80)
    with pytest.warns(match="stopped after max_iter=2"):
        fitted.fit(X, y, C / 20)
    alpha = dual_variables(fitted._dual_state[2], problem.columns(20))
    found, X, W = fitted.certificate_, X.toarray(), fitted.coef_.T
    if point == "intercept":
        X, W = np.hstack([X, np.full((80, 1), 0.7)]), np.vstack([W, fitted.intercept_ / 0.7])
    np.testing.assert_allclose(problem.weights(alpha, X, y), W, atol=1e-12 * np.abs(W).max())
    assert found.primal == pytest.approx(problem.primal(W, X, y, C), rel=1e-10)
    assert found.dual == pytest.approx(problem.dual(alpha, X, y, C), rel=1e-10)
    assert found.violation == pytest.approx(problem.violations(X @ W, alpha, y, C).max(), rel=1e-8)
    assert found.gap > 1e-3


class Row:
    """A row of six classes at random: its label, bounds, a feasible point, scores of any size or near the margins."""

    def __init__(self, loss, seed, C):
        self.rng = rng = np.random.default_rng(seed)
        self.loss, self.C, self.problem = loss, C, PROBLEMS[loss]
        if isinstance(self.problem, ElasticNet):
            self.problem = type(self.problem)(tau=float(rng.choice([0.3, 1.0, 4.0])))
        K, y = 6, int(rng.integers(6))
        columns = self.problem.columns(K)
        self.y = y if loss != "max_margin" else np.isin(np.arange(K), rng.permutation(K)[: rng.integers(1, K)])
        self.label, self.penalty = np.array([self.y]), np.array([C])
        self.cap = self.problem.cap(np.arange(columns) == y, np.full(columns, C))
        self.total = self.problem.total(self.penalty)[0]
        if loss.startswith("ovo_"):  # the row has no variable in pairs without its class
            self.cap = np.where((np.array(np.triu_indices(K, 1)) == y).any(axis=0), self.cap, 0.0)
        self.scores = rng.normal(size=columns) * 10 ** rng.uniform(-1, 1.5)
        if rng.random() < 0.5:  # all just beyond their margins
            signs = np.sign(self.problem.coefficients(np.ones((1, columns)), self.label)[0])
            self.scores = signs * rng.uniform(1, 1.6, columns)
        if not self.problem.sparse_weights:
            self.scores[y] -= self.scores.sum()  # weights that sum to zero over the classes
        self.alpha = self.feasible()

    def feasible(self):
        """Variables within their bounds, some of them at a bound unless the loss has an entropy."""
        rng, C, bounds = self.rng, self.C, np.where(self.cap > 0, np.minimum(self.cap, self.C), 0.0)
        shares = rng.uniform(0.01, 0.99, self.cap.size)
        if self.loss == "maxent":
            return C * shares / shares.sum()
        if "logistic" not in self.loss:
            shares = np.clip(1.5 * shares - 0.25, 0, 1)
        alpha = bounds * shares
        reached = C * min(1.0, rng.uniform(0.5, 1.5))
        if self.loss == "max_margin":  # equal sums of the own labels and of the others
            shares = np.where([self.y, ~self.y], alpha + 1e-9, 0)
            return (reached * shares / shares.sum(axis=1, keepdims=True)).sum(axis=0)
        return alpha if np.isinf(self.total) else alpha * min(1, reached / max(alpha.sum(), 1e-9))

    def gain(self, beta, curvature=0.0):
        """Change of the dual value if this row goes from `alpha` to `beta`; to first order without curvature."""
        change = self.problem.coefficients(beta[None].copy(), self.label) - self.problem.coefficients(
            self.alpha[None].copy(), self.label
        )
        rise = self.problem.dual_gain(beta[None], self.label, self.penalty)
        return rise - float((change @ self.scores).sum()) - 0.5 * curvature * float(np.sum(change**2))

    def slopes(self):
        """Derivative of the dual value for each variable."""
        steps = 1e-6 * self.C * np.eye(self.alpha.size)
        return np.array([(self.gain(self.alpha + e) - self.gain(self.alpha - e)) / (2 * e.sum()) for e in steps])


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10_000), C=st.floats(0.01, 100), k=st.floats(0.01, 100))
@settings(max_examples=40, deadline=None)
def test_a_row_step_is_the_best_feasible_one(loss, seed, C, k):
    """No feasible point nearby has a larger dual value, with all other rows fixed."""
    row = Row(loss, seed, C)
    curvature = k / getattr(row.problem, "tau", 1.0)
    best = row.problem.solve_row(row.scores, row.alpha, row.y, k, C)
    reached = row.gain(best, curvature)
    assert best.min() >= 0
    assert np.all(best <= row.cap * (1 + 1e-9))
    assert best.sum() <= row.total * (1 + 1e-9)
    for _ in range(20):
        other = row.feasible()
        for share in (1e-3, 0.1, 1.0):
            assert row.gain(best + share * (other - best), curvature) <= reached + 1e-7 * (1 + abs(reached))


def steepest(row):
    """The steepest feasible ascent: by one variable, or under a bound on their sum by one that takes from another."""
    slopes, alpha = row.slopes(), row.alpha
    up, down = alpha < row.cap, alpha > 0
    if np.isinf(row.total):
        return max(0.0, *slopes[up], *-slopes[down])
    if row.loss == "max_margin":  # pairs of an own and another label
        own, others = row.y, ~row.y
        rising = [slopes[own].max() + slopes[others].max()]
        falling = [slopes[own & down].min() + slopes[others & down].min()]
    else:
        rising, falling = slopes[up], slopes[down]
    unused = [0.0] if alpha.sum() < row.total * (1 - 1e-9) else []
    return max(0.0, max(0.0, *rising) - min([*falling, *unused]))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "maxent"])
def test_the_violation_is_the_steepest_feasible_ascent(loss):
    for seed in range(40):
        row = Row(loss, seed, C=(0.3, 2.0, 30.0)[seed % 3])
        found = row.problem.violations(row.scores[None], row.alpha[None], row.label, row.penalty)
        assert found == pytest.approx([steepest(row)], rel=1e-5, abs=1e-7)


def test_the_violation_of_maximum_entropy_is_the_distance_to_the_probabilities():
    row = Row("maxent", 0, 2.0)
    powers = np.exp(row.scores)
    found = row.problem.violations(row.scores[None], row.alpha[None], row.label, row.penalty)
    assert found == pytest.approx([np.abs(row.alpha / 2 - powers / powers.sum()).max()])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_row_that_is_far_off_uses_all_that_its_penalty_allows(loss):
    """Bounds are reached, so they are no larger than they have to be."""
    problem, y = PROBLEMS[loss], 2
    columns = problem.columns(4)
    own = np.where(np.arange(columns) == y, -1.0, 1.0)
    signs = -problem.coefficients(np.ones((1, columns)), np.array([y]))[0] if loss.startswith("ovo_") else own
    best = problem.solve_row(1e6 * signs, np.full(columns, 1e-3), y, 1e-3, 5.0)
    cap = problem.cap(np.arange(columns) == y, np.full(columns, 5.0))
    total = float(problem.total(np.array([5.0]))[0])
    if np.isfinite(total):
        assert best.sum() == pytest.approx(total)
    elif np.isfinite(cap).all():
        np.testing.assert_allclose(best, cap * (signs != 0), rtol=1e-6)


def test_rows_with_no_label_or_all_of_them_have_no_loss():
    problem, scores = PROBLEMS["max_margin"], np.array([0.3, -2.0, 5.0])
    for y in (np.zeros(3, bool), np.ones(3, bool)):
        assert problem.losses(scores[None], y[None]) == 0
        assert problem.solve_row(scores, np.zeros(3), y, 1.0, 2.0).tolist() == [0, 0, 0]
        assert problem.violations(scores[None], np.zeros((1, 3)), y[None], np.ones(1)) == 0


@given(seed=st.integers(0, 10_000), total=st.floats(0.01, 20))
@settings(max_examples=100, deadline=None)
def test_a_projection_is_the_nearest_point(seed, total):
    """The way to any other feasible point leads away from the point that was projected."""
    rng = np.random.default_rng(seed)
    own, others = (np.round(rng.normal(size=rng.integers(1, 5)) * 4) for _ in range(2))
    at = np.concatenate(project(own, others, total))
    assert at.min() >= 0 and at[: own.size].sum() == pytest.approx(at[own.size :].sum(), abs=1e-9)
    assert at[: own.size].sum() <= total * (1 + 1e-9)
    for _ in range(20):
        reached = rng.choice([0.0, 1.0, rng.random()]) * total
        sides = [rng.dirichlet(np.full(side.size, 0.5)) * reached for side in (own, others)]
        assert (np.concatenate([own, others]) - at) @ (np.concatenate(sides) - at) <= 1e-9 * (1 + total)


def test_a_projection_whose_sums_meet_at_a_knot():
    for found in project(np.array([1.0, 0.0]), np.array([1.0, 0.0]), 5.0):
        assert found.tolist() == [1, 0]


@pytest.mark.parametrize("loss", ["ww", "cs", "maxent", "max_margin"])
@pytest.mark.parametrize("shift", [-300.0, 300.0])
def test_only_differences_of_scores_count(loss, shift):
    for seed in range(10):
        row = Row(loss, seed, 2.0)
        best, moved = (
            row.problem.solve_row(scores, row.alpha, row.y, 3.0, 2.0)
            for scores in (10 * row.scores, 10 * row.scores + shift)
        )
        np.testing.assert_allclose(moved, best, atol=1e-9)


def test_scores_at_the_margin_move_nothing():
    assert PROBLEMS["cs"].solve_row(np.array([1.0, 0.0, 0.0]), np.zeros(3), 0, 1.0, 1.0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [2, 3, 4, 7])
def test_one_column_per_class_or_pair(loss, K):
    problem = PROBLEMS[loss]
    assert problem.columns(K) == (len(list(combinations(range(K), 2))) if loss.startswith("ovo_") else K)
    at_zero = problem.losses(np.zeros((1, problem.columns(K))), np.zeros(1, int))[0]
    parts = {"binary": K - 1 if loss.startswith("ovo_") else K, "sparse_binary": K}.get(problem.kernel, 1)
    assert problem.loss_at_zero(K) == pytest.approx(at_zero / parts)


def test_what_is_offered_follows_from_the_entries():
    assert list(ESTIMATORS) == list(PROBLEMS) == list(ENTRIES)
    families = [type(problem).__module__ for problem in PROBLEMS.values()]
    assert families == sorted(families, key=families.index)
    for name, entry in ENTRIES.items():
        assert entry.problem is PROBLEMS[name] and entry.problem.name == name
        assert entry.parameter == name.removeprefix("ovo_").removeprefix("ppd_")
        assert PROBLEMS[name].usual_support(9) == (PROBLEMS[name].typical_support or 9)


def test_every_family_of_kernels():
    kernels = {name: problem.kernel for name, problem in PROBLEMS.items()}
    assert {name for name, kernel in kernels.items() if kernel == "sparse_binary"} == {
        "ppd_hinge",
        "ppd_squared_hinge",
    }
    assert kernels["maxent"] == "maximum_entropy" and kernels["max_margin"] == "max_margin"
    assert set(kernels.values()) == {"coupled", "binary", "maximum_entropy", "sparse_binary", "max_margin"}


@pytest.mark.parametrize("gamma", [0.2, 0.9])
def test_the_reinforced_loss_divides_between_the_own_class_and_the_others(gamma):
    problem, scores = Reinforced(gamma), np.array([[0.5, -2.0, 1.5]])
    assert problem.gamma == gamma
    assert problem.losses(scores, np.array([0]))[0] == pytest.approx(gamma * 1.5 + (1 - gamma) * 2.5)


def coefficients_of_a_step(loss, scores):
    """What a row of class 0 adds to each column of the weights in its first step."""
    problem = PROBLEMS[loss]
    best = problem.solve_row(scores, np.zeros(scores.size), 0, 1.0, 2.0)
    return problem.coefficients(best[None], np.zeros(1, int))[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_sparse_if_a_row_leaves_some_classes_alone(loss):
    scores = 5 * np.random.default_rng(0).normal(size=PROBLEMS[loss].columns(12))
    used = np.count_nonzero(coefficients_of_a_step(loss, scores))
    assert used > 0 and PROBLEMS[loss].sparse_weights == (used < scores.size)


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_are_separate_if_the_score_of_one_does_not_move_the_others(loss):
    steps = 50 * np.eye(PROBLEMS[loss].columns(6))
    before = coefficients_of_a_step(loss, 0 * steps[0])
    moved = np.array([coefficients_of_a_step(loss, step) != before for step in (*steps, *-steps)])
    assert moved.any() and PROBLEMS[loss].separate == (not moved[np.concatenate([steps, steps]) == 0].any())


@pytest.mark.parametrize(
    ("formulas", "given"),
    [
        (Reinforced, {"gamma": 0.2}),
        (MaxMargin, {"lam": 0.3, "tau": 2.0}),
        (SparseHinge, {"lam": 0.3, "tau": 2.0, "draws": 5}),
    ],
)
def test_parameters_are_what_the_formulas_were_given(formulas, given):
    assert formulas(**given).parameters == given


@pytest.mark.parametrize("loss", LOSSES)
def test_defaults_are_those_of_the_estimator(loss):
    defaults = make(loss).get_params() | {"draws": 0}  # all features; None in PPDSparse
    assert PROBLEMS[loss].parameters == {name: defaults[name] for name in PROBLEMS[loss].parameter_names}


@pytest.mark.parametrize("loss", ["mmr", "rm", "atm", "ats"])
@pytest.mark.parametrize("distance", [0.5, 10.0, 1000.0])
def test_a_row_that_only_misses_its_own_margin_moves_one_variable(loss, distance):
    """The step is as long as if it were the only variable, however far the other classes are beyond their margins."""
    problem, k = PROBLEMS[loss], 4.0
    target = 2.0 if loss == "rm" else 1.0
    best = problem.solve_row(np.array([target - distance, -1.0, -60.0]), np.zeros(3), 0, k, 1e4)
    np.testing.assert_allclose(best, [distance / (k * (1 - 1 / 3)), 0, 0], rtol=1e-12)
