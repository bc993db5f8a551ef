"""Every form of the same weights has the same shape, values, columns and scores."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import check_matrix
from manyclass.model import weights as forms
from manyclass.model.weights import JoinedWeights, SparseWeights, WideWeights

D, K = 6, 5
SCALE = np.array([0.5, 1.0, 2.0, 0.25, 4.0], np.float32)


def values(dtype=np.float32):
    """Small integers times a power of two per column: exact in every type. A feature and a column are empty."""
    rng = np.random.default_rng(0)
    whole = rng.integers(-8, 9, (D, K)) * (rng.random((D, K)) < 0.6)
    whole[2], whole[:, 1] = 0, 0
    return (whole * SCALE).astype(dtype)


def stored(W, dtype=None, scale=None, index=np.int32):
    csr = sp.csr_matrix(W if scale is None else W / scale)
    data = csr.data.astype(dtype or W.dtype)
    return SparseWeights(csr.indptr.astype(np.int64), csr.indices.astype(index), data, W.shape[1], scale)


FEATURES = np.array([0, 3, 4, 7, 11, 19])
PARTS = {
    "dense": lambda W: W,
    "csr": sp.csr_matrix,
    "stored": stored,
    "float16": lambda W: stored(W, np.float16, index=np.uint16),
    "int8": lambda W: stored(W, np.int8, SCALE[: W.shape[1]]),
}


def expand(W):
    wide = np.zeros((20, W.shape[1]), W.dtype)
    wide[FEATURES] = W
    return wide


def own_bytes(form, part, columns):
    """Bytes from the number of weights: row pointers, indices and values, and a scale."""
    if form == "dense":
        return 4 * D * columns
    nonzeros = part.nnz if form == "csr" else part.indices.size
    pointer, index, value = {"csr": (4, 4, 4), "stored": (8, 4, 4), "float16": (8, 2, 2), "int8": (8, 4, 1)}[form]
    return pointer * (D + 1) + (index + value) * nonzeros + (4 * columns if form == "int8" else 0)


def every_form():
    W = values()
    for form, make in PARTS.items():
        yield form, make(W), W, form, own_bytes(form, make(W), K)
        wide = WideWeights(FEATURES, make(W), 20)
        yield f"wide {form}", wide, expand(W), form, own_bytes(form, make(W), K) + 8 * D
        if form != "int8":
            parts = [make(W[:, :2]), make(W[:, 2:])]
            size = own_bytes(form, parts[0], 2) + own_bytes(form, parts[1], K - 2)
            yield f"joined {form}", JoinedWeights(parts), W, form, size


FORMS = {name: rest for name, *rest in every_form()}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_has_the_same_weights(name):
    given, W, form, size = FORMS[name]
    assert given.shape == W.shape and given.dtype == np.float32
    matrix = forms.as_matrix(given)
    sparse = form != "dense" or name.startswith("wide")
    assert sp.issparse(matrix) == forms.is_sparse(given) == sparse
    for _ in range(2):  # nothing is written to
        np.testing.assert_array_equal(sp.csr_matrix(forms.as_matrix(given)).toarray(), W)
    assert matrix.dtype == np.float32
    assert forms.nonzeros(given) == np.count_nonzero(W)
    assert forms.nbytes(given) == size
    assert forms.value_type(given) == {"float16": np.float16, "int8": np.int8}.get(form, np.float32)
    for column in range(K):
        np.testing.assert_array_equal(forms.column_of(given, column), W[:, column])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_has_the_same_scores(name, dtype):
    given, W, form, _ = FORMS[name]
    if dtype == np.float64 and form in ("dense", "csr", "stored"):
        given, W = PARTS[form](values(np.float64)), values(np.float64)
    if isinstance(given, WideWeights):
        W = W[FEATURES]
    intercept = np.arange(K) / 4
    rows = sp.csr_matrix(np.eye(D, dtype=given.dtype))
    scores = np.empty((D, K), given.dtype)
    scorer = forms.make_scorer(given, intercept)
    scorer.predict(rows.indptr, rows.indices, rows.data, 0, D, None, scores, 1)
    assert scorer.classes == K
    np.testing.assert_array_equal(scores, W + intercept)


def test_stored_weights_become_a_matrix_with_short_indices_without_a_copy():
    given = stored(values())
    matrix = given.tocsr()
    assert matrix.indptr.dtype == matrix.indices.dtype == np.int32
    assert np.shares_memory(matrix.data, given.values) and np.shares_memory(matrix.indices, given.indices)


def test_indices_are_sorted_where_they_are_stored():
    W = sp.csr_matrix(([1.0, 2.0, 3.0], [2, 0, 1], [0, 2, 3]), shape=(2, 3))
    W.has_sorted_indices = False
    found = forms.as_stored(W)
    assert found.indices.tolist() == [0, 2, 1] and found.values.tolist() == [2, 1, 3]
    assert found.indptr.tolist() == [0, 2, 3] and found.indptr.dtype == np.int64 and found.indices.dtype == np.int32
    dense = values()
    assert forms.as_stored(dense) is dense


def test_wide_weights_narrow_rows_to_their_features():
    wide = WideWeights(FEATURES, values(), 20)
    assert forms.as_stored(wide).shape == (20, K)
    X = np.arange(40.0).reshape(2, 20)
    narrow = wide.narrow(check_matrix(sp.csr_matrix(X)))
    np.testing.assert_array_equal(narrow.as_csr().toarray(), X[:, FEATURES])


def test_joined_parts_are_sparse_if_any_is():
    W = values()
    assert forms.is_sparse(JoinedWeights([W[:, :2], sp.csr_matrix(W[:, 2:])]))
    assert not forms.is_sparse(JoinedWeights([W[:, :2], W[:, 2:]]))
