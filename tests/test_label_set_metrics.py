import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, ndcg_score

from manyclass.metrics import label_f1_scores, precisions_at_k, propensities, ranking_metrics

MEASURES = ("precision", "ndcg", "recall", "coverage", "ps_precision", "ps_ndcg")


@st.composite
def predictions(draw):
    """Label sets, the best labels per row (some of them -1), propensities, and numbers of unknown labels."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, K = draw(st.integers(1, 12)), draw(st.integers(1, 9))
    k = draw(st.integers(1, K))
    labels = sp.csr_matrix((rng.random((n, K)) < draw(st.sampled_from([0.1, 0.4, 0.9]))).astype(np.float32))
    topk = np.array([rng.permutation(K)[:k] for _ in range(n)])
    topk[rng.random(topk.shape) < 0.1] = -1
    return labels, topk, rng.uniform(0.05, 1, K), rng.integers(0, 3, n)


def by_definition(labels, topk, k, propensity, unknown):
    """Compute each measure by its formula, row by row."""
    Y, n = labels.toarray() != 0, labels.shape[0]
    precision = ndcg = recall = ps_hits = best_ps_hits = ps_gain = best_ps_gain = 0.0
    for own, best, more in zip(Y, topk[:, :k], unknown, strict=True):
        size = own.sum() + more
        if size == 0:
            continue
        hit = np.array([label >= 0 and own[label] for label in best])
        weight = np.where(hit, 1 / propensity[best], 0)
        discount = 1 / np.log2(np.arange(2, k + 2))
        ideal = discount[: min(k, size)].sum()
        heaviest = np.sort(np.append(1 / propensity[own], np.full(more, 1 / propensity.min())))[::-1][:k]
        precision += hit.sum() / k / n
        recall += hit.sum() / size / n
        ndcg += (hit * discount).sum() / ideal / n
        ps_hits, best_ps_hits = ps_hits + weight.sum(), best_ps_hits + heaviest.sum()
        ps_gain += (weight * discount).sum() / ideal
        best_ps_gain += (heaviest * discount[: heaviest.size]).sum() / ideal
    found = {label for own, best in zip(Y, topk[:, :k], strict=True) for label in best if label >= 0 and own[label]}
    return {
        "precision": precision,
        "ndcg": ndcg,
        "recall": recall,
        "coverage": len(found) / max(1, Y.any(axis=0).sum()),
        "ps_precision": ps_hits / best_ps_hits if best_ps_hits else 0,
        "ps_ndcg": ps_gain / best_ps_gain if best_ps_gain else 0,
    }


@given(predictions())
def test_every_measure_is_its_formula(drawn):
    labels, topk, propensity, unknown = drawn
    ks = range(1, topk.shape[1] + 1)
    found = ranking_metrics(labels, topk, ks, propensity=propensity, unknown=unknown)
    for k in ks:
        for name, expected in by_definition(labels, topk, k, propensity, unknown).items():
            assert getattr(found, name)[k] == pytest.approx(expected, abs=1e-12), (name, k)


def test_a_worked_example():
    labels = sp.csr_matrix([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    topk = np.array([[0, 2], [3, 2], [1, 0]])
    found = ranking_metrics(labels, topk, [1, 2], propensity=[0.5, 0.25, 1, 1])
    second = 1 / np.log2(3)
    assert found.precision == pytest.approx({1: 1 / 3, 2: 2 / 6})
    assert found.recall == pytest.approx({1: (1 / 2) / 3, 2: (1 / 2 + 1) / 3})
    assert found.ndcg == pytest.approx({1: 1 / 3, 2: (1 / (1 + second) + second) / 3})
    assert found.coverage == pytest.approx({1: 1 / 3, 2: 2 / 3})
    # Label 0 weighs 2, label 1 weighs 4; the best possible answers are {1}, {2} and {1, 0}, {2}.
    assert found.ps_precision == pytest.approx({1: 2 / (4 + 1), 2: (2 + 1) / (4 + 2 + 1)})
    best = (4 + 2 * second) / (1 + second) + 1
    assert found.ps_ndcg == pytest.approx({1: 2 / 5, 2: (2 / (1 + second) + second) / best})


@pytest.mark.parametrize("k", [1, 3, 5])
def test_ndcg_agrees_with_scikit_learn(k):
    rng = np.random.default_rng(0)
    Y, scores = rng.random((200, 12)) < 0.3, rng.normal(size=(200, 12))
    best = np.argsort(-scores, axis=1)
    expected = ndcg_score(Y, scores, k=k, ignore_ties=True)
    assert ranking_metrics(sp.csr_matrix(Y), best, [k]).ndcg[k] == pytest.approx(expected)


@given(st.integers(0, 10**6))
def test_f1_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    Y, found = rng.random((15, 7)) < 0.3, rng.random((15, 7)) < 0.3
    Y[0, 0] = True
    occurs = (Y | found).any(axis=0)  # scikit-learn counts labels that occur nowhere as failures
    micro, macro = label_f1_scores(sp.csr_matrix(Y), sp.csr_matrix(found))
    assert micro == pytest.approx(f1_score(Y, found, average="micro", zero_division=0))
    assert macro == pytest.approx(f1_score(Y[:, occurs], found[:, occurs], average="macro", zero_division=0))


def test_unknown_labels_are_missed_ones():
    labels = sp.csr_matrix([[1, 0], [0, 1]])
    alone, more = (ranking_metrics(labels, [[0], [1]], [1], unknown=unknown) for unknown in (None, [1, 0]))
    assert (alone.recall[1], more.recall[1]) == (1, 0.75)
    assert alone.precision == more.precision == more.ndcg == {1: 1}
    assert label_f1_scores(labels, labels, unknown=[1, 0]) == (pytest.approx(4 / 5), 1)


def test_rows_without_labels_count_as_missed():
    labels = sp.csr_matrix([[1, 0], [0, 0]])
    found = ranking_metrics(labels, [[0], [0]], [1], propensity=[1, 1])
    assert (found.precision[1], found.ndcg[1], found.recall[1]) == (0.5, 0.5, 0.5)
    assert (found.coverage[1], found.ps_precision[1], found.ps_ndcg[1]) == (1, 1, 1)
    nothing = ranking_metrics(sp.csr_matrix((3, 2)), np.zeros((3, 1), int), [1], propensity=[1, 1])
    assert all(getattr(nothing, name) == {1: 0} for name in MEASURES)
    assert label_f1_scores(sp.csr_matrix((3, 2)), sp.csr_matrix((3, 2))) == (0, 0)


def test_equal_propensities_do_not_change_the_measures():
    rng = np.random.default_rng(1)
    labels = sp.csr_matrix(rng.random((50, 8)) < 0.5)
    labels = labels[labels.getnnz(axis=1) >= 3]
    topk = np.array([rng.permutation(8)[:3] for _ in range(labels.shape[0])])
    found = ranking_metrics(labels, topk, [1, 3], propensity=np.full(8, 0.3))
    assert found.ps_precision == pytest.approx(found.precision)
    assert found.ps_ndcg == pytest.approx(found.ndcg)


def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(2)
    n, K = 5000, 300
    labels = sp.random(n, K, 0.02, "csr", random_state=0)
    topk = rng.integers(0, K, (n, 5))
    p = rng.uniform(0.1, 1, K)
    one, three = (ranking_metrics(labels, topk, range(1, 6), propensity=p, n_jobs=jobs) for jobs in (1, 3))
    assert one == three
    found = sp.random(n, K, 0.02, "csr", random_state=1)
    assert label_f1_scores(labels, found, n_jobs=1) == label_f1_scores(labels, found, n_jobs=3)


def test_stored_zeros_duplicates_and_order_do_not_matter():
    tidy = sp.csr_matrix([[1, 0, 1], [0, 1, 0]])
    untidy = sp.csr_matrix(([1, 1, 1, 0, 1], [2, 0, 0, 1, 1], [0, 4, 5]), (2, 3))
    topk = np.array([[2, 1], [0, 1]])
    assert ranking_metrics(untidy, topk, [1, 2]) == ranking_metrics(tidy, topk, [1, 2])
    assert label_f1_scores(untidy, tidy) == (1, 1)
    assert untidy.nnz == 5 and untidy.indices.tolist() == [2, 0, 0, 1, 1]


def test_precisions_at_k_are_those_of_the_ranking():
    labels, topk = sp.csr_matrix([[1, 0, 1], [0, 1, 0]]), [[2, 1], [0, -1]]
    assert precisions_at_k(labels, topk, [1, 2]) == [0.5, 0.25]


def test_propensities_follow_the_formula_of_their_paper():
    p = propensities([0, 1, 100, 10**6], 10**6)
    C = (np.log(10**6) - 1) * 2.5**0.55
    assert p == pytest.approx([1 / (1 + C * np.exp(-0.55 * np.log(N + 1.5))) for N in (0, 1, 100, 10**6)])
    assert (np.diff(p) > 0).all()
    assert propensities([1, 2], 2).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("topk", "options", "message"),
    [
        ([[0, 1]], {}, "do not match"),
        ([[0, 3], [0, 1]], {}, "0 to 2"),
        ([[0, -2], [0, 1]], {}, "0 to 2"),
        ([[0.0, 1.0], [0, 1]], {}, "label codes"),
        ([[0], [1]], {}, "between 1 and 1"),
        ([[0, 1], [0, 1]], {"unknown": [1]}, "unknown"),
        ([[0, 1], [0, 1]], {"unknown": [1, -1]}, "unknown"),
        ([[0, 1], [0, 1]], {"propensity": [1, 1]}, "3 numbers"),
        ([[0, 1], [0, 1]], {"propensity": [1, 0, 1]}, "in \\(0, 1\\]"),
    ],
)
def test_invalid_arguments_are_rejected(topk, options, message):
    with pytest.raises(ValueError, match=message):
        ranking_metrics(sp.csr_matrix(np.eye(2, 3)), topk, [2], **options)


def test_wrong_counts_and_shapes_are_rejected():
    with pytest.raises(ValueError, match="count"):
        propensities([-1, 2], 5)
    with pytest.raises(ValueError, match="do not match"):
        label_f1_scores(sp.csr_matrix((2, 3)), sp.csr_matrix((2, 4)))
