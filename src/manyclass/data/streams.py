"""Open plain and compressed files, file objects and standard input; write files atomically."""

import bz2
import contextlib
import errno
import fcntl
import glob
import gzip
import io
import lzma
import os
import secrets
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from .bad_file import BadFileError

PathOrFile = str | os.PathLike[str] | BinaryIO

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
COMPRESSED_READ = 1 << 14
ZSTD_AT_ONCE = 1 << 10
CHUNK = 1 << 20


class StreamError(BadFileError):
    """A compressed stream is damaged or truncated."""


def zstandard_package() -> Any:
    """Return the package `zstandard`; raise ImportError with installation advice if it is missing."""
    try:
        import zstandard
    except ImportError as error:
        raise ImportError('zstd needs an extra package: pip install "manyclass[zstd]"') from error
    return zstandard


DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
    "zstd": lambda: zstandard_package().ZstdDecompressor().decompressobj(),
}
COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {
    # No time stamp, so that equal input gives equal files.
    "gzip": lambda out: gzip.GzipFile(fileobj=out, mode="wb", filename="", mtime=0),
    "bzip2": partial(bz2.BZ2File, mode="wb"),
    "xz": partial(lzma.LZMAFile, mode="wb"),
    "zstd": lambda out: zstandard_package().ZstdCompressor().stream_writer(out, closefd=False),
}


class _Prefixed(io.RawIOBase):
    """A stream whose first bytes were already read; returns those again, then the rest."""

    def __init__(self, prefix: bytes, rest: BinaryIO):
        self._prefix = prefix
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._prefix[: len(buffer)] or self._rest.read(len(buffer))
        self._prefix = self._prefix[len(data) :]
        buffer[: len(data)] = data
        return len(data)


class _Decompressed(io.RawIOBase):
    """Decompress concatenated members as one stream, with the same error for truncated input in all four formats."""

    def __init__(self, source: BinaryIO, codec: str):
        self._source = source
        self._codec = codec
        self._new = DECOMPRESSORS[codec]
        self._member: Any = self._new()
        self._packed = b""
        self._ready = memoryview(b"")
        self._between_members = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if not self._refill():
                return 0
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _refill(self) -> bool:
        if self._member.eof and not self._between_members:
            self._packed = self._member.unused_data + self._packed
            self._between_members = True
        if not self._packed and (self._between_members or getattr(self._member, "needs_input", True)):
            self._packed = self._source.read(COMPRESSED_READ)
            if not self._packed and not self._between_members:
                raise StreamError(f"the {self._codec} stream ends too early; the file is truncated, get it again")
            if not self._packed:
                return False
        if self._between_members:
            # gzip and xz files may be padded with zeros.
            self._packed = self._packed.lstrip(b"\0") if self._codec in ("gzip", "xz") else self._packed
            if not self._packed:
                return True
            self._member = self._new()
            self._between_members = False
        try:
            self._ready = memoryview(self._decompress())
        except Exception as error:  # each of the four libraries has its own exceptions
            raise StreamError(f"the {self._codec} stream is damaged ({error}); get the file again") from error
        return True

    def _decompress(self) -> bytes:
        """Decompress at most a chunk, so that a decompression bomb does not fill the memory."""
        packed, self._packed = self._packed, b""
        if self._codec == "zstd":  # has no output limit, but four bytes never expand to more than 128 kB
            self._packed = packed[ZSTD_AT_ONCE:]
            return self._member.decompress(packed[:ZSTD_AT_ONCE])
        data = self._member.decompress(packed, CHUNK)
        self._packed = getattr(self._member, "unconsumed_tail", b"")
        return data


def stream_name(source: PathOrFile) -> str:
    """Return the name of `source` for error messages: its path, its name or its type."""
    if isinstance(source, (str, os.PathLike)):
        return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


@contextlib.contextmanager
def open_input(source: PathOrFile) -> Iterator[BinaryIO]:
    """Open a path, a binary file object or `-` (standard input), and decompress it if necessary.

    The compression is detected from the first bytes, never from the name. A file object passed in stays open. Reading
    raises `StreamError` if the compressed stream is damaged or truncated.
    """
    with contextlib.ExitStack() as stack:
        if not isinstance(source, (str, os.PathLike)):
            raw = source
        elif os.fspath(source) == "-":
            raw = sys.stdin.buffer
        else:
            raw = cast(BinaryIO, stack.enter_context(open(source, "rb", buffering=0)))
        start = b""
        while len(start) < 6:
            more = raw.read(6 - len(start))
            if isinstance(more, str):
                raise TypeError(f"{stream_name(source)} returns text; open it in binary mode ('rb')")
            if not more:
                break
            start += more
        stream = cast(BinaryIO, _Prefixed(start, raw))
        for magic, codec in MAGIC.items():
            if start.startswith(magic):
                stream = cast(BinaryIO, _Decompressed(stream, codec))
        yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, stream), CHUNK))


@contextlib.contextmanager
def open_atomic(path: str | os.PathLike[str], *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only once it is complete.

    The bytes go to a temporary file in the same folder, which is renamed once they are on disk, or deleted if
    anything fails; an existing file then stays as it is, unless only the final sync of the folder failed. If a file
    is replaced, the new one keeps its permissions and, where the system allows it, its owner. A symbolic link is
    replaced, not followed; use `open_destination` for paths given by users. If `durable`, wait until the contents
    and the name are on disk.
    """
    path = Path(path)
    try:
        replaced = os.lstat(path)
    except FileNotFoundError:
        replaced = None
    # The kernel applies the umask to a new file. A replacement stays private until it gets the old file's mode.
    handle, temporary = _new_beside(path, 0o666 if replaced is None else 0o600)
    try:
        with io.BufferedWriter(_NamedFile(handle, path)) as raw:
            yield cast(BinaryIO, raw)
            raw.flush()
            with _naming(path):
                if replaced is not None and stat.S_ISREG(replaced.st_mode):
                    _inherit(handle, replaced)
                if durable:
                    os.fsync(handle)
        with _naming(path):
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        with _naming(path):
            sync_folder(path.parent)


class _NamedFile(io.FileIO):
    """A file whose errors name `path`, the final name if the file is temporary."""

    def __init__(self, file: int | Path, path: Path):
        super().__init__(file, "wb")
        self._path = path

    def write(self, data: Any, /) -> int:
        with _naming(self._path):
            return super().write(data)

    def close(self) -> None:
        with _naming(self._path):
            super().close()


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) if error.errno else error from error


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, if the file system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # the folder is writable but not readable
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot sync folders
            raise
    finally:
        os.close(handle)


def _new_beside(path: Path, mode: int) -> tuple[int, Path]:
    """Create a hidden temporary file next to `path`, locked so that `remove_leftovers` knows it to be in use."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with _naming(path), contextlib.suppress(FileExistsError):
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with contextlib.suppress(OSError):  # without locks, leftovers are never removed
                fcntl.flock(handle, fcntl.LOCK_EX)
                if not temporary.exists():  # removed as a leftover before it was locked
                    os.close(handle)
                    continue
            return handle, temporary


def remove_leftovers(folder: Path, names: str) -> None:
    """Remove the temporary files that killed processes left for files matching the glob pattern `names`."""
    for path in folder.glob(f".{names}.{'[0-9a-f]' * 8}"):
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(handle)


def _inherit(handle: int, replaced: os.stat_result) -> None:
    """Give a file the owner and permissions of the one it replaces."""
    mode = stat.S_IMODE(replaced.st_mode)
    try:
        os.fchown(handle, replaced.st_uid, replaced.st_gid)
    except PermissionError:
        if os.fstat(handle).st_gid != replaced.st_gid:
            # The group has changed: grant it only what everybody may do.
            mode = mode & ~0o070 | (mode & 0o007) << 3
    os.fchmod(handle, mode)


@contextlib.contextmanager
def open_destination(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a path given by a user for writing, as `open_atomic` does.

    A symbolic link stays, and its target is replaced. A pipe or device is written to directly. Temporary files that
    killed processes left for the same path are removed.
    """
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        kind = stat.S_IFREG
    if stat.S_ISREG(kind):
        target = Path(os.path.realpath(path))
        remove_leftovers(target.parent, glob.escape(target.name))
        with open_atomic(target) as out:
            yield out
    else:
        with io.BufferedWriter(_NamedFile(Path(path), Path(path))) as device:
            yield cast(BinaryIO, device)


@contextlib.contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a path as `open_destination` does, with compression if it ends in `.gz`, `.bz2`, `.xz` or `.zst`."""
    codec = SUFFIXES.get(Path(path).suffix.lower())
    if codec == "zstd":
        zstandard_package()  # fail before anything is written
    with open_destination(path) as raw, COMPRESSORS[codec](raw) if codec else contextlib.nullcontext(raw) as out:
        yield out
