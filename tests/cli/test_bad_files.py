"""Every reader against every kind of bad file: one kind of error that names the file, and exit code 2.

A reader may find a damaged file good, as half a table is a table; what it may not do is to raise anything else, or to
leave out the name.
"""

import json
import os
import shutil
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from manyclass import BlockStore, MulticlassSVC, OneVsRestSVC, load_model, save_model
from manyclass.cli.app import app
from manyclass.data import load_svmlight, load_xmc, read_table, save_svmlight, save_xmc
from manyclass.data.bad_file import BadFileError
from manyclass.engines import CheckpointFolder, checkpoint
from manyclass.model.file import save_shard
from manyclass.model.shards import shard_names, shard_of, write_index

NESTED = b"[" * 100_000 + b"]" * 100_000
LONG_NUMBER = b"9" * 5000


def rows():
    X = sp.random(30, 8, 0.5, format="csr", dtype=np.float32, random_state=0)
    return X, np.arange(30) % 3


def write_table(path):
    table = {"text": [f"word{i % 4} and more" for i in range(12)], "label": [f"c{i % 3}" for i in range(12)]}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path)
        return
    lines = list(zip(*table.values(), strict=True))
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(table, line, strict=True))) + "\n" for line in lines))
        return
    mark = {".csv": ",", ".tsv": "\t"}[path.suffix]
    path.write_text("".join(mark.join(line) + "\n" for line in [tuple(table), *lines]))


def write_store(path):
    BlockStore.create(path, *rows(), blocks=2)


def read_store(path):
    store = BlockStore(path)
    store.load()
    problems = list(store.verify())
    if problems:
        raise BadFileError(problems[0])


def write_shards(path):
    model = OneVsRestSVC().fit(*rows()).model_
    path.mkdir()
    names = shard_names(model, 2)
    for shard, name in enumerate(names):
        save_shard(shard_of(model, shard, 2), path / name)
    write_index(path, names)


def write_checkpoint(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MulticlassSVC("cs", tol=1e-12, max_iter=2, checkpoint=path).fit(*rows())
    newest = CheckpointFolder(path).generations()[0]
    for file in path.iterdir():
        if not file.name.startswith((f"checkpoint-{newest}-", f"checkpoint-{newest}.")):
            file.unlink()


def read_checkpoint(path):
    if CheckpointFolder(path).read() is None:
        raise BadFileError(f"{path}: nothing there")


# What is read: its name, how it is written and read, and the files of it that are damaged.
READERS = {
    "svmlight": ("x.svm", lambda path: save_svmlight(*rows(), path), load_svmlight, [""]),
    "xmc": ("x.txt", lambda path: save_xmc(rows()[0], sp.csr_matrix(np.eye(3)[rows()[1]]), path), load_xmc, [""]),
    **{kind: (f"x.{kind}", write_table, read_table, [""]) for kind in ("csv", "tsv", "jsonl", "parquet")},
    "model": ("m.manyclass", lambda path: save_model(OneVsRestSVC().fit(*rows()), path), load_model, [""]),
    "shards": ("shards", write_shards, load_model, ["shards.json", "shard-0*"]),
    "store": ("store", write_store, read_store, ["manifest.json", "catalogue-*", "block-0-1*"]),
    "checkpoint": ("c", write_checkpoint, read_checkpoint, ["checkpoint-*.json", "checkpoint-*-0.safetensors"]),
}
TARGETS = [(reader, part) for reader, (*_, parts) in READERS.items() for part in parts]


def unreadable(path):
    path.chmod(0)
    if os.access(path, os.R_OK):  # as root: then a link that leads to itself
        path.unlink()
        path.symlink_to(path.name)


def a_folder(path):
    path.unlink()
    path.mkdir()


def content(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


DAMAGES = {
    "empty": content(lambda found: b""),
    "one byte": content(lambda found: found[:1]),
    "cut in the middle": content(lambda found: found[: len(found) // 2]),
    "last byte gone": content(lambda found: found[:-1]),
    "more at the end": content(lambda found: found + b"\0more"),
    "garbage": content(lambda found: np.random.default_rng(0).bytes(len(found))),
    "another format": content(lambda found: b"\x93NUMPY\x01\x00" + found[8:]),
    "header as long as can be": content(lambda found: b"\xff" * 8 + found[8:]),
    "compressed and cut": content(lambda found: b"\x1f\x8b\x08\x00\x00\x00\x00\x00"),
    "zeros": content(lambda found: bytes(len(found))),
    "nested": content(lambda found: NESTED),
    "nested in an object": content(lambda found: b'{"text": ' + NESTED + b', "label": 1}'),
    "long number": content(lambda found: b'{"text": "a", "label": ' + LONG_NUMBER + b"}"),
    "digits": content(lambda found: LONG_NUMBER + b" " + LONG_NUMBER + b":" + LONG_NUMBER),
    "another encoding": content(lambda found: found.decode("latin-1").replace("1", "\u00e9").encode("utf-16")),
    "no text": content(lambda found: found.replace(b"e", b"\xff").replace(b"1", b"\xfe")),
    "lists": content(lambda found: b"[]"),
    "an object": content(lambda found: b"{}"),
    "null": content(lambda found: b"null"),
    "folder": a_folder,
    "gone": lambda path: path.unlink(),
    "unreadable": unreadable,
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A good one of each."""
    folder = tmp_path_factory.mktemp("good")
    for name, write, *_ in READERS.values():
        write(folder / name)
    return folder


def damaged(reader, part, good, tmp_path):
    """A copy, and the file in it that is to be damaged."""
    name = READERS[reader][0]
    path = tmp_path / name
    if part:
        shutil.copytree(good / name, path)
        return path, max(path.glob(part))
    shutil.copy(good / name, path)
    return path, path


def read_by_name(reader, path, name):
    """Whether it was found good; an error must be of the right kind, and name the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[reader][2](path)
    except (BadFileError, OSError) as error:
        assert str(name) in str(error), repr(error)
        return False
    return True


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("reader", "part"), TARGETS)
def test_bad_files_are_refused_with_their_names(reader, part, damage, good, tmp_path):
    path, file = damaged(reader, part, good, tmp_path)
    assert read_by_name(reader, path, path)
    DAMAGES[damage](file)
    found_good = read_by_name(reader, path, path)
    assert not found_good or reader in ("svmlight", "xmc", "csv", "tsv", "jsonl")  # a part of which may be good


@pytest.mark.parametrize("damage", ["empty", "garbage", "nested", "folder", "unreadable", "header as long as can be"])
@pytest.mark.parametrize(("reader", "part"), [target for target in TARGETS if target[0] != "checkpoint"])
def test_the_command_line_says_so_and_exits_with_2(reader, part, damage, good, tmp_path):
    path, file = damaged(reader, part, good, tmp_path)
    DAMAGES[damage](file)
    done = CliRunner().invoke(app, ["inspect", str(path), *(["--verify"] if reader == "store" else [])])
    assert done.exit_code == 2, (done.exit_code, done.output, done.exception)
    assert str(path) in done.stderr and done.stderr.count("\n") == 1


def test_the_command_line_refuses_a_damaged_checkpoint(good, tmp_path):
    save_svmlight(*rows(), tmp_path / "x.svm")
    path, _ = damaged("checkpoint", "checkpoint-*.json", good, tmp_path)
    for file in path.glob("*.json"):
        file.write_bytes(NESTED)
    call = ["train", str(tmp_path / "x.svm"), "--loss", "cs", "--checkpoint", str(path), "--resume"]
    done = CliRunner().invoke(app, [*call, "-m", str(tmp_path / "m")])
    assert done.exit_code == 2 and f"{path}: no checkpoint is intact" in done.stderr and "too deeply" in done.stderr


# ---- Keys and types: of JSON files, each entry in turn missing, of another type, or twice


def places(value, path=()):
    """Where in nested JSON there are entries of objects."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield (*path, name)
            yield from places(part, (*path, name))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


@pytest.mark.parametrize(
    ("reader", "part"), [("store", "manifest.json"), ("shards", "shards.json"), ("checkpoint", "checkpoint-*.json")]
)
def test_json_with_entries_missing_wrong_or_twice_is_refused(reader, part, good, tmp_path):
    path, file = damaged(reader, part, good, tmp_path)
    text = file.read_text()
    whole = json.loads(text)
    for place in places(whole):
        for wrong in (None, -1, 1.5, "x", [], {}, [[]], True, 10**30, "missing"):
            changed = json.loads(text)
            inner = changed
            for step in place[:-1]:
                inner = inner[step]
            if wrong == "missing":
                del inner[place[-1]]
            else:
                inner[place[-1]] = wrong
            if reader == "checkpoint" and isinstance(changed.get("content"), dict):
                changed["checksum"] = checkpoint._checksum(changed["content"])
            file.write_text(json.dumps(changed))
            read_by_name(reader, path, path)
    for name in whole:
        file.write_text(text.rstrip()[:-1] + f', "{name}": 1' + "}")
        assert not read_by_name(reader, path, path)
    file.write_text(text)
    assert read_by_name(reader, path, path)


TEXTS = {
    "svmlight": ["1 1:x", "1 99999999999999999999:1", "1 1:1e999", "1 1:1 1:2", "1 1:nan", ":", "1 :1", "1 1:"],
    "xmc": [
        "2 3\n",
        "9999999999999999999999 1 1\n",
        "1000000000000 5 5\n0 0:1\n",
        "1 5 5\n7 0:1\n",
        "1 1 1\n0 5:1\n",
    ],
    "csv": ["text,label\n", "text,text,label\na,b,c\n", 'text,label\n"a,b\n', "text,label\na\n", "text;label\na;b\n"],
    "jsonl": ['{"text": 1, "label": 2}', '{"text": "a"}', '{"text": "a", "label": {}}', "1", '"text"', "{} {}"],
}


@pytest.mark.parametrize(("reader", "text"), [(reader, text) for reader, texts in TEXTS.items() for text in texts])
def test_texts_that_are_wrong_are_refused_by_name(reader, text, tmp_path):
    path = tmp_path / READERS[reader][0]
    path.write_text(text)
    found_good = read_by_name(reader, path, path)
    assert not found_good or text == "text,label\n"


def test_parquet_with_other_columns_is_refused_by_name(tmp_path):
    path = tmp_path / "x.parquet"
    not_utf8 = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    for table in (
        pa.table({"text": ["a"], "other": ["b"]}),
        pa.table({"text": [1], "label": ["b"]}),
        pa.table({"text": [None], "label": ["b"]}),
        pa.table({"text": ["a"], "label": [["b"]]}),
        pa.table({"text": ["a"], "label": [b"\xff"]}),
        pa.table([["a"], ["b"], ["c"]], names=["text", "text", "label"]),
        pa.table([not_utf8, ["c"]], names=["text", "label"]),
    ):
        pq.write_table(table, path)
        assert not read_by_name("parquet", path, path)
