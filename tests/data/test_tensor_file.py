"""Files of arrays: what was written comes back, whole or in parts, and what cannot be right is refused."""

import json
import os

import numpy as np
import pytest

from manyclass.data.tensor_file import ALIGNMENT, Pieces, TensorFile, TensorFileError, tensor_file_content

ARRAYS = {
    "wide": np.arange(7.0),
    "wide.first": np.arange(3),
    "narrow": np.arange(9, dtype=np.uint8).reshape(3, 3),
    "truth": np.array([True, False]),
    "empty": np.zeros((0, 4), np.float32),
}


def write(path, arrays=ARRAYS, *, aligned=(), checked=True):
    path.write_bytes(b"".join(tensor_file_content(arrays, {"about": "é"}, aligned, checked=checked)))
    return path


def write_raw(path, entries, content):
    """Write what another program might: any header in front of any bytes."""
    header = json.dumps(entries).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content)
    return path


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("checked", [True, False])
def test_arrays_come_back(tmp_path, mmap, checked):
    file = TensorFile(write(tmp_path / "f", checked=checked), mmap=mmap, verified=True)
    assert set(file) == set(ARRAYS) and len(file) == 5 and "wide" in file and "none" not in file
    assert file.metadata["about"] == "é" and file.has_checksums == checked
    for name, array in ARRAYS.items():
        assert file[name].dtype == array.dtype and file[name].flags.aligned
        np.testing.assert_array_equal(file[name], array, strict=True)


@pytest.mark.parametrize("name", ["wide", "wide.first", "truth"])
def test_an_array_can_begin_at_a_cache_line(tmp_path, name):
    file = TensorFile(write(tmp_path / "f", aligned=(name, "other")))
    assert file[name].ctypes.data % ALIGNMENT == 0
    assert all(file[other].flags.aligned and not file[other].flags.writeable for other in ARRAYS)


def test_pieces_are_written_as_one_array(tmp_path):
    pieces = [np.arange(3), np.zeros(0), np.arange(8)[::2]]
    whole = np.concatenate(pieces).astype(np.float32)
    one = write(tmp_path / "one", {"v": whole, "w": ARRAYS["truth"]})
    several = write(tmp_path / "several", {"v": Pieces(np.float32, pieces), "w": ARRAYS["truth"]})
    assert one.read_bytes() == several.read_bytes()


def test_parts_of_a_vector(tmp_path):
    file = TensorFile(write(tmp_path / "f"))
    for begin in range(8):
        for end in range(begin, 8):
            np.testing.assert_array_equal(file.part("wide", begin, end), ARRAYS["wide"][begin:end], strict=True)
    for begin, end in ((-1, 2), (3, 2), (5, 8)):
        with pytest.raises(TensorFileError, match=f"wide has no entries {begin} to {end}"):
            file.part("wide", begin, end)
    os.truncate(tmp_path / "f", file._begin + 40)
    with pytest.raises(OSError, match="truncated"):
        file.part("wide", 0, 7)


def test_a_change_is_found_where_it_is_looked_for(tmp_path):
    path = write(tmp_path / "f")
    file = TensorFile(path, mmap=False)
    content = bytearray(path.read_bytes())
    content[file._begin + file._entries["wide.first"].data_offsets[0]] ^= 1
    path.write_bytes(content)
    TensorFile(path).verify(without="wide")
    for check in (
        lambda: TensorFile(path, verified=True),
        TensorFile(path).verify,
        lambda: TensorFile(path).verify("n"),
    ):
        with pytest.raises(TensorFileError, match=r"wide\.first has changed"):
            check()


def test_arrays_of_other_writers_are_aligned_when_read(tmp_path):
    values = np.array([1.5, -2.0])
    entries = {"byte": entry("U8", [1], 0, 1), "values": entry("F64", [2], 1, 17)}
    file = TensorFile(write_raw(tmp_path / "f", entries, b"\x07" + values.tobytes()))
    assert file["byte"].tolist() == [7] and not file.has_checksums and file.metadata == {}
    assert file["values"].flags.aligned and file["values"].tolist() == [1.5, -2.0]


def test_types_without_a_counterpart_matter_only_if_they_are_read(tmp_path):
    entries = {"a": entry("F8_E4M3", [3], 0, 3), "b": entry("U8", [1], 3, 4)}
    file = TensorFile(write_raw(tmp_path / "f", entries, bytes(4)))
    assert file["b"].tolist() == [0]
    with pytest.raises(TensorFileError, match="a has the unknown type F8_E4M3"):
        file["a"]


@pytest.mark.parametrize(
    ("entries", "size", "reason"),
    [
        ({"a": entry("U8", [2], 0, 2)}, 3, "need 2 bytes, but the file has 3"),
        ({"a": entry("U8", [2], 0, 2)}, 1, "need 2 bytes, but the file has 1"),
        ({"a": entry("U8", [2], 1, 3)}, 3, "should begin at 0"),
        ({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, 3, "b is at 1 to 3"),
        ({"a": entry("U8", [2], 0, 2), "b": entry("U8", [1], 3, 4)}, 4, "b is at 3 to 4"),
        ({"a": entry("U8", [2], 0, 2), "b": entry("X", [1], 2, 1)}, 1, "b is at 2 to 1"),
        ({"a": entry("F32", [2], 0, 4)}, 4, "does not have 4 bytes"),
        ({"a": entry("U8", [1] * 9, 0, 1)}, 1, "shape"),
        ({"a": entry("U8", [1 << 40, 1 << 40, 0], 0, 0)}, 0, "shape"),
        ({"a": entry("U8", [2], 0, 2) | {"data_offsets": [0, 2, 2]}}, 2, "data_offsets is"),
        ({"__metadata__": {"checksums": "{}"}}, 0, "header has changed"),
        ({"__metadata__": {"header_checksum": "00000000"}}, 0, "header has changed"),
    ],
)
def test_layouts_that_cannot_be_right_are_refused(tmp_path, entries, size, reason):
    with pytest.raises(TensorFileError, match=reason):
        TensorFile(write_raw(tmp_path / "f", entries, bytes(size)))


def test_what_is_barely_a_file_of_arrays(tmp_path):
    file = TensorFile(write_raw(tmp_path / "f", {"a": entry("U8", [1] * 8, 0, 1)}, b"\x05"))
    assert file["a"].shape == (1,) * 8
    assert len(TensorFile(write_raw(tmp_path / "f", {}, b""))) == 0
    for content in (b"", b"1234567", (3).to_bytes(8, "little") + b"{}", (0).to_bytes(8, "little")):
        (tmp_path / "f").write_bytes(content)
        for mmap in (True, False):
            with pytest.raises(TensorFileError, match="not a file of arrays"):
                TensorFile(tmp_path / "f", mmap=mmap)


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "f")
    with pytest.raises(TensorFileError, match="a pipe or a device"):
        TensorFile(tmp_path / "f")
