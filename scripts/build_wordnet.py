"""Build src/manyclass/data/wordnet.txt.xz from the files of WordNet 3.0 (Debian package wordnet-base).

    python scripts/build_wordnet.py [folder of data.noun and data.verb] [file to write]

A row is the gloss of a noun or verb synset, including examples; its class is the first direct hypernym. The file is
text (use xzcat to look at it):

    = name of a class
      gloss of a training row (after two spaces)
    ? gloss of a test row

The same input gives the same bytes.
"""

import hashlib
import lzma
import sys
from pathlib import Path
from typing import NamedTuple

PARTS = {"n": "noun", "v": "verb"}
DEFAULT_SOURCE = Path("/usr/share/wordnet")
DEFAULT_TARGET = Path(__file__).parents[1] / "src/manyclass/data/wordnet.txt.xz"
TEST_SHARE = 0.1
MIN_MEMBERS = 2

Key = tuple[str, str]


class Synset(NamedTuple):
    """One line of a data file: its first word, its gloss and its first direct hypernym."""

    key: Key
    word: str
    gloss: str
    hypernym: Key | None


def read_synsets(source: Path, part: str) -> list[Synset]:
    """Read data.noun or data.verb; the layout is that of wndb(5WN)."""
    synsets = []
    for line in (source / f"data.{PARTS[part]}").read_text("ascii").splitlines():
        if line.startswith("  "):  # the licence
            continue
        fields, _, gloss = line.partition(" | ")
        words = fields.split()
        n_words = int(words[3], 16)
        pointers = words[5 + 2 * n_words :]
        n_pointers = int(words[4 + 2 * n_words])
        hypernyms = [
            (pointers[4 * k + 2], pointers[4 * k + 1])
            for k in range(n_pointers)
            if pointers[4 * k] in ("@", "@i")  # an instance (Paris) belongs to its class (city), like a kind
        ]
        synsets.append(
            Synset((part, words[0]), words[4], " ".join(gloss.split()), hypernyms[0] if hypernyms else None)
        )
    return synsets


def read_senses(source: Path, part: str) -> dict[tuple[str, Key], int]:
    """Read index.noun or index.verb: which sense of a word a synset is, from 1."""
    senses = {}
    for line in (source / f"index.{PARTS[part]}").read_text("ascii").splitlines():
        if line.startswith("  "):
            continue
        fields = line.split()
        for sense, offset in enumerate(fields[-int(fields[2]) :], start=1):
            senses[fields[0], (part, offset)] = sense
    return senses


def name_classes(classes: list[Synset], senses: dict[tuple[str, Key], int]) -> dict[Key, str]:
    """Name each class by its first word and part of speech; if names only differ in case, add the sense."""
    plain = {synset.key: f"{synset.word.replace('_', ' ')} ({PARTS[synset.key[0]]})" for synset in classes}
    taken: dict[str, int] = {}
    for name in plain.values():
        taken[name.lower()] = taken.get(name.lower(), 0) + 1
    names = {}
    for synset in classes:
        name = plain[synset.key]
        if taken[name.lower()] > 1:
            name = f"{name[:-1]}, sense {senses[synset.word.lower(), synset.key]})"
        names[synset.key] = name
    if len({name.lower() for name in names.values()}) != len(names):
        raise ValueError("two classes have the same name")
    return names


def share(synset: Synset) -> float:
    """Map a synset to a number in [0, 1) that depends only on the synset."""
    digest = hashlib.blake2b(" ".join(synset.key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def build(source: Path) -> str:
    """Return the text of the whole file."""
    synsets: list[Synset] = []
    senses: dict[tuple[str, Key], int] = {}
    for part in PARTS:
        synsets += read_synsets(source, part)
        senses |= read_senses(source, part)
    members: dict[Key, list[Synset]] = {}
    for synset in synsets:
        if synset.hypernym:
            members.setdefault(synset.hypernym, []).append(synset)
    classes = [synset for synset in synsets if len(members.get(synset.key, [])) >= MIN_MEMBERS]
    names = name_classes(classes, senses)

    lines = []
    for synset in classes:
        rows = members[synset.key]
        lines.append(f"= {names[synset.key]}")
        # Every class needs a training row, so the row with the largest share is never a test row.
        kept = max(rows, key=share)
        lines += [f"{'?' if share(row) < TEST_SHARE and row is not kept else ' '} {row.gloss}" for row in rows]
    n_rows = len(lines) - len(classes)
    n_test = sum(line.startswith("?") for line in lines)
    print(f"{n_rows} glosses ({n_test} for testing) in {len(classes)} classes", file=sys.stderr)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Build the file of the package from Debian's folder, unless others are given."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_SOURCE
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else DEFAULT_TARGET
    packed = lzma.compress(build(source).encode("ascii"), preset=9 | lzma.PRESET_EXTREME)
    target.write_bytes(packed)
    print(f"{target}: {len(packed) / 1e6:.2f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
