"""Bytes in and out: compressed or plain, from a path, a file object or standard input; writing is atomic."""

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
    """A compressed stream that is damaged or ends too early."""


def zstandard_package() -> Any:
    """The package that is needed for zstd, or an error that says how to get it."""
    try:
        import zstandard
    except ImportError as error:
        raise ImportError('zstd needs one more package: pip install "manyclass[zstd]"') from error
    return zstandard


def _decompressor(codec: str) -> Callable[[], Any]:
    if codec == "gzip":
        return lambda: zlib.decompressobj(wbits=31)
    if codec == "bzip2":
        return bz2.BZ2Decompressor
    if codec == "xz":
        return lzma.LZMADecompressor
    return zstandard_package().ZstdDecompressor().decompressobj


class _Prefixed(io.RawIOBase):
    """A stream of which the first bytes were already read: gives them out again, then the rest."""

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
    """Any number of compressed members one after the other, read as one stream.

    Unlike the readers of the standard library and of zstandard, all four formats report an early end alike.
    """

    def __init__(self, source: BinaryIO, codec: str):
        self._source = source
        self._codec = codec
        self._new = _decompressor(codec)
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
        if not self._packed and (self._between_members or self._wants_input()):
            self._packed = self._source.read(COMPRESSED_READ)
            if not self._packed and not self._between_members:
                raise StreamError(f"the {self._codec} stream ends too early; the file is cut short, get it again")
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
        except Exception as error:  # each of the four libraries has exceptions of its own
            raise StreamError(f"the {self._codec} stream is damaged ({error}); get the file again") from error
        return True

    def _wants_input(self) -> bool:
        return getattr(self._member, "needs_input", True)

    def _decompress(self) -> bytes:
        """Decompress at most a chunk, so that a few bytes that stand for very many do not fill the memory."""
        packed, self._packed = self._packed, b""
        if self._codec == "zstd":  # has no limit to set, but four bytes never stand for more than 128 kB
            self._packed = packed[ZSTD_AT_ONCE:]
            return self._member.decompress(packed[:ZSTD_AT_ONCE])
        data = self._member.decompress(packed, CHUNK)
        self._packed = getattr(self._member, "unconsumed_tail", b"")
        return data


def stream_name(source: PathOrFile) -> str:
    """Say how errors call `source`: its path, its name, or what kind of stream it is."""
    if isinstance(source, (str, os.PathLike)):
        return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


@contextlib.contextmanager
def open_input(source: PathOrFile) -> Iterator[BinaryIO]:
    """Open a path, a binary file object or `-` (standard input) and decompress what is compressed.

    The compression is told from the first bytes of the stream, never from its name. A file object that was
    passed in stays open.

    Parameters
    ----------
    source : str, path-like or binary file object
        What to read.

    Yields
    ------
    binary file object
        The decompressed bytes; reading raises `StreamError` if the compressed stream is damaged or cut short.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(source, (str, os.PathLike)):
            if os.fspath(source) == "-":
                raw: BinaryIO = sys.stdin.buffer
            else:
                raw = stack.enter_context(open(source, "rb", buffering=0))
        else:
            raw = source
        start = b""
        while len(start) < 6:
            more = raw.read(6 - len(start))
            if isinstance(more, str):
                raise TypeError(f"{stream_name(source)} gives text; open it in binary mode ('rb')")
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
    """Open a file for writing that appears under its name only when everything was written.

    The bytes go to a temporary file in the same folder, which is renamed when they have reached the disk, or
    removed if anything fails. A file that is replaced passes on its permissions and, where the system allows it, its
    owner. A symbolic link is replaced, not followed; `open_destination` is for files that users name.

    Parameters
    ----------
    path : str or path-like
        The file to write; an existing one is replaced.
    durable : bool
        Whether to wait until the bytes and the name are on the disk.

    Yields
    ------
    binary file object

    Raises
    ------
    OSError
        With the name of the file. What was there before is there still, unless all that failed is to make sure that
        the new name is on the disk.
    """
    path = Path(path)
    try:
        replaced = os.lstat(path)
    except FileNotFoundError:
        replaced = None
    # The kernel applies the umask to a new file; one that replaces another is private until it has the old mode.
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
    """A file whose errors name it; a temporary one gives the name that it is to have."""

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
    """Wait until the names in a folder are on the disk, where the system can tell."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # a folder that may be written to, but not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems have no such thing
            raise
    finally:
        os.close(handle)


def _new_beside(path: Path, mode: int) -> tuple[int, Path]:
    """A new file in the folder of `path`, with a dot before the name and letters after it.

    It is locked: one that is not was left by a process that was killed; see `remove_leftovers`.
    """
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with _naming(path), contextlib.suppress(FileExistsError):
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with contextlib.suppress(OSError):  # without locks leftovers stay
                fcntl.flock(handle, fcntl.LOCK_EX)
                if not temporary.exists():  # taken for a leftover before it was locked
                    os.close(handle)
                    continue
            return handle, temporary


def remove_leftovers(folder: Path, names: str) -> None:
    """Remove what processes that were killed have left of files with such names, a glob pattern."""
    for path in folder.glob(f".{names}.{'[0-9a-f]' * 8}"):
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(handle)


def _inherit(handle: int, replaced: os.stat_result) -> None:
    """Give a file the owner and the permissions of the one that it replaces."""
    mode = stat.S_IMODE(replaced.st_mode)
    try:
        os.fchown(handle, replaced.st_uid, replaced.st_gid)
    except PermissionError:
        if os.fstat(handle).st_gid != replaced.st_gid:
            # Another group now: it may do what everybody may.
            mode = mode & ~0o070 | (mode & 0o007) << 3
    os.fchmod(handle, mode)


@contextlib.contextmanager
def open_destination(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that a user has named, as `open_atomic` does.

    A symbolic link stays, and its target is replaced. A pipe or a device is written to directly. What a process that
    was killed has left of the same file is removed.

    Parameters
    ----------
    path : str or path-like

    Yields
    ------
    binary file object
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
    """Open a file that a user has named for writing, compressed if its suffix says so; see `open_destination`.

    Parameters
    ----------
    path : str or path-like
        The file to write; `.gz`, `.bz2`, `.xz` and `.zst` compress.

    Yields
    ------
    binary file object
        Where to write the uncompressed bytes.
    """
    codec = SUFFIXES.get(Path(path).suffix.lower())
    zstandard = zstandard_package() if codec == "zstd" else None
    with open_destination(path) as raw, contextlib.ExitStack() as stack:
        out: Any = raw
        if codec == "gzip":
            # No time stamp: the same data gives the same bytes.
            out = stack.enter_context(gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0))
        elif codec == "bzip2":
            out = stack.enter_context(bz2.BZ2File(raw, "wb"))
        elif codec == "xz":
            out = stack.enter_context(lzma.LZMAFile(raw, "wb"))
        elif zstandard is not None:
            out = stack.enter_context(zstandard.ZstdCompressor().stream_writer(raw, closefd=False))
        yield out
