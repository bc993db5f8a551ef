"""The best classes: the same codes and bits as sorting all scores, however the weights are stored."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.model import LinearModel
from manyclass.model.weights import JoinedWeights

K, FEATURES = 1500, 60


def common_words(rng, K=K, dtype=np.float32):
    """Weights of a few features that nearly all classes have, of some with many, and of most with few."""
    density = np.concatenate([np.full(6, 0.9), np.full(6, 0.2), np.full(FEATURES - 12, 0.01)])
    weights = rng.normal(size=(FEATURES, K)) * (rng.random((FEATURES, K)) < density[:, None])
    return weights.astype(dtype)


def rows_of(rng, dtype=np.float32, n=40):
    """Rows of some features each, the common ones often; one row without any."""
    chosen = rng.random((n, FEATURES)) < np.linspace(0.5, 0.05, FEATURES)
    chosen[7] = False
    chosen[8] = np.arange(FEATURES) == 0
    chosen[9] = np.arange(FEATURES) == FEATURES - 1
    return sp.csr_matrix((rng.normal(size=chosen.shape) * chosen).astype(dtype))


def best_of_all(model, X, k):
    scores = model.scores(X)
    codes = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return codes, np.take_along_axis(scores, codes, axis=1)


def assert_best(model, X, k, n_jobs=2):
    codes, scores = model.topk(X, k, n_jobs=n_jobs)
    wanted_codes, wanted = best_of_all(model, X, k)
    np.testing.assert_array_equal(codes, wanted_codes)
    assert scores.tobytes() == wanted.tobytes()


def layouts(weights):
    """The same weights, stored in all ways that keep them as they are."""
    sparse = sp.csr_matrix(weights)
    bounds = [0, 1, 700, 700, K]
    halves = [sparse[:, begin:end] if begin < 700 else weights[:, begin:end] for begin, end in pairwise(bounds)]
    return {"dense": weights, "sparse": sparse, "joined": JoinedWeights(halves)}


@pytest.mark.parametrize("k", [1, 2, 5, 31, 33, 200, K])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "sparse", "joined"])
def test_the_best_classes_are_those_of_all_scores(layout, dtype, k):
    rng = np.random.default_rng(0)
    weights = layouts(common_words(rng, dtype=dtype))[layout]
    model = LinearModel(weights, rng.normal(size=K).astype(dtype), np.arange(K))
    assert_best(model, rows_of(rng, dtype), k)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("k", [1, 5, 40, K])
def test_the_best_classes_of_compressed_models(dtype, wide, k):
    rng = np.random.default_rng(10)
    weights = common_words(rng)
    intercept = rng.normal(size=K).astype(np.float32)
    intercept[rng.random(K) < 0.1] = -np.inf
    model = LinearModel(weights, intercept, np.arange(K)).compress(dtype)
    if wide:  # as for more than 65,536 classes
        model.weights = replace(model.weights, indices=model.weights.indices.astype(np.int32))
    X = rows_of(rng)
    assert_best(model, X, k)
    np.testing.assert_allclose(model.scores(X), X @ model.matrix + intercept, rtol=1e-5, atol=1e-5)
    joined = replace(model, weights=JoinedWeights([model.weights, model.weights]), classes=np.arange(2 * K))
    joined.intercept = np.concatenate([intercept, intercept])
    assert_best(joined, X, k)


def test_all_layouts_threads_and_batches_give_the_same_bits():
    rng = np.random.default_rng(1)
    found = layouts(common_words(rng))
    intercept, X = rng.normal(size=K).astype(np.float32), rows_of(rng, n=100)
    results = []
    for weights in found.values():
        model = LinearModel(weights, intercept, np.arange(K))
        results += [model.topk(X, 5, n_jobs=jobs) for jobs in (1, 2, 3)]
        alone = [model.topk(X[i], 5) for i in range(X.shape[0])]
        results.append(tuple(np.concatenate(column) for column in zip(*alone, strict=True)))
        assert model.scores(X).tobytes() == LinearModel(found["dense"], intercept, np.arange(K)).scores(X).tobytes()
    for codes, scores in results:
        np.testing.assert_array_equal(codes, results[0][0])
        assert scores.tobytes() == results[0][1].tobytes()


def test_scores_are_the_product_with_the_weights():
    rng = np.random.default_rng(2)
    weights, X = common_words(rng, dtype=np.float64), rows_of(rng, np.float64)
    intercept = rng.normal(size=K)
    for stored in layouts(weights).values():
        scores = LinearModel(stored, intercept, np.arange(K)).scores(X)
        np.testing.assert_allclose(scores, X @ weights + intercept, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", ["dense", "sparse", "joined"])
@pytest.mark.parametrize("k", [1, 5, 20, K])
def test_of_equal_scores_the_lower_class_comes_first(layout, k):
    rng = np.random.default_rng(3)
    weights = np.sign(common_words(rng))  # small integers: ties in nearly every row
    X = rows_of(rng)
    X.data[:] = 1
    for intercept in (np.zeros(K, np.float32), rng.integers(0, 3, K).astype(np.float32)):
        assert_best(LinearModel(layouts(weights)[layout], intercept, np.arange(K)), X, k)


@pytest.mark.parametrize("k", [1, 5, K])
def test_weights_that_are_all_zero_leave_the_intercepts(k):
    rng = np.random.default_rng(4)
    X = rows_of(rng)
    for weights in (sp.csr_matrix((FEATURES, K), dtype=np.float32), np.zeros((FEATURES, K), np.float32)):
        for intercept in (np.zeros(K, np.float32), rng.normal(size=K).astype(np.float32)):
            assert_best(LinearModel(weights, intercept, np.arange(K)), X, k)


@pytest.mark.parametrize("trained", [0, 3, K - 3])
@pytest.mark.parametrize("k", [1, 5, K])
def test_classes_never_trained_come_last(trained, k):
    rng = np.random.default_rng(5)
    weights = common_words(rng)
    intercept = rng.normal(size=K).astype(np.float32)
    untrained = rng.permutation(K)[trained:]
    weights[:, untrained] = 0
    intercept[untrained] = -np.inf
    for stored in layouts(weights).values():
        model = LinearModel(stored, intercept, np.arange(K))
        assert_best(model, rows_of(rng), k)


def test_large_and_tiny_values_do_not_deceive_the_estimates():
    rng = np.random.default_rng(6)
    weights = common_words(rng)
    weights[0] *= np.float32(1e6)  # one feature hides the differences that the others make
    weights[1:6, :] *= np.float32(1e-4)
    X = rows_of(rng)
    X.data[::3] *= np.float32(1e-5)
    for intercept in (np.zeros(K, np.float32), rng.normal(size=K).astype(np.float32)):
        assert_best(LinearModel(sp.csr_matrix(weights), intercept, np.arange(K)), X, 5)


@pytest.mark.parametrize("factor", [1e-42, 1e-30, 1e30, 1e35])
def test_at_the_ends_of_what_float32_can_hold(factor):
    rng = np.random.default_rng(11)
    weights = (common_words(rng, dtype=np.float64) * factor).astype(np.float32)
    X = rows_of(rng)
    for intercept in (np.zeros(K, np.float32), (factor * rng.normal(size=K)).astype(np.float32)):
        assert_best(LinearModel(sp.csr_matrix(weights), intercept, np.arange(K)), X, 5)


def test_scores_that_overflow_give_classes_nevertheless():
    rng = np.random.default_rng(12)
    weights = (common_words(rng, dtype=np.float64) * 1e37).astype(np.float32)
    X = rows_of(rng) * np.float32(100)
    for stored in layouts(weights).values():
        with np.errstate(all="ignore"):
            codes, _ = LinearModel(stored, np.zeros(K, np.float32), np.arange(K)).topk(X, 5)
        assert ((codes >= 0) & (codes < K)).all()


def test_many_classes_that_differ_by_less_than_the_estimates_tell():
    rng = np.random.default_rng(7)
    weights = common_words(rng)
    weights[0] = 1 + 1e-6 * rng.normal(size=K)
    model = LinearModel(sp.csr_matrix(weights), np.zeros(K, np.float32), np.arange(K))
    assert_best(model, sp.csr_matrix(np.eye(1, FEATURES, dtype=np.float32)), 5)


def test_indices_of_any_order_and_width(k=5):
    rng = np.random.default_rng(8)
    sorted_ = sp.csr_matrix(common_words(rng))
    shuffled = sorted_.copy()
    for j in range(FEATURES):
        part = slice(shuffled.indptr[j], shuffled.indptr[j + 1])
        order = rng.permutation(part.stop - part.start)
        shuffled.indices[part], shuffled.data[part] = shuffled.indices[part][order], shuffled.data[part][order]
    shuffled.has_sorted_indices = False
    wide = sorted_.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    X, intercept = rows_of(rng), np.zeros(K, np.float32)
    X_wide = X.copy()
    X_wide.indices, X_wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    codes, scores = LinearModel(sorted_, intercept, np.arange(K)).topk(X, k)
    for weights in (shuffled, wide):
        for given in (X, X_wide, X.toarray()):
            found = LinearModel(weights, intercept, np.arange(K)).topk(given, k)
            np.testing.assert_array_equal(found[0], codes)
            np.testing.assert_array_equal(found[1], scores)


def test_new_weights_and_intercepts_are_noticed():
    rng = np.random.default_rng(9)
    model = LinearModel(sp.csr_matrix(common_words(rng)), np.zeros(K, np.float32), np.arange(K))
    X = rows_of(rng)
    before = model.topk(X, 3)
    model.weights = -model.weights
    assert_best(model, X, 3)
    assert (model.topk(X, 3)[0] != before[0]).any()
    model.intercept = rng.normal(size=K).astype(np.float32)
    assert_best(model, X, 3)
    assert_best(pickle.loads(pickle.dumps(model)), X, 3)
