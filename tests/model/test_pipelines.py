"""`save_model` of estimators and pipelines: the file has all that is needed to predict from raw input."""

import json

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer
from sklearn.svm import LinearSVC

from manyclass import CalibratedClassifier, MulticlassSVC, OneVsRestLogistic, OneVsRestSVC, load_model, save_model
from manyclass.data import HashedText, TextFeatures, UnitRows
from manyclass.model import LabelTree, ModelFileError

TEXTS = [
    f"{animal} {sound}s {word}"
    for animal, sound in [("dog", "bark"), ("cat", "meow"), ("horse", "neigh")]
    for word in ("loudly", "at night", "never", "the most")
]
LABELS = [text.split()[0] + "s" for text in TEXTS]
NEW = ["barks and barks", "a cat", "unknown words only", "neighs loudly, cat"]


@pytest.mark.parametrize(
    "steps",
    [
        [TextFeatures(min_df=2)],
        [HashedText(hash_bits=9)],
        [TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)],
        [HashingVectorizer(n_features=512), MaxAbsScaler()],
        [CountVectorizer(dtype=np.float32), TfidfTransformer(), UnitRows()],
        [TextFeatures(), Normalizer("l1")],
    ],
    ids=lambda steps: "-".join(type(step).__name__ for step in steps),
)
def test_a_saved_pipeline_predicts_the_same_from_texts(tmp_path, steps):
    pipeline = make_pipeline(*steps, MulticlassSVC("ww")).fit(TEXTS, LABELS)
    save_model(pipeline, tmp_path / "m")
    model = load_model(tmp_path / "m")
    np.testing.assert_array_equal(model.scores(NEW), pipeline[-1].model_.scores(pipeline[:-1].transform(NEW)))
    np.testing.assert_array_equal(model.predict(NEW), pipeline.predict(NEW))
    labels, scores = model.predict_topk(NEW, k=2)
    wanted = pipeline[-1].predict_topk(pipeline[:-1].transform(NEW), k=2)
    np.testing.assert_array_equal(labels, wanted[0])
    np.testing.assert_array_equal(scores, wanted[1])
    np.testing.assert_array_equal(model.scores(model.prepare(NEW)), model.scores(NEW))
    assert not pipeline[-1].model_.chain  # the estimator goes on taking what the pipeline gives it
    save_model(model, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_rows_that_are_ready_are_taken_where_that_is_clear(tmp_path):
    one = make_pipeline(TextFeatures(), OneVsRestSVC()).fit(TEXTS, LABELS)
    two = make_pipeline(CountVectorizer(), TfidfTransformer(), OneVsRestSVC()).fit(TEXTS, LABELS)
    for name, pipeline in (("one", one), ("two", two)):
        save_model(pipeline, tmp_path / name)
    X = one[:-1].transform(NEW)
    for rows in (X, X.toarray(), X.tocsc()):
        np.testing.assert_array_equal(load_model(tmp_path / "one").predict(rows), one.predict(NEW))
    with pytest.raises(ValueError, match="pass texts"):
        load_model(tmp_path / "two").predict(two[:-1].transform(NEW))


def test_a_model_of_rows_scales_them(tmp_path):
    X = sp.random(60, 9, 0.5, format="csr", random_state=0, dtype=np.float32)
    y = np.arange(60) % 3
    for step in (Normalizer(), UnitRows(), MaxAbsScaler()):
        pipeline = make_pipeline(step, OneVsRestSVC()).fit(X, y)
        save_model(pipeline, tmp_path / "m")
        model = load_model(tmp_path / "m")
        for rows in (X, X.astype(np.float64), X.toarray()):
            np.testing.assert_array_equal(model.predict(rows), pipeline.predict(rows))
        before = X.copy()
        tree = LabelTree.build(model)
        np.testing.assert_array_equal(tree.topk(X, 2, beam=3)[0], model.topk(X, 2)[0])
        assert tree.recall(X, 2, beam=3) == 1
        assert (before != X).nnz == 0
        with pytest.raises(ValueError, match="9 features"):
            model.predict(X[:, :8])


def test_probabilities_and_sets_of_labels_go_through_the_steps(tmp_path):
    pipeline = make_pipeline(TfidfVectorizer(), OneVsRestLogistic()).fit(TEXTS, [[a, "all"] for a in LABELS])
    save_model(pipeline, tmp_path / "m")
    model = load_model(tmp_path / "m")
    X = pipeline[:-1].transform(NEW)
    np.testing.assert_array_equal(model.predict(NEW).toarray(), pipeline[-1].predict(X).toarray())
    np.testing.assert_array_equal(model.predict(NEW, k=2).toarray(), pipeline[-1].predict(X, k=2).toarray())
    np.testing.assert_array_equal(model.probabilities(NEW), pipeline.predict_proba(NEW))
    np.testing.assert_array_equal(model.topk_probabilities(NEW, 2)[1], pipeline[-1].predict_topk_proba(X, 2)[1])


def test_estimators_searches_and_nested_pipelines_are_saved(tmp_path):
    text = TextFeatures()
    X = text.fit_transform(TEXTS)
    svm = OneVsRestSVC().fit(X, LABELS)
    calibrated = CalibratedClassifier(OneVsRestSVC(), cv=2).fit(X, LABELS)
    nested = Pipeline([("a", "passthrough"), ("b", Pipeline([("text", text)])), ("c", svm)])
    search = GridSearchCV(make_pipeline(TextFeatures(), OneVsRestSVC()), {"onevsrestsvc__C": [1.0]}, cv=2)
    trained = {"svm": svm, "calibrated": calibrated, "nested": nested, "search": search.fit(TEXTS, LABELS)}
    for name, one in trained.items():
        save_model(one, tmp_path / name)
        model = load_model(tmp_path / name)
        takes_text = name in ("nested", "search")
        assert model.chain.takes_text == takes_text
        np.testing.assert_array_equal(model.predict(NEW if takes_text else text.transform(NEW)), search.predict(NEW))
    assert load_model(tmp_path / "calibrated").settings["probability"] == calibrated.rule_


@pytest.mark.parametrize(
    ("trained", "error", "reason"),
    [
        (lambda: OneVsRestSVC(), NotFittedError, "OneVsRestSVC"),
        (lambda: make_pipeline(TextFeatures(), OneVsRestSVC()), NotFittedError, "OneVsRestSVC"),
        (lambda: LinearSVC().fit(np.eye(3), [1, 2, 3]), TypeError, "a LinearSVC is not a manyclass model"),
        (lambda: make_pipeline(Normalizer(), LinearSVC()).fit(np.eye(3), [1, 2, 3]), TypeError, "a LinearSVC is not"),
        (lambda: TextFeatures().fit(TEXTS), TypeError, "a TextFeatures is not a manyclass model"),
        (lambda: "m", TypeError, "a str is not a manyclass model"),
        (
            lambda: make_pipeline(FunctionTransformer(), OneVsRestSVC()).fit(np.eye(3), [1, 2, 3]),
            TypeError,
            "FunctionTransformer cannot be stored",
        ),
        (
            lambda: make_pipeline(CountVectorizer(analyzer=str.split), OneVsRestSVC()).fit(TEXTS, LABELS),
            TypeError,
            "CountVectorizer has analyzer=",
        ),
        (
            lambda: make_pipeline(HashedText(hash_bits=5), OneVsRestSVC().fit(np.eye(3), [1, 2, 3])),
            ValueError,
            "HashedText gives 32 features, but the weights are for 3",
        ),
    ],
)
def test_what_cannot_be_saved_is_refused_and_leaves_nothing(tmp_path, trained, error, reason):
    with pytest.raises(error, match=reason):
        save_model(trained(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# ---- Files


def saved(tmp_path, *steps):
    steps = steps or (TfidfVectorizer(stop_words=["the"]), MaxAbsScaler())
    save_model(make_pipeline(*steps, OneVsRestSVC()).fit(TEXTS, LABELS), tmp_path / "m")
    return tmp_path / "m"


def metadata_of(path):
    with safetensors.safe_open(path, "numpy") as file:
        return file.metadata()


def rewrite(path, change_steps=None, metadata=(), **tensors):
    """Write a file again with other steps, metadata or tensors (None removes one), checksums left out."""
    found = {name: value for name, value in metadata_of(path).items() if "checksum" not in name} | dict(metadata)
    if change_steps:
        steps = json.loads(found["steps"])
        found["steps"] = json.dumps(change_steps(steps) or steps)
    arrays = safetensors.numpy.load_file(path) | {name.replace("__", "."): array for name, array in tensors.items()}
    safetensors.numpy.save_file({name: array for name, array in arrays.items() if array is not None}, path, found)


def test_only_files_that_need_it_have_the_newest_version(tmp_path):
    assert metadata_of(saved(tmp_path))["format_version"] == "3"
    for step in (TextFeatures(), HashedText(hash_bits=9)):
        found = metadata_of(saved(tmp_path, step))
        assert found["format_version"] == "1" and "steps" not in found


def word_array(text):
    return np.frombuffer(text.encode(), np.uint8)


def change(place, entry, **values):
    return lambda steps: steps[place][entry].update(values)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"change_steps": lambda steps: [*steps, steps[1] | {"step": "os.system"}]}, "step 2 is 'os.system', which"),
        ({"change_steps": lambda steps: [steps[1] | {"step": "Pickle"}]}, "step 0 is 'Pickle', which"),
        ({"change_steps": lambda steps: steps[::-1]}, "step 0, MaxAbsScaler"),
        ({"change_steps": lambda steps: [1]}, "step 0 is 1"),
        ({"change_steps": lambda steps: {"step": "UnitRows"}}, "the steps are"),
        ({"change_steps": lambda steps: [steps[0] | {"more": 1}]}, "step 0 is"),
        ({"change_steps": lambda steps: steps[:1]}, "unexpected tensors: steps.1.max_abs, steps.1.scale"),
        ({"change_steps": lambda steps: [steps[0] | {"parameters": []}]}, "step 0 is"),
        ({"metadata": {"steps": "["}}, "the steps are not JSON"),
        ({"metadata": {"steps": "[" * 100_000}}, "the steps are not JSON"),
        ({"metadata": {"steps": "[]"}}, "the steps are"),
        ({"metadata": {"format_version": "1"}}, "steps, which version 1 of the format does not have"),
        ({"change_steps": change(0, "parameters", evil=1)}, "parameters evil are unknown"),
        ({"change_steps": change(0, "parameters", vocabulary={"a": 0})}, "parameters vocabulary are unknown"),
        ({"change_steps": change(0, "parameters", analyzer="evil")}, "analyzer"),
        ({"change_steps": change(0, "parameters", input="filename")}, "reads files"),
        ({"change_steps": change(0, "parameters", dtype="object")}, "dtype is 'object'"),
        ({"change_steps": change(0, "parameters", dtype=["float32"])}, "dtype is"),
        ({"change_steps": change(0, "parameters", token_pattern="(")}, "step 0, TfidfVectorizer"),
        ({"change_steps": change(0, "parameters", token_pattern=5)}, "token_pattern"),
        ({"change_steps": change(0, "parameters", ngram_range=[2, 1])}, "ngram_range is"),
        ({"change_steps": change(0, "parameters", ngram_range=[1])}, "ngram_range is"),
        ({"change_steps": change(0, "parameters", ngram_range=[1, "2"])}, "ngram_range"),
        ({"change_steps": change(0, "parameters", stop_words=[1])}, "stop_words is"),
        ({"change_steps": change(0, "parameters", use_idf=False)}, "unexpected tensors: steps.0.idf"),
        ({"change_steps": change(0, "parameters", norm="l3")}, "norm"),
        ({"change_steps": change(0, "learned", vocabulary_given=2)}, "vocabulary_given is 2"),
        ({"change_steps": change(1, "learned", n_features=10**15)}, "not 1000000000000000 floats"),
        ({"change_steps": change(1, "learned", n_features="x")}, "n_features is 'x'"),
        ({"change_steps": change(1, "learned", n_samples_seen=0.5)}, "n_samples_seen is 0.5"),
        ({"steps__0__idf": None}, "tensor 'steps.0.idf' is missing"),
        ({"steps__0__idf": np.ones(3)}, "idf is float64 of shape"),
        ({"steps__0__idf": np.full(11, np.nan)}, "idf is empty, or has values that are NaN"),
        ({"steps__0__vocabulary.offsets": np.array([0, 2])}, "do not divide"),
        ({"steps__0__vocabulary.offsets": np.array([], np.int64)}, "do not divide"),
        ({"steps__0__vocabulary.utf8": word_array("x")}, "do not divide"),
        ({"steps__0__vocabulary.utf8": np.float32([1])}, "vectors of uint8 and int64"),
        (
            {"steps__0__vocabulary.utf8": word_array("aa"), "steps__0__vocabulary.offsets": np.array([0, 1, 2])},
            "occurs twice",
        ),
        (
            {"steps__0__vocabulary.utf8": word_array(""), "steps__0__vocabulary.offsets": np.array([0])},
            "vocabulary is empty",
        ),
        ({"steps__1__scale": np.zeros(11)}, "scales are not positive"),
        ({"steps__1__scale": np.ones((3, 5))}, "scale is float64 of shape"),
        ({"steps__1__max_abs": np.array(["1"] * 3).astype("S1").view(np.uint8)}, "max_abs is uint8"),
        ({"steps__5__more": np.ones(3)}, "unexpected tensors: steps.5.more"),
    ],
)
def test_steps_that_make_no_sense_are_refused(tmp_path, changed, reason):
    path = saved(tmp_path)
    rewrite(path)
    load_model(path)
    rewrite(path, **changed)
    with pytest.raises(ModelFileError, match=reason) as raised:
        load_model(path)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"text__idf": None}, "tensor 'text.idf' is missing"),
        ({"text__idf": np.ones(2, np.float32)}, "idf is float32 of shape"),
        ({"text__idf": np.full(3, np.nan, np.float32)}, "NaN or infinite"),
        ({"text__idf": -np.ones(3, np.float32)}, "must be positive"),
        ({"text__idf": np.ones(3)}, "float32, got float64"),
        ({"text__offsets": np.array([0, 3, 2, 9])}, "do not divide"),
        ({"text__offsets": np.array([0, 3, 6, 12])}, "do not divide"),
        ({"text__vocabulary": word_array("dogdogcat")}, "twice"),
        ({"text__vocabulary": np.full(9, 255, np.uint8)}, "not UTF-8"),
        ({"text__options": word_array("{")}, "options of the text features are damaged"),
        ({"text__options": word_array("3")}, "not a JSON object"),
        ({"text__options": word_array('{"min_df": 1, "evil": 2}')}, "parameters evil"),
        ({"text__options": word_array('{"min_df": "x"}')}, "min_df"),
        ({"text__hashing": word_array('{"hash_bits": 60}')}, "hash_bits"),
        ({"text__hashing": word_array('{"hash_bits": 4}')}, "HashedText gives 16 features"),
    ],
)
def test_text_features_of_version_1_that_make_no_sense_are_refused(tmp_path, changed, reason):
    texts = ["cat", "dog", "fox"]
    save_model(make_pipeline(TextFeatures(), OneVsRestSVC()).fit(texts, texts), tmp_path / "m")
    rewrite(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(["the fox"]) == ["fox"]
    rewrite(tmp_path / "m", **changed)
    with pytest.raises(ModelFileError, match=reason):
        load_model(tmp_path / "m")
