"""Every reader either reads a file or rejects it with one of this package's errors, which says what is wrong.

`make fuzz` looks for counterexamples; those found so far are in `corpus`.
"""

import resource
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import bundles
import mutation
import pytest
from reader import check
from readers import READERS

from manyclass.data import ParseError

CORPUS = Path(__file__).parent / "corpus"
MEMORY = 1 << 30
INPUTS = {"store": 60, "checkpoint": 150, "model": 200, "shards": 200}


@contextmanager
def little_memory():
    """Allow at most one gigabyte in addition to the current memory."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.parametrize("name", READERS)
def test_what_was_found_before_is_read_or_refused(name):
    reader = READERS[name]
    assert check(reader, reader.seeds()[0])  # lets libraries load and reserve memory first
    for path in sorted((CORPUS / name).glob("*")):
        with little_memory():
            check(reader, path.read_bytes())


@pytest.mark.parametrize("name", READERS)
def test_changed_files_are_read_or_refused(name):
    reader, rng = READERS[name], Random(0)
    seeds = reader.seeds()
    for seed in seeds:
        assert check(reader, seed)
    inputs = [reader.mutate(rng.choice(seeds), rng) for _ in range(INPUTS.get(name, 400))]
    with little_memory():
        accepted = sum(check(reader, data) for data in inputs)
    # If all or none were accepted, the changes would test nothing.
    assert 0 < accepted < len(inputs)


# ---- The fuzzer itself


def reading(error):
    def read(data, folder):
        raise error

    return replace(READERS["csv"], read=read)


@pytest.mark.parametrize("error", [KeyError("text"), ValueError("<BytesIO>: plain"), RecursionError(), OSError()])
def test_errors_of_others_are_failures(error):
    with pytest.raises(type(error)):
        check(reading(error), b"")


def test_an_error_that_does_not_name_the_file_is_a_failure():
    assert not check(reading(ParseError("<BytesIO>", 1, 1, "bad")), b"")
    with pytest.raises(AssertionError, match="does not name the file"):
        check(reading(ParseError("elsewhere", 1, 1, "bad")), b"")


def test_an_error_that_hides_a_lack_of_memory_is_a_failure():
    hiding = ParseError("<BytesIO>", 1, 1, "bad")
    hiding.__cause__ = MemoryError()
    with pytest.raises(ParseError):
        check(reading(hiding), b"")


def test_folders_come_back_from_their_input():
    files = {"a.json": b"{}\n", "block-1-0.safetensors": b"\x00\n\xff", "empty": b""}
    assert bundles.unpack(bundles.pack(files)) == files
    assert bundles.unpack(b"../x 1\na") == bundles.unpack(b". 1\na") == {}


def test_a_changed_model_is_sealed_again():
    [content] = READERS["model"].seeds()[:1]
    metadata, tensors = mutation.read_tensors(content)
    assert mutation.read_tensors(mutation.write_tensors(metadata, tensors))[1] == tensors
    intercept = tensors["intercept"]
    changed = tensors | {"intercept": replace(intercept, data=bytes(len(intercept.data)))}
    assert check(READERS["model"], mutation.write_tensors(metadata, changed))
    assert not check(READERS["model"], content.replace(intercept.data, bytes(len(intercept.data))))


def test_anything_can_be_changed_further():
    odd = mutation.Tensor("F32", 0.5, b"1234")
    for content in (
        b"",
        mutation.write_tensors({}, {}),
        mutation.write_tensors({}, {"x": odd}),
        b"\x02" + bytes(7) + b"[]",
    ):
        for seed in range(50):
            assert isinstance(mutation.mutate_tensors(content, Random(seed)), bytes)
