"""A folder as a single input: each file follows a line with its name and size."""

import re
from pathlib import Path

NAME, SIZE = re.compile(r"[\w-][\w.-]{0,99}", re.ASCII), re.compile(r"[0-9]{1,9}")


def pack(files: dict[str, bytes]) -> bytes:
    """Return the input for these files."""
    return b"".join(f"{name} {len(content)}\n".encode() + content for name, content in sorted(files.items()))


def pack_folder(folder: Path) -> bytes:
    """Return the input for a folder, without hidden files such as locks."""
    return pack({path.name: path.read_bytes() for path in folder.iterdir() if NAME.fullmatch(path.name)})


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the files of an input, as far as it is well-formed; names are without folders."""
    files: dict[str, bytes] = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, _, size = line.decode("ascii", "replace").rpartition(" ")
        if not NAME.fullmatch(name) or not SIZE.fullmatch(size):
            break
        files[name], data = data[: int(size)], data[int(size) :]
    return files


def write(files: dict[str, bytes], folder: Path) -> None:
    """Write the files to a new folder."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
