"""Restored steps give the same features bit for bit, and steps that contain code are rejected."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from csr_rows import assert_same
from safetensors.numpy import load, save
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer, StandardScaler

from manyclass.data import Chain, HashedText, TextFeatures, UnitRows
from manyclass.data.steps import chain_content, chain_fingerprint, read_chain

TEXTS = [
    "a dog barked, a Dog slept",
    "the cat slept on the mat of the cat",
    "naïve café dogs \ud800 half a pair",
    "dog cat mouse I",
    "",
    "mouse mouse mouse Straße",
]
NEW = ["a new dog slept", "nothing known", "", "Cat cat CAT", "naïve CAFE \ud800"]
ROWS = sp.random(12, 7, 0.4, format="csr", random_state=0)


def restored(chain):
    steps, arrays = chain_content(chain)
    return read_chain(json.dumps(json.loads(steps)), load(save(arrays)) if arrays else {})


@pytest.mark.parametrize(
    "step",
    [
        TextFeatures(),
        TextFeatures(min_df=2),
        TextFeatures(min_df=0.3),
        HashedText(hash_bits=7),
        CountVectorizer(),
        CountVectorizer(dtype=np.float32, binary=True, ngram_range=(1, 2), max_df=0.9, min_df=1),
        CountVectorizer(vocabulary=["dog", "cat", "the"]),
        CountVectorizer(vocabulary={"dog": 1, "cat": 0}),
        CountVectorizer(analyzer="char_wb", ngram_range=(2, 4), strip_accents="unicode"),
        CountVectorizer(analyzer="char", lowercase=False, max_features=5),
        CountVectorizer(token_pattern=r"(?u)\b\w+\b", stop_words="english"),
        CountVectorizer(stop_words=["dog", "the"], strip_accents="ascii", min_df=2),
        TfidfVectorizer(),
        TfidfVectorizer(dtype=np.float32, sublinear_tf=True, norm="l1"),
        TfidfVectorizer(norm=None, smooth_idf=False, min_df=np.int64(2)),
        TfidfVectorizer(use_idf=False),
        TfidfVectorizer(vocabulary=["dog", "cat"], ngram_range=(1, 3)),
        HashingVectorizer(n_features=50),
        HashingVectorizer(n_features=2**10, alternate_sign=False, norm=None, dtype=np.float32, ngram_range=(1, 2)),
    ],
    ids=repr,
)
def test_steps_of_texts_give_the_same_bits(step):
    step.fit(TEXTS)
    (again,) = restored(Chain([step]))
    assert type(again) is type(step)
    for texts in (TEXTS, NEW):
        assert_same(again.transform(texts), step.transform(texts))
    wanted, found = step.get_params(), again.get_params()
    given = wanted.pop("vocabulary", None), found.pop("vocabulary", None)
    assert found == wanted and (given[0] is None) == (given[1] is None)
    if hasattr(step, "get_feature_names_out"):
        assert again.get_feature_names_out().tolist() == step.get_feature_names_out().tolist()
    assert restored(Chain([again])).store()[0].same_as(Chain([step]).store()[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "step",
    [
        UnitRows(),
        Normalizer(),
        Normalizer("l1", copy=False),
        Normalizer("max"),
        MaxAbsScaler(),
        TfidfTransformer(),
        TfidfTransformer(norm=None, use_idf=False, sublinear_tf=True),
        TfidfTransformer(smooth_idf=False),
    ],
    ids=repr,
)
def test_steps_of_rows_give_the_same_bits(step, dtype):
    X = ROWS.astype(dtype)
    X.data += 1
    step.fit(X)
    (again,) = restored(Chain([step]))
    assert type(again) is type(step) and again.n_features_in_ == 7
    assert_same(again.transform(X[3:]), step.transform(X[3:].copy()))
    with pytest.raises(ValueError, match="7 features"):
        again.transform(X[:, :6])


def test_a_restored_step_resumes_learning():
    scaler = MaxAbsScaler().fit(ROWS[:6])
    (again,) = restored(Chain([scaler]))
    for one in (scaler, again):
        one.partial_fit(ROWS[6:])
    assert again.n_samples_seen_ == 12
    np.testing.assert_array_equal(again.scale_, scaler.scale_)


def test_steps_follow_each_other():
    counts = CountVectorizer().fit(TEXTS)
    weights = TfidfTransformer().fit(counts.transform(TEXTS))
    scaler = MaxAbsScaler().fit(weights.transform(counts.transform(TEXTS)))
    chain = restored(Chain([counts, weights, scaler, Normalizer("max"), UnitRows()]))
    wanted = UnitRows().transform(
        Normalizer("max").transform(scaler.transform(weights.transform(counts.transform(NEW))))
    )
    assert_same(chain.transform(NEW), wanted)
    assert chain.takes_text and len(chain) == 5
    assert chain.feature_names.tolist() == counts.get_feature_names_out().tolist()


def test_names_of_columns_are_kept_and_checked():
    table = pd.DataFrame(ROWS.toarray(), columns=list("abcdefg"))
    scaler = MaxAbsScaler().fit(table)
    chain = restored(Chain([scaler]))
    assert chain.feature_names.tolist() == list("abcdefg")
    np.testing.assert_array_equal(chain.transform(table), scaler.transform(table))
    with pytest.raises(ValueError, match="feature names"):
        chain.transform(table[list("gfedcba")])


def words(text):
    return text.split()


class MyVectorizer(CountVectorizer):
    pass


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (CountVectorizer(tokenizer=words, token_pattern=None), "CountVectorizer has tokenizer=.*is code"),
        (TfidfVectorizer(analyzer=words), "TfidfVectorizer has analyzer=.*is code"),
        (HashingVectorizer(preprocessor=str.lower), "HashingVectorizer has preprocessor=.*is code"),
        (CountVectorizer(strip_accents=str.lower), "strip_accents=.*is code"),
        (MyVectorizer(), "MyVectorizer is a subclass of CountVectorizer"),
        (CountVectorizer(input="filename"), "reads files"),
        (CountVectorizer(vocabulary=[("a", "b")]), "tuple"),
        (StandardScaler(with_mean=False), "StandardScaler cannot be stored.*TfidfVectorizer"),
        (FunctionTransformer(), "FunctionTransformer cannot be stored"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_code_is_rejected_with_the_reason(step, reason):
    if hasattr(step, "get_stop_words") and getattr(step, "input", "") == "content":
        step.fit(TEXTS)
    elif isinstance(step, CountVectorizer):
        step.vocabulary_ = {"a": 0}
    with pytest.raises(TypeError, match=reason):
        Chain([step]).store()


@pytest.mark.parametrize(
    "step", [TextFeatures(), CountVectorizer(), TfidfVectorizer(), MaxAbsScaler(), TfidfTransformer()]
)
def test_unfitted_steps_are_rejected(step):
    with pytest.raises(NotFittedError):
        Chain([step]).store()


def test_texts_come_first():
    with pytest.raises(TypeError, match="HashedText takes texts, but the step before it gives rows"):
        Chain([UnitRows(), HashedText()])


TEXT = Chain([TextFeatures().fit(TEXTS)])


def test_rows_of_numbers_pass_a_single_text_step_unchanged():
    X = TEXT.transform(NEW)
    assert TEXT.transform(X) is X
    for rows in (X, X.toarray()):
        with pytest.raises(
            ValueError, match=r"rows of numbers, .*TF-IDF of \d+ words, then rows scaled to length 1.*pass texts"
        ):
            (TEXT + Chain([UnitRows()])).transform(rows)


def test_rows_go_through_the_remaining_steps():
    unit, hashed = Chain([UnitRows()]), Chain([HashedText(hash_bits=3)])
    assert len(unit.after(unit)) == 0 and len(Chain().after(Chain())) == 0
    assert unit.after(Chain()) is unit
    assert isinstance((hashed + unit).after(hashed)[0], UnitRows)
    fitted = Chain([UnitRows().fit(ROWS)])
    assert len(fitted.after(unit)) == len(unit.after(fitted)) == 0
    for chain, done in [
        (Chain(), unit),
        (unit, hashed),
        (unit, unit + unit),
        (hashed, Chain([HashedText(hash_bits=4)])),
        (TEXT, Chain([TextFeatures().fit(NEW)])),
    ]:
        with pytest.raises(ValueError, match="prepared differently"):
            chain.after(done)


def test_input_is_checked_before_the_first_step():
    X = ROWS.toarray()
    X[2, 3] = np.nan
    with pytest.raises(ValueError, match="NaN at row 2, column 3"):
        Chain([MaxAbsScaler().fit(ROWS)]).transform(X)
    twice = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), [2, 2, 0], [0, 3]), shape=(1, 3))
    np.testing.assert_allclose(Chain([Normalizer()]).transform(twice).toarray(), [[0.8, 0, 0.6]])


def test_fingerprints_tell_chains_apart():
    chains = [
        Chain(),
        TEXT,
        Chain([TextFeatures(min_df=2).fit(TEXTS)]),
        Chain([TextFeatures().fit(NEW)]),
        Chain([UnitRows()]),
        Chain([Normalizer()]),
        Chain([Normalizer("l1")]),
    ]
    assert len({chain_fingerprint(chain) for chain in chains}) == len(chains)
    assert chain_fingerprint(restored(TEXT)) == chain_fingerprint(TEXT)
