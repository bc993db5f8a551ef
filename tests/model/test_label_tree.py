"""A tree over labels: exact scores of the labels it finds, all of them with a wide beam, the same tree for a seed."""

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp

from manyclass import OneVsRestSVC
from manyclass.model import LabelTree, LinearModel, ModelFileError, load_model, save_model
from manyclass.model.label_order import LabelOrder
from manyclass.model.label_tree import recall_of
from model.test_file import rewrite_tensors


def clustered(K, *, d=400, per_centre=8, dtype=np.float32, sparse=True, seed=0):
    """A model whose labels share features with others around a centre, and rows made of their features."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(d, size=(max(1, K // per_centre), 10))
    features = np.hstack([centres[rng.integers(len(centres), size=K)], rng.integers(d, size=(K, 12))])
    values = np.hstack([rng.gamma(2, 0.5, (K, 16)), -rng.gamma(2, 0.3, (K, 6))])
    weights = sp.csr_matrix((values.ravel(), (features.ravel(), np.repeat(np.arange(K), 22))), (d, K), dtype)
    own = features[rng.integers(K, size=60)][:, :16]
    X = sp.csr_matrix((rng.gamma(2, 0.5, own.size), (np.repeat(np.arange(60), 16), own.ravel())), (60, d), dtype)
    intercept = rng.normal(-0.5, 0.2, K).astype(dtype)
    return LinearModel(weights if sparse else weights.toarray(), intercept, np.arange(K)), X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(("K", "branching"), [(1, 2), (2, 2), (37, 2), (300, 3), (300, 7), (300, 16), (300, 400)])
def test_a_beam_as_wide_as_the_labels_is_exact(K, branching, sparse, dtype):
    model, X = clustered(K, sparse=sparse, dtype=dtype)
    tree = LabelTree.build(model, branching=branching)
    assert sorted(tree.order.labels.tolist()) == list(range(K))
    for k in {1, min(5, K), K}:
        codes, scores = tree.topk(X, k, beam=K)
        exact, their = model.topk(X, k)
        np.testing.assert_array_equal(codes, exact)
        np.testing.assert_array_equal(scores, their)
        assert codes.dtype == exact.dtype and scores.dtype == their.dtype
    assert tree.recall(X, 1, beam=K) == 1


def test_scores_are_exact_whatever_is_found():
    model, X = clustered(300)
    tree = LabelTree.build(model, branching=6)
    codes, scores = tree.topk(X, 5, beam=2)
    np.testing.assert_array_equal(scores, np.take_along_axis(model.scores(X), codes, axis=1))
    assert (np.diff(scores, axis=1) <= 0).all()
    assert all(len(set(row)) == 5 for row in codes.tolist())


def test_a_wider_beam_finds_more():
    model, X = clustered(2000)
    tree = LabelTree.build(model, branching=12)
    found = [tree.recall(X, 5, beam=beam) for beam in (1, 5, 20, 80, 2000)]
    assert found == sorted(found) and found[0] < 0.9 and found[2] > 0.8 and found[-1] == 1
    shuffled = LabelOrder(np.random.default_rng(0).permutation(2000).astype(np.int32), 12)
    assert LabelTree(model, shuffled).recall(X, 5, beam=5) < found[1], "clusters are no better than chance"


def test_a_beam_with_too_few_labels_is_widened():
    model, X = clustered(100)
    codes, _ = LabelTree.build(model, branching=3).topk(X, 90, beam=1)
    assert all(len(set(row)) == 90 for row in codes.tolist())


def test_a_seed_and_any_number_of_threads_give_one_tree():
    model, X = clustered(500)
    one, three = (LabelTree.build(model, branching=8, seed=7, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one.order.labels, three.order.labels)
    for mine, theirs in zip(one.topk(X, 5, beam=4, n_jobs=1), three.topk(X, 5, beam=4, n_jobs=3), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    other = LabelTree.build(model, branching=8, seed=8)
    assert (one.order.labels != other.order.labels).any()


@pytest.mark.parametrize("layout", ["array", "int64", "float64", "unsorted"])
def test_rows_of_any_layout(layout):
    model, X = clustered(120)
    tree = LabelTree.build(model, branching=6)
    given = X
    if layout == "array":
        given = X.toarray()
    elif layout == "float64":
        given = X.astype(np.float64)
    else:
        given = X.copy()
        if layout == "int64":
            given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
        else:
            given.indices[: given.indptr[1]] = given.indices[: given.indptr[1]][::-1]
            given.data[: given.indptr[1]] = given.data[: given.indptr[1]][::-1]
            given.has_sorted_indices = False
    np.testing.assert_array_equal(tree.topk(given, 3, beam=120)[0], model.topk(given, 3)[0])


def test_many_rows_are_searched_in_parts(monkeypatch):
    model, X = clustered(120)
    tree = LabelTree.build(model, branching=6)
    whole = tree.topk(X, 3)
    monkeypatch.setattr("manyclass.model.label_tree.ROWS_AT_ONCE", 7)
    for given in (X, X.toarray()):
        for mine, theirs in zip(tree.topk(given, 3), whole, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_labels_without_weights_and_untrained_ones():
    model, X = clustered(60)
    weights = model.weights.toarray()
    weights[:, ::7] = 0
    weights[:, 3] = -1
    model.weights = sp.csr_matrix(weights)
    model.intercept[::5] = -np.inf
    tree = LabelTree.build(model, branching=4)
    np.testing.assert_array_equal(tree.topk(X, 60, beam=60)[0], model.topk(X, 60)[0])
    assert np.isfinite(tree.topk(X, 3, beam=2)[1]).all()


@pytest.mark.parametrize("several", [False, True])
def test_trained_models_of_one_label_and_of_several(several, tmp_path):
    rng = np.random.default_rng(3)
    X = sp.random(150, 60, 0.2, "csr", np.float32, random_state=0)
    y = (
        sp.random(150, 30, 0.1, "csr", random_state=1).astype(bool).astype(int)
        if several
        else rng.integers(30, size=150)
    )
    model = OneVsRestSVC().fit(X, y).model_
    tree = LabelTree.build(model, branching=4)
    model.tree = tree.order
    save_model(model, tmp_path / "m")
    again = LabelTree(load_model(tmp_path / "m"))
    for mine, theirs in zip(again.topk(X, 3, beam=4), tree.topk(X, 3, beam=4), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.recall(X, 3, beam=30) == 1


def test_recall_is_the_share_of_common_labels():
    assert recall_of(np.array([[1, 2], [3, 4]]), np.array([[2, 5], [4, 3]])) == 0.75


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"tree__labels": np.arange(29, dtype=np.int32)}, "but 30 classes"),
        ({"tree__labels": np.arange(30)}, "int64 labels"),
        ({"tree__labels": np.append(np.arange(29), 28).astype(np.int32)}, "exactly once"),
        ({"tree__labels": np.append(np.arange(29), 30).astype(np.int32)}, "exactly once"),
        ({"tree__labels": np.append(np.arange(29), -1).astype(np.int32)}, "exactly once"),
        ({"tree__labels": None}, "tensor 'tree.labels' is missing"),
        ({"tree__branching": None}, "tensor 'tree.branching' is missing"),
        ({"tree__branching": np.array([1])}, "1 branches"),
        ({"tree__branching": np.array([4.0])}, "branching of the tree"),
        ({"tree__branching": np.array([4, 4])}, "branching of the tree"),
        ({"tree__more": np.array([4, 4])}, "unexpected tensors: tree.more"),
    ],
)
def test_a_damaged_tree_is_refused(changed, reason, tmp_path):
    model, _ = clustered(30)
    model.tree = LabelTree.build(model, branching=4).order
    save_model(model, tmp_path / "m")
    rewrite_tensors(tmp_path / "m", **changed)
    with pytest.raises(ModelFileError, match=reason):
        load_model(tmp_path / "m")


def test_a_file_cut_short_is_refused(tmp_path):
    model, _ = clustered(30)
    model.tree = LabelTree.build(model, branching=4).order
    path = tmp_path / "m"
    save_model(model, path)
    assert "tree.labels" in safetensors.numpy.load_file(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ModelFileError, match="cut short"):
        load_model(path)


def test_what_has_no_tree_is_refused():
    model, X = clustered(30)
    with pytest.raises(ValueError, match="no tree"):
        LabelTree(model)
    with pytest.raises(ValueError, match="branching"):
        LabelTree.build(model, branching=1)
    tree = LabelTree.build(model)
    for wrong in ({"k": 0}, {"k": 31}, {"k": 1, "beam": 0}):
        with pytest.raises(ValueError, match="must be"):
            tree.topk(X, **wrong)
    with pytest.raises(ValueError, match="features"):
        tree.topk(X[:, :5], 1)
    model.settings["pairs"] = True
    with pytest.raises(ValueError, match="one-vs-one"):
        LabelTree.build(model)
