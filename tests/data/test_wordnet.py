"""The built-in WordNet glosses have the documented counts, names and split."""

from collections import Counter
from importlib import resources

import pytest

from manyclass.data import load_wordnet


@pytest.fixture(scope="module", params=[2, 5, 20])
def wordnet(request):
    return request.param, load_wordnet(request.param)


@pytest.mark.parametrize(("min_members", "n_rows", "n_classes"), [(2, 87_698, 12_582), (5, 66_893, 4_796)])
def test_counts(min_members, n_rows, n_classes):
    data = load_wordnet(min_members)
    assert len(data.texts_train) + len(data.texts_test) == n_rows
    assert len(data.class_names) == n_classes


def test_every_class_is_trained_and_has_its_members(wordnet):
    min_members, data = wordnet
    assert len(set(data.class_names)) == len(data.class_names)
    assert set(data.labels_train) == set(data.class_names)
    assert set(data.labels_test) <= set(data.class_names)
    assert min(Counter([*data.labels_train, *data.labels_test]).values()) >= min_members


def test_a_tenth_is_for_testing(wordnet):
    _, data = wordnet
    assert len(data.labels_test) == len(data.texts_test)
    assert len(data.labels_train) == len(data.texts_train)
    assert 0.09 < len(data.texts_test) / (len(data.texts_test) + len(data.texts_train)) < 0.11


def test_rows_of_few_large_classes_are_rows_of_all_classes(wordnet):
    # The split of a row does not depend on which classes are kept.
    _, data = wordnet
    everything = load_wordnet(2)
    assert set(zip(data.texts_test, data.labels_test, strict=True)) <= set(
        zip(everything.texts_test, everything.labels_test, strict=True)
    )


def test_rows_are_mixed():
    assert len(set(load_wordnet().labels_train[:100])) > 50


def test_known_rows_have_readable_names():
    data = load_wordnet(2)
    rows = dict(zip(data.texts_train + data.texts_test, [*data.labels_train, *data.labels_test], strict=True))
    assert rows["the capital and largest city of Nicaragua"] == "national capital (noun)"
    assert rows["an entity that has physical existence"] == "entity (noun)"


def test_too_small_and_too_large_minimum():
    with pytest.raises(ValueError, match="at least 2"):
        load_wordnet(1)
    with pytest.raises(ValueError, match="choose a smaller number"):
        load_wordnet(10**6)


def test_the_licence_comes_with_the_data():
    text = resources.files("manyclass.data").joinpath("WORDNET-LICENSE").read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in text
    assert "LICENSEE agrees to preserve same" in text
