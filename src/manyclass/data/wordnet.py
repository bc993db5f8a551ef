"""WordNet 3.0 as a data set: classify the gloss of a noun or verb by its hypernym."""

import lzma
from dataclasses import dataclass
from importlib import resources

import numpy as np

# Rows are stored class by class; stepping by this prime mixes them, so that any range of rows has many classes.
STEP = 15_485_863


@dataclass(frozen=True)
class WordNet:
    """Glosses and their classes, split into training and test rows.

    Attributes
    ----------
    texts_train, texts_test : list of str
        Glosses, with their examples.
    labels_train, labels_test : ndarray of str
        The class of each gloss, such as `dog (noun)`.
    class_names : ndarray of str
        All classes in ascending order; each has at least one training row.
    """

    texts_train: list[str]
    labels_train: np.ndarray
    texts_test: list[str]
    labels_test: np.ndarray
    class_names: np.ndarray


def _read() -> list[tuple[str, list[str]]]:
    """Read the classes with their rows. The first character of a row distinguishes training from test rows."""
    packed = resources.files(__package__).joinpath("wordnet.txt.xz").read_bytes()
    classes: list[tuple[str, list[str]]] = []
    for line in lzma.decompress(packed).decode("ascii").splitlines():
        if line.startswith("= "):
            classes.append((line[2:], []))
        else:
            classes[-1][1].append(line)
    return classes


def load_wordnet(min_members: int = 5) -> WordNet:
    """Load WordNet's glosses: definitions of nouns and verbs.

    The class of a gloss is its direct hypernym, the concept that it is a kind of.

    About a tenth of the rows, chosen by a hash, are test rows; the choice does not depend on `min_members`. The data
    set is part of the package, under WordNet's own licence (`WORDNET-LICENSE`).

    Parameters
    ----------
    min_members : int, default=5
        Keep classes with at least this many glosses: 2 (the minimum) keeps 87,698 glosses in 12,582 classes,
        5 keeps 66,893 in 4,796.

    Returns
    -------
    WordNet
    """
    if min_members < 2:
        raise ValueError(f"min_members must be at least 2, got {min_members}; smaller classes are not stored")
    classes = [(name, rows) for name, rows in _read() if len(rows) >= min_members]
    if len(classes) < 2:
        raise ValueError(f"min_members={min_members} leaves {len(classes)} classes; choose a smaller number")
    names = np.array([name for name, _ in classes])
    rows = [row for _, members in classes for row in members]
    codes = np.repeat(np.arange(names.size), [len(members) for _, members in classes])
    order = np.arange(len(rows)) * STEP % len(rows)
    is_test = np.array([row[0] == "?" for row in rows])[order]
    train, test = order[~is_test], order[is_test]
    return WordNet(
        texts_train=[rows[k][2:] for k in train],
        labels_train=names[codes[train]],
        texts_test=[rows[k][2:] for k in test],
        labels_test=names[codes[test]],
        class_names=np.sort(names),
    )
