"""Matches of leagues reach the optimum of whole rows, with the same bits on any number of workers."""

import queue
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from losses import slow_if, text_like
from oracle import optimum

from manyclass import MulticlassSVC
from manyclass.data import check_matrix, make_text_like
from manyclass.problems import PROBLEMS
from manyclass.solvers import CoupledRows, Leagues, SolverOptions, StopRule, TrainingSet
from manyclass.solvers.layout import make_layout, tail_rows
from manyclass.solvers.leagues import LISTED
from manyclass.solvers.schedule import divide_classes, matchdays, positions

TIGHT = {"tol": 1e-8, "dtype": "float64", "max_iter": 100_000, "fit_intercept": False}
SOME_LEAGUES = [1, 2, 3, 7]


def training_set(X, y, C=None, constant=0.0):
    C = np.ones(len(y)) if C is None else C
    return TrainingSet(check_matrix(X), y.astype(np.int32), C, int(y.max()) + 1, constant)


def small():
    return training_set(*text_like(60, 40, 7, seed=1))


def with_rare_features():
    """Features of one row (single), of two (tail) and of more (head)."""
    X, y = text_like(640, 900, 620, seed=2, nnz=5)
    rows = np.bincount(X.indices, minlength=900)
    most = tail_rows(620, LISTED)
    assert most == 2 and (rows == 1).any() and ((rows > 1) & (rows <= most)).any() and (rows > most).any()
    assert min(heads_and_tails(training_set(X, y))) > 0
    return training_set(X, y, constant=1.0)


def with_constant():
    return replace(small(), constant=1.0)


def heads_and_tails(data):
    layout = make_layout(data, np.dtype("float64"), tail_rows(data.n_classes, LISTED))
    return layout.heads, layout.tails


def make(data, dtype="float64", threads=1, leagues=None, **more):
    return Leagues(PROBLEMS["ww"], data, SolverOptions(np.dtype(dtype), threads=threads, leagues=leagues), **more)


def train(solver, rule):
    """Advance until a certificate meets the rule."""
    while True:
        if solver.advance(rule).ready:
            found = solver.certificate()
            if rule.met(found):
                return found


def outcome(solver, rule):
    """Return everything that a fit reads from a solver, as bytes."""
    found = train(solver, rule)
    state = {name: array.tobytes() for name, array in solver.state().items()}
    weights = sp.csr_matrix(solver.weights())
    return found, state, weights.indptr.tobytes(), weights.indices.tobytes(), weights.data.tobytes()


# ---- The optimum


def check(X, y, sample_weight=None, **parameters):
    """Compare with whole rows and with a general convex solver."""
    parameters = TIGHT | parameters
    ours, rows = (
        MulticlassSVC("ww", solver=solver, **parameters).fit(X, y, sample_weight) for solver in ("leagues", "auto")
    )
    C = np.full(len(y), parameters.get("C", 1.0)) * (1 if sample_weight is None else sample_weight)
    best = optimum("ww", X, y, C, int(y.max()) + 1, float(parameters["fit_intercept"]))
    for found in (ours.certificate_, rows.certificate_):
        assert found.primal == pytest.approx(best, rel=1e-6)
        assert found.dual == pytest.approx(best, rel=1e-6)
    assert ours.certificate_.gap <= 1e-8
    np.testing.assert_allclose(ours.coef_, rows.coef_, atol=1e-3)


@pytest.mark.parametrize("C", slow_if([0.02, 1.0, 20.0], 20.0))
def test_equals_independent_solvers(C):
    check(*text_like(60, 40, 5, seed=1), C=C)


def test_with_intercept_and_sample_weights():
    X, y = text_like(60, 40, 5, seed=2)
    check(X, y, np.random.default_rng(0).uniform(0.1, 4, 60), fit_intercept=True)


def test_with_empty_rows():
    X, y = text_like(40, 30, 4, seed=3)
    X = sp.csr_matrix(sp.diags((np.arange(40) % 5 > 0).astype(float)) @ X)
    X.eliminate_zeros()
    assert (np.diff(X.indptr) == 0).sum() == 8
    check(X, y)


def test_with_classes_without_rows():
    X, y = text_like(60, 40, 6, seed=4)
    check(X, y, (y != 2).astype(float))


def test_one_row_per_class():
    check(*text_like(6, 30, 6, seed=6))


def test_the_same_row_in_two_classes():
    X, y = text_like(20, 30, 4, seed=4)
    check(sp.vstack([X, X]).tocsr(), np.concatenate([y, (y + 1) % 4]))


def test_dense_rows_with_negative_values():
    rng = np.random.default_rng(8)
    check(rng.normal(size=(40, 6)) / 3, rng.integers(0, 3, 40))


@pytest.mark.parametrize("leagues", SOME_LEAGUES)
def test_any_number_of_leagues(leagues):
    data = small()
    found = train(make(data, leagues=leagues), StopRule("gap", 1e-9))
    assert found.primal == pytest.approx(optimum("ww", data.X.as_csr(), data.codes, data.C, 7), rel=1e-6)


@pytest.mark.parametrize("leagues", slow_if([33, 40], 40))
def test_more_leagues_than_are_usual(leagues):
    X, y = text_like(200, 120, 50, seed=7)
    usual, one, two = (
        MulticlassSVC("ww", solver="leagues", **TIGHT | {"tol": 1e-6}, **more).fit(X, y)
        for more in ({}, {"leagues": leagues, "n_jobs": 1}, {"leagues": leagues, "n_jobs": 2})
    )
    assert one.certificate_.primal == pytest.approx(usual.certificate_.primal, rel=1e-5)
    assert one.certificate_ == two.certificate_ != usual.certificate_
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.model_.settings["leagues"] == leagues


@pytest.mark.parametrize("leagues", [1, 7])
def test_features_of_one_row_of_a_few_and_of_many(leagues):
    data = with_rare_features()
    rule = StopRule("gap", 3e-7)
    rows = CoupledRows(PROBLEMS["ww"], data, SolverOptions(np.dtype("float64")))
    found, expected = train(make(data, leagues=leagues), rule), train(rows, rule)
    assert found.primal == pytest.approx(expected.primal, rel=1e-6)
    assert found.dual == pytest.approx(expected.dual, rel=1e-6)


@pytest.mark.parametrize("leagues", SOME_LEAGUES)
def test_stops_by_violation(leagues):
    solver = make(small(), leagues=leagues)
    found = train(solver, StopRule("kkt", 1e-3))
    assert 0 < found.violation <= 1e-3


@pytest.mark.parametrize("leagues", SOME_LEAGUES)
def test_shrinking_does_not_change_the_optimum(leagues):
    rule = StopRule("gap", 1e-8)
    one, two = (train(make(small(), leagues=leagues, shrinking=shrinking), rule) for shrinking in (False, True))
    assert one.primal == pytest.approx(two.primal, rel=1e-7)


# ---- Intercepts


@pytest.mark.parametrize("seed", [0, 1])
def test_an_intercept_costs_few_passes(seed):
    X, y, _, _ = make_text_like("bench-1k", n=500, n_test=1, K=60, d=2000, nnz=20, seed=seed)
    with_one, without = (
        MulticlassSVC("ww", solver="leagues", leagues=4, fit_intercept=wanted).fit(X, y).n_iter_
        for wanted in (True, False)
    )
    assert with_one <= 1.3 * without


def divisions(data, passes):
    """Return how a solver divides the classes in the first full passes, without cheap passes in between."""
    solver, found = make(data, leagues=3, shrinking=False), []
    while len(found) < passes:
        if solver.advance(StopRule("gap", 1e-12)).pass_ended:
            members = [set(data.codes[solver._kernel.members(league)].tolist()) for league in range(3)]
            found.append([league for c in range(7) for league in range(3) if c in members[league]])
    return np.array(found)


def test_classes_change_leagues_if_there_is_a_constant_feature():
    found = divisions(with_constant(), 6)
    assert len({tuple(division) for division in found.tolist()}) > 3
    assert all(sorted(np.bincount(division)) == [2, 2, 3] for division in found)


def test_classes_stay_in_their_leagues_without_a_constant_feature():
    assert len({tuple(division) for division in divisions(small(), 6).tolist()}) == 1


def test_leagues_that_do_not_exist_are_rejected():
    kernel = make(small(), leagues=3)._kernel
    for division in ([0] * 6, [0] * 8):
        with pytest.raises(ValueError, match=r"league: . entries instead of 7"):
            kernel.divide(np.array(division, np.int32))
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match=r"league: entry 6 .* outside 0 to 2"):
            kernel.divide(np.array([0] * 6 + [wrong], np.int32))


# ---- Starts


@pytest.mark.parametrize("leagues", SOME_LEAGUES)
def test_starts_from_dual_variables(leagues):
    data, rule = small(), StopRule("gap", 1e-7)
    first = make(data, leagues=leagues)
    expected = train(first, rule)
    again = make(data, leagues=leagues)
    again.load_state(first.state())
    said = again.advance(rule)
    assert said.ready and said.epochs == 0
    assert again.certificate() == expected
    # Also from those of whole rows, to a smaller tolerance.
    rows = CoupledRows(PROBLEMS["ww"], data, SolverOptions(np.dtype("float64")))
    train(rows, rule)
    other = make(data, leagues=leagues)
    other.load_state(rows.state())
    assert train(other, StopRule("gap", 1e-9)).primal == pytest.approx(expected.primal, rel=1e-6)


def test_a_smaller_C_brings_variables_back_to_the_feasible_set():
    X, y = text_like(80, 40, 5, seed=6)
    model, fresh = (MulticlassSVC("ww", solver="leagues", **TIGHT | {"tol": 1e-6}, warm_start=True) for _ in range(2))
    model.set_params(C=10.0).fit(X, y).set_params(C=0.1).fit(X, y)
    fresh.set_params(C=0.1).fit(X, y)
    assert model.certificate_.dual <= fresh.certificate_.primal * (1 + 1e-12)
    assert model.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=1e-5)


def test_unsupported_problems_are_rejected():
    X, y = text_like(40, 30, 4)
    with pytest.raises(ValueError, match="solver='leagues' has no feature_reduction"):
        MulticlassSVC("ww", solver="leagues", feature_reduction=True).fit(X, y)
    with pytest.raises(ValueError, match="for 'ww', not for 'cs'"):
        Leagues(PROBLEMS["cs"], small(), SolverOptions())
    with pytest.raises(ValueError, match="7 classes cannot be divided into 8 leagues"):
        make(small(), leagues=8)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"leagues": 0}, "'leagues' parameter of MulticlassSVC must be"),
        ({"leagues": 2.5}, "'leagues' parameter of MulticlassSVC must be"),
        ({"leagues": 5}, "4 classes cannot be divided into 5 leagues; choose between 1 and 4"),
        ({"leagues": 2, "solver": "auto"}, "leagues=2 requires loss='ww' and solver='leagues', got .* solver='auto'"),
        ({"leagues": 2, "loss": "llw"}, "leagues=2 requires loss='ww' and solver='leagues', got loss='llw'"),
    ],
)
def test_invalid_numbers_of_leagues_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        MulticlassSVC(**{"solver": "leagues"} | parameters).fit(*text_like(40, 30, 4))


def test_the_alternating_algorithm_is_still_found_under_its_old_name():
    X, y = text_like(40, 30, 4)
    with pytest.warns(DeprecationWarning, match="use solver='alternating'"):
        old = MulticlassSVC("llw", solver="leagues", C=10.0).fit(X, y)
    new = MulticlassSVC("llw", solver="alternating", C=10.0).fit(X, y)
    np.testing.assert_array_equal(old.coef_, new.coef_)
    assert old.n_iter_ == new.n_iter_
    assert old.get_params()["solver"] == "leagues"


# ---- The weights of a league


def parcels(solver):
    return [solver._kernel.pack(league).tobytes() for league in range(solver._leagues)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("problem", [small, with_rare_features])
def test_a_parcel_is_the_league(problem, dtype):
    one, two = (make(problem(), dtype, leagues=3) for _ in range(2))
    for _ in range(2 * matchdays(3)):
        one.advance(StopRule("gap", 1e-3))
    two._kernel.divide(one._divided())
    for league in range(3):
        assert not two._kernel.here(league)
        two._kernel.unpack(league, np.frombuffer(parcels(one)[league], np.uint8))
        assert two._kernel.here(league)
    assert parcels(two) == parcels(one)
    untrained = parcels(make(problem(), dtype, leagues=3))
    assert all(len(parcel) > len(empty) for parcel, empty in zip(parcels(one), untrained, strict=True))


def test_damaged_parcels_are_rejected():
    solver = make(small(), leagues=2)
    solver.advance(StopRule("gap", 1e-3))
    kernel, whole = solver._kernel, solver._kernel.pack(0)
    with pytest.raises(ValueError, match="cut short"):
        kernel.unpack(0, whole[:-1])
    with pytest.raises(ValueError, match="do not belong to this problem"):
        kernel.unpack(0, np.append(whole, np.zeros(8, np.uint8)))
    # A feature starts with one bit per class, padded to whole vectors, so there are more bits than classes.
    other = whole.copy()
    other[0] = 255
    with pytest.raises(ValueError, match="no such class"):
        kernel.unpack(0, other)


def features_of(parcel, heads, tails, classes):
    """Yield the features in a parcel of float64: where each begins, the places of its classes, its weights."""
    bits, at = -(-classes // 8), 0  # a vector has eight classes
    for _ in range(heads):
        places = np.flatnonzero(np.unpackbits(parcel[at : at + bits], bitorder="little"))
        end = at + bits + 8 * places.size
        yield at, places, parcel[at + bits : end].copy().view(np.float64)
        at = end
    for _ in range(tails):
        count = int(parcel[at : at + 4].copy().view(np.int32)[0])
        places = parcel[at + 4 : at + 4 + 2 * count].copy().view(np.uint16)
        end = at + 4 + 10 * count
        yield at, places, parcel[at + 4 + 2 * count : end].copy().view(np.float64)
        at = end


def test_damaged_lists_of_rare_features_are_rejected():
    data, leagues = with_rare_features(), 3
    solver = make(data, leagues=leagues)
    solver.advance(StopRule("gap", 1e-3))
    classes = np.bincount(divide_classes(np.bincount(data.codes, minlength=data.n_classes), leagues))[0]
    parcel = solver._kernel.pack(0)
    heads, tails = heads_and_tails(data)
    at = next(at for at, places, _ in list(features_of(parcel, heads, tails, classes))[heads:] if places.size)
    for place in (classes, 65535):
        other = parcel.copy()
        other[at + 4 : at + 6] = np.array([place], np.uint16).view(np.uint8)
        with pytest.raises(ValueError, match="no such class"):
            solver._kernel.unpack(0, other)
    for count in (-1, 2**31 - 1):
        other = parcel.copy()
        other[at : at + 4] = np.array([count], np.int32).view(np.uint8)
        with pytest.raises(ValueError, match="cut short"):
            solver._kernel.unpack(0, other)


@pytest.mark.parametrize("refreshed", [False, True])
def test_weights_are_those_of_the_dual_variables(refreshed):
    data, leagues = with_rare_features(), 3
    solver = make(data, leagues=leagues)
    while solver.advance(StopRule("gap", 1e-9)).epochs < 2:
        pass
    if refreshed:
        solver.certificate()
    state = solver.state()
    alpha = sp.csr_matrix((state["values"], state["classes"], state["indptr"]), (len(data.codes), data.n_classes))
    sums = alpha.sum(axis=1).A1
    own = sp.csr_matrix((sums, (np.arange(len(sums)), data.codes)), alpha.shape)
    X = sp.hstack([data.X.as_csr(), np.full((len(sums), 1), data.constant)]).tocsc()
    shared = np.diff(X.indptr) > 1  # features of one row have no weights
    W = (X[:, shared].T @ (own - alpha)).toarray()
    league = solver._divided()
    for number in range(leagues):
        classes, rows = np.flatnonzero(league == number), np.flatnonzero(league[data.codes] == number)
        parcel, weights = solver._kernel.pack(number), defaultdict(list)
        for _, places, values in features_of(parcel, *heads_and_tails(data), len(classes)):
            for place, value in zip(places, values, strict=True):
                weights[place].append(value)
        np.testing.assert_allclose(parcel[-8 * len(rows) :].copy().view(np.float64), sums[rows], atol=1e-12)
        for place, c in enumerate(classes):
            one, two = (np.sort(values[np.abs(values) > 1e-9]) for values in (np.array(weights[place]), W[:, c]))
            np.testing.assert_allclose(one, two, atol=1e-12)


# ---- Any number of workers


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("problem", [small, with_constant, with_rare_features])
def test_the_same_bits_for_any_number_of_threads(problem, dtype):
    rule = StopRule("gap", 1e-2)
    found = [outcome(make(problem(), dtype, threads, leagues=7), rule) for threads in (1, 2, 4)]
    assert found[1:] == found[:1] * 2


class Table:
    """Connects workers in threads of one process: mailboxes, and a place for values to gather."""

    def __init__(self, size):
        self.size = size
        self.shown = [None] * size
        self.everyone = threading.Barrier(size)
        self._boxes = {}

    def box(self, *address):
        return self._boxes.setdefault(address, queue.Queue())


class Worker:
    """The `Peers` of one worker."""

    def __init__(self, table, rank):
        self.table, self.rank, self.size = table, rank, table.size
        self.sent = 0

    def gather(self, value):
        self.table.shown[self.rank] = value
        self.table.everyone.wait()
        found = list(self.table.shown)
        self.table.everyone.wait()
        return found

    gather_bytes = gather

    def send(self, to, tag, parcel):
        assert to != self.rank
        self.sent += 1
        self.table.box(self.rank, to, tag).put(parcel)

    def receive(self, source, tag):
        return self.table.box(source, self.rank, tag).get(timeout=60)


def side_by_side(workers, act):
    """Run `act` for all workers at the same time; return the results."""
    table = Table(workers)

    def one(rank):
        try:
            return act(Worker(table, rank))
        except BaseException:
            table.everyone.abort()
            raise

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, range(workers)))


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("problem", "leagues"), [(small, 2), (small, 7), (with_constant, 3), (with_constant, 7), (with_rare_features, 10)]
)
def test_workers_that_swap_leagues_give_the_bytes_of_a_single_worker(problem, leagues, workers):
    data, rule = problem(), StopRule("gap", 1e-2)
    expected = outcome(make(data, "float32", leagues=leagues), rule)

    def act(peers):
        return outcome(make(data, "float32", leagues=leagues, peers=peers), rule), peers.sent

    found = side_by_side(workers, act)
    assert [bits for bits, _ in found] == [expected] * workers
    assert (sum(sent for _, sent in found) > 0) == (workers > 1 and positions(leagues) > 1)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2), (5, 5)])
@pytest.mark.parametrize(("problem", "pieces"), [(small, 1), (small, 3), (small, 9), (with_constant, 12)])
def test_other_workers_resume_from_a_checkpoint(problem, pieces, before, after):
    """7 leagues have 4 positions: the fifth worker has none. A pass has 8 pieces."""
    data, rule = problem(), StopRule("gap", 1e-2 if problem is with_constant else 1e-5)
    expected = outcome(make(data, leagues=7), rule)

    def begin(peers):
        solver = make(data, leagues=7, peers=peers)
        for _ in range(pieces):
            said = solver.advance(rule)
        return repr(said), solver.checkpoint()

    def go_on(peers):
        solver = make(data, leagues=7, peers=peers)
        return repr(solver.restore([part for _, part in stopped])), outcome(solver, rule)

    stopped = side_by_side(before, begin)
    assert side_by_side(after, go_on) == [(stopped[0][0], expected)] * after
