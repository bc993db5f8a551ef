"""Readers of rows: svmlight and XMC text, CSV, JSON lines and Parquet."""

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from mutation import mutate_bytes, mutate_json_text
from reader import Reader

from manyclass.data import ParseError, load_svmlight, load_xmc
from manyclass.data.svmlight import new_parser
from manyclass.data.table_rows import TableRows

PACK: list[Callable[[bytes], bytes]] = [
    gzip.compress,
    bz2.compress,
    lzma.compress,
    zstandard.ZstdCompressor().compress,
]
UNPACK: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
    b"\x28\xb5\x2f\xfd": lambda packed: zstandard.ZstdDecompressor().decompress(packed, max_output_size=1 << 20),
}

OPEN: dict[bytes, Callable[[io.BytesIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda file: zstandard.ZstdDecompressor().stream_reader(file),
}
# A few bytes can stand for many lines, and reading these takes its time.
LONGEST_TEXT = 1 << 19


def _is_long(data: bytes) -> bool:
    """Whether a compressed text has more than `LONGEST_TEXT` bytes."""
    for magic, unpack in OPEN.items():
        if data.startswith(magic):
            try:
                return len(unpack(io.BytesIO(data)).read(LONGEST_TEXT + 1)) > LONGEST_TEXT
            except Exception:  # each of the four libraries has its own exceptions
                return False
    return False


def _mutate_text(data: bytes, rng: Random, change: Callable[[bytes, Random], bytes]) -> bytes:
    """Change a text or sometimes compress it; compressed inputs are mostly changed inside."""
    for magic, unpack in UNPACK.items():
        if data.startswith(magic):
            if rng.random() < 0.2:
                return mutate_bytes(data, rng)
            try:
                return rng.choice(PACK)(change(unpack(data), rng))
            except Exception:  # each of the four libraries has its own exceptions
                return mutate_bytes(data, rng)
    return rng.choice(PACK)(data) if rng.random() < 0.02 else change(data, rng)


# ---- svmlight and XMC

ROWS = b"1 1:0.5 7:2e-3 # note\n\n2,3 2:1 5:-.25\n 1:1\n+4 3:1e5\n"
WORDS = [
    b"0:1",
    b"1e400:",
    b"1e-400",
    b"nan",
    b"inf",
    b"-0",
    b"0x1p-1074",
    b":",
    b",",
    b"#",
    b"\r\n",
    b"qid:1",
    b"1,2,3 ",
    b"\t",
]
WORDS += [
    b"9" * 400,
    b"0." + b"0" * 400 + b"1",
    b"4294967297:1",
    b"9223372036854775808",
    b"99999999:1",
    b"+",
    b"-",
    b".",
]


def _agree_piece_by_piece(data: bytes, whole: tuple[int, ...] | None, **options: Any) -> None:
    """Check that text in small pieces gives the same rows, or the same error at the same place."""
    parser = new_parser(np.float64, **options)
    failure = None
    for begin in range(0, len(data), 7):
        failure = failure or parser.feed(np.frombuffer(data[begin : begin + 7], np.uint8))
    failure = failure or parser.finish()
    found = failure[:2] if failure else (parser.n_rows, parser.n_features, parser.nnz)
    if tuple(found) != whole:
        raise AssertionError(f"read at once {whole}, in pieces {found}")


def _read_rows(load: Callable[..., Any], options: dict[str, Any], data: bytes, folder: Path) -> None:
    plain = len(data) < 2000 and not data.startswith(tuple(UNPACK))
    try:
        X, Y = load(io.BytesIO(data), dtype=np.float64)
    except ParseError as error:
        if plain:
            _agree_piece_by_piece(data, (error.line, error.column), **options)
        raise
    assert X.has_canonical_format and X.shape[0] == Y.shape[0]
    X.check_format(full_check=True)
    if plain:
        _agree_piece_by_piece(data, (*X.shape, X.nnz), **options)
    load(io.BytesIO(data))  # as float32, which rejects more


def _change_rows(data: bytes, rng: Random) -> bytes:
    return mutate_bytes(data, rng, WORDS)


SVMLIGHT = Reader(
    "svmlight",
    lambda: [ROWS, b"3 1:1 2:2\n-1.5 5:1\n", b"0:1\n1,2 0:1\n", gzip.compress(ROWS, mtime=0)],
    lambda data, rng: _mutate_text(data, rng, _change_rows),
    partial(_read_rows, load_svmlight, {}),
)
XMC = Reader(
    "xmc",
    lambda: [b"3 6 4\n0,3 0:1 5:.5\n\n1 2:3e1\n", b"1 1 1\n0 0:1", b"2 3 2 # note\n1 0:1 2:1\n 1:1\n"],
    lambda data, rng: _mutate_text(data, rng, _change_rows),
    partial(_read_rows, load_xmc, {"multilabel": True, "zero_based": True, "xmc": True}),
)

# ---- Tables


def _read_table(suffix: str, data: bytes, folder: Path) -> None:
    if _is_long(data):
        return
    path = folder / f"table.{suffix}"
    path.write_bytes(data)
    for unlabelled in ("skip", "error"):
        for part in TableRows([path], hash_bits=8, unlabelled=unlabelled).parts():
            assert len(part.labels) == len(part.indptr) - 1


CSV_WORDS = [
    b'"',
    b'""',
    b",",
    b"\r",
    b"\r\n",
    b"\n",
    b'"\n"',
    b"text",
    b"label",
    b"\xef\xbb\xbf",
    b"\0",
    b"x" * 200_000,
]
CSV = Reader(
    "csv",
    lambda: [
        b'label,text\na,one two\n"b","two\n""three"""\n',
        b"\xef\xbb\xbftext,id,label\r\nfour,1,b\r\nsix,2,1\r\n",
    ],
    lambda data, rng: _mutate_text(data, rng, partial(mutate_bytes, words=CSV_WORDS)),
    partial(_read_table, "csv"),
)

JSON_WORDS = [
    b"[" * 3000,
    b'{"a":' * 3000,
    b"\\ud800",
    b"\\u0000",
    b"NaN",
    b"1e400",
    b"9" * 5000,
    b"null",
    b'"text":',
    b'"label":',
]


def _change_json_lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    if rng.random() < 0.3:
        return mutate_bytes(data, rng, JSON_WORDS)
    place = rng.randrange(len(lines))
    lines[place] = mutate_json_text(lines[place], rng)
    return b"\n".join(lines)


JSONL = Reader(
    "jsonl",
    lambda: [
        b'{"text": "one two", "label": "a"}\n\n{"label": "b", "text": "\\ud83d\\ude00", "more": [1, {}]}\n',
        b'{"text": "", "label": 1}\n{"text": "x", "label": 2.5}\n{"text": "y", "label": true}\n',
    ],
    lambda data, rng: _mutate_text(data, rng, _change_json_lines),
    partial(_read_table, "jsonl"),
)

# ---- Parquet

TYPES = [pa.string(), pa.large_string(), pa.binary(), pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()]
TYPES += [pa.bool_(), pa.date32(), pa.timestamp("ns"), pa.duration("s"), pa.decimal128(20, 3), pa.list_(pa.string())]
TYPES += [pa.struct([("a", pa.string())]), pa.dictionary(pa.int32(), pa.string()), pa.time64("us"), pa.null()]
CELLS: list[Any] = [
    "one",
    "two words",
    "",
    "é",
    None,
    1,
    -1,
    2**62,
    0.5,
    float("nan"),
    float("inf"),
    True,
    b"\xff",
    ["a"],
]
CELLS += [{"a": "b"}, "\0"]


def _parquet(columns: dict[str, pa.Array], **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **options)
    return out.getvalue()


def _strings(cells: list[bytes]) -> pa.Array:
    """Return an array of strings that need not be valid UTF-8."""
    offsets = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(cells), pa.py_buffer(offsets), pa.py_buffer(b"".join(cells)))


def _column(rng: Random, count: int) -> pa.Array:
    if rng.random() < 0.3:
        return _strings([rng.choice((b"one", b"", b"\xff\xfe", b"\xed\xa0\x80", b"a\0b")) for _ in range(count)])
    kind = rng.choice(TYPES)
    cells = []
    for cell in rng.choices(CELLS, k=count):
        try:
            pa.array([cell], kind)
            cells.append(cell)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            cells.append(None)
    return pa.array(cells, kind)


def _mutate_parquet(data: bytes, rng: Random) -> bytes:
    """Change bytes or write another table, since changing the schema in place only breaks the file."""
    if rng.random() < 0.6:
        return mutate_bytes(data, rng)
    count = rng.choice((0, 1, 3, 20))
    names = (
        rng.sample(["text", "label", "id", "text "], k=rng.choice((2, 2, 3)))
        if rng.random() < 0.2
        else ["text", "label"]
    )
    options: dict[str, Any] = {"compression": rng.choice(("none", "snappy", "gzip", "zstd", "brotli"))}
    options |= {"row_group_size": rng.choice((None, 2)), "use_dictionary": rng.random() < 0.5}
    options |= {"data_page_version": rng.choice(("1.0", "2.0")), "store_schema": rng.random() < 0.5}
    try:
        return _parquet({name: _column(rng, count) for name in names}, **options)
    except (pa.ArrowException, UnicodeError):  # a type that Parquet does not support
        return mutate_bytes(data, rng)


PARQUET = Reader(
    "parquet",
    lambda: [
        _parquet({"text": ["one", "two"], "label": ["a", "b"]}, compression="none", use_dictionary=False),
        _parquet({"id": [1, 2], "label": [1, 2], "text": ["one", "two"]}, row_group_size=1, compression="zstd"),
    ],
    _mutate_parquet,
    partial(_read_table, "parquet"),
)
