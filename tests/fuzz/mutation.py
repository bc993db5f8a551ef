"""Mutations of inputs: blind changes of bytes, and changes of the content of a format.

Blind changes hardly get past the first check of a file with sizes, checksums or compression. So its content is taken
out, changed, and sealed again with valid sizes and checksums.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import zstandard

Mutate = Callable[[bytes, Random], bytes]

NUMBERS = [
    0,
    1,
    -1,
    2,
    7,
    255,
    2**16,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**53,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63),
]
VALUES = [
    None,
    True,
    False,
    "",
    "x",
    "../x",
    "\0",
    "é",
    "\ud800",
    0.5,
    -0.5,
    1e308,
    float("nan"),
    float("inf"),
    [],
    {},
    [[]],
]
WIDTHS = {"BOOL": 1, "I8": 1, "U8": 1, "F16": 2, "I16": 2, "U16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4}
NO_SUM = "0" * 8  # stands for the checksum of a header while it is computed
WIDTHS |= {"I64": 8, "U64": 8, "F64": 8}


# ---- Bytes


def mutate_bytes(data: bytes, rng: Random, words: Sequence[bytes] = ()) -> bytes:
    """Change a few bits, bytes, numbers or words of the format, or drop, repeat or move pieces."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        begin = rng.randrange(len(changed) + 1)
        end = min(len(changed), begin + rng.choice((1, 1, 2, 4, 8, rng.randrange(1, 65))))
        match rng.randrange(8):
            case 0 if begin < len(changed):
                changed[begin] ^= 1 << rng.randrange(8)
            case 1:
                changed[begin:end] = rng.randbytes(end - begin)
            case 2:
                del changed[begin:end]
            case 3:
                changed[begin:begin] = changed[begin:end] * rng.choice((1, 2, 50))
            case 4:
                number = rng.choice(NUMBERS) & (1 << 64) - 1
                width = rng.choice((1, 2, 4, 8))
                changed[begin : begin + width] = number.to_bytes(8, "little")[:width]
            case 5:
                changed[begin : begin + rng.choice((0, 1))] = str(rng.choice(NUMBERS)).encode()
            case 6 if words:
                changed[begin : rng.choice((begin, end))] = rng.choice(words)
            case _:
                changed[begin:end] = rng.choice((b"\xff", b"\0", b"\n", b" ", b"\x80", b'"')) * (end - begin)
    return bytes(changed)


# ---- JSON


def mutate_json(value: Any, rng: Random) -> Any:
    """Change one place in a tree of lists and dictionaries."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.85:
        places = list(value) if isinstance(value, dict) else list(range(len(value)))
        place = rng.choice(places)
        changed = value.copy()
        match rng.randrange(12):
            case 0:
                del changed[place]
            case 1 if isinstance(changed, dict):
                changed[rng.choice([*places, "x", ""])] = changed.pop(place)
            case 1:
                changed.append(changed[place])
            case 2:
                changed[place] = value[rng.choice(places)]
            case _:
                changed[place] = mutate_json(value[place], rng)
        return changed
    if type(value) is int and rng.random() < 0.6:
        return rng.choice((value + 1, value - 1, -value, value * 2, *NUMBERS))
    if isinstance(value, str) and rng.random() < 0.5:
        return mutate_bytes(value.encode("utf-8", "replace"), rng).decode("utf-8", "replace")
    return rng.choice(VALUES + NUMBERS)


def mutate_json_text(text: bytes, rng: Random) -> bytes:
    """Change JSON so that it usually remains JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return mutate_bytes(text, rng)
    if rng.random() < 0.02:
        return b"[" * 100_000
    return json.dumps(mutate_json(value, rng)).encode()


# ---- Tensors


@dataclass(frozen=True)
class Tensor:
    """An array of a safetensors file; the bytes need not fit the shape."""

    dtype: str
    shape: list[Any]
    data: bytes


def read_tensors(content: bytes) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return metadata and arrays; a malformed file raises ValueError, KeyError or TypeError."""
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise ValueError(f"the metadata are {metadata}")
    tensors = {}
    for name, about in header.items():
        first, last = about["data_offsets"]
        if not isinstance(about["dtype"], str) or not isinstance(about["shape"], list):
            raise ValueError(f"{name} is {about}")
        tensors[name] = Tensor(about["dtype"], about["shape"], content[begin + first : begin + last])
    return metadata, tensors


def write_tensors(metadata: dict[str, Any], tensors: dict[str, Tensor]) -> bytes:
    """Return the file without gaps, and with valid checksums of arrays and header if the metadata have any."""
    header: dict[str, Any] = {"__metadata__": metadata}
    if {"checksums", "header_checksum"} <= metadata.keys():
        sums = {name: f"{zlib.crc32(tensor.data):08x}" for name, tensor in tensors.items()}
        header["__metadata__"] = metadata | {"checksums": json.dumps(sums, sort_keys=True), "header_checksum": NO_SUM}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode("utf-8", "replace")
    text += b" " * (-len(text) % 8)
    text = len(text).to_bytes(8, "little") + text
    mark = b'"header_checksum":"'
    text = text.replace(mark + NO_SUM.encode(), mark + f"{zlib.crc32(text):08x}".encode(), 1)
    return text + b"".join(tensor.data for tensor in tensors.values())


def mutate_tensors(content: bytes, rng: Random) -> bytes:
    """Change one thing in a safetensors file: metadata, the name, type, shape, length or content of an array."""
    try:
        metadata, tensors = read_tensors(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return mutate_bytes(content, rng)
    choice = rng.random()
    if choice < 0.05 or not (metadata or tensors):
        return mutate_bytes(content, rng)
    if (choice < 0.4 and metadata) or not tensors:
        return write_tensors(_mutate_metadata(metadata, rng), tensors)
    name = rng.choice(list(tensors))
    match rng.randrange(10):
        case 0:
            del tensors[name]
        case 1:
            tensors[rng.choice([*tensors, "x"])] = tensors.pop(name)
        case 2:
            other = rng.choice(list(tensors))
            tensors[name], tensors[other] = tensors[other], tensors[name]
        case _:
            tensors[name] = _mutate_tensor(name, tensors[name], rng)
    return write_tensors(metadata, tensors)


def _mutate_metadata(metadata: dict[str, str], rng: Random) -> dict[str, str]:
    changed = dict(metadata)
    name = rng.choice(list(metadata))
    match rng.randrange(8):
        case 0:
            del changed[name]
        case 1:
            changed[name] = changed[rng.choice(list(metadata))]
        case _:
            changed[name] = mutate_json_text(str(changed[name]).encode(), rng).decode("utf-8", "replace")
    return changed


def _mutate_tensor(name: str, tensor: Tensor, rng: Random) -> Tensor:
    codec = name.rpartition(".")[2]
    if codec in UNPACK and rng.random() < 0.8:
        try:
            data = PACK[codec](mutate_bytes(UNPACK[codec](tensor.data), rng))
        except Exception:  # already damaged; each library has its own exceptions
            data = mutate_bytes(tensor.data, rng)
        return replace(tensor, data=data, shape=[len(data)])
    width = WIDTHS.get(tensor.dtype, 1)
    count = len(tensor.data) // width
    match rng.randrange(8):
        case 0:  # another type for the same bytes
            dtype = rng.choice(list(WIDTHS))
            return Tensor(dtype, [len(tensor.data) // WIDTHS[dtype]], tensor.data)
        case 1:  # fewer or more numbers
            length = rng.choice((0, 1, max(count - 1, 0), count + 1, 2 * count)) * width
            return replace(tensor, data=(tensor.data + b"\0" * length)[:length], shape=[length // width])
        case 2:
            return replace(tensor, shape=rng.choice(([1, *tensor.shape], [*tensor.shape, 1], tensor.shape[::-1], [])))
        case 3:
            return replace(tensor, shape=mutate_json(tensor.shape, rng))
        case 4 if tensor.data:
            data = (mutate_bytes(tensor.data, rng) + b"\0" * len(tensor.data))[: len(tensor.data)]
            return replace(tensor, data=data)
        case _ if count:  # one number, or several consecutive ones
            data = bytearray(tensor.data)
            place = rng.randrange(count) * width
            number = rng.choice(NUMBERS) if rng.random() < 0.7 else data[place] + rng.choice((-1, 1))
            piece = (number & (1 << 64) - 1).to_bytes(8, "little")[:width]
            times = rng.choice((1, 1, 1, count))
            data[place : place + width * times] = piece * times
            return replace(tensor, data=bytes(data[: len(tensor.data)]))
    return replace(tensor, data=rng.randbytes(8), shape=[8 // width])


def _unzstd(packed: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=1 << 20)


UNPACK: dict[str, Callable[[bytes], bytes]] = {"zstd": _unzstd, "zlib": zlib.decompress}
PACK: dict[str, Callable[[bytes], bytes]] = {"zstd": zstandard.ZstdCompressor().compress, "zlib": zlib.compress}
