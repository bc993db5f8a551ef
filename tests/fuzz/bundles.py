"""A folder as one input: every file after a line with its name and size."""

import re
from pathlib import Path

NAME, SIZE = re.compile(r"[\w-][\w.-]{0,99}", re.ASCII), re.compile(r"[0-9]{1,9}")


def pack(files: dict[str, bytes]) -> bytes:
    """The input for these files."""
    return b"".join(f"{name} {len(content)}\n".encode() + content for name, content in sorted(files.items()))


def pack_folder(folder: Path) -> bytes:
    """The input for a folder; hidden files, such as locks, are left out."""
    return pack({path.name: path.read_bytes() for path in folder.iterdir() if NAME.fullmatch(path.name)})


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of an input, as far as it can be read; names are plain ones."""
    files: dict[str, bytes] = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, _, size = line.decode("ascii", "replace").rpartition(" ")
        if not NAME.fullmatch(name) or not SIZE.fullmatch(size):
            break
        files[name], data = data[: int(size)], data[int(size) :]
    return files


def write(files: dict[str, bytes], folder: Path) -> None:
    """Make a folder of them."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
