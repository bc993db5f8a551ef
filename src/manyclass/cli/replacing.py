"""What is already at the place that a command writes to, and whether it may be replaced."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..model.file import ModelFileError, read_certificate
from . import output
from .output import InputError


@dataclass(frozen=True)
class Former:
    """What is already at a place; its `certificate` is None if it is not a model."""

    path: Path
    written: datetime
    certificate: dict[str, Any] | None

    @property
    def converged(self) -> bool:
        """Whether it is a model whose fit reached its target."""
        return self.certificate is not None and self.certificate.get("exit_reason") == "converged"

    def __str__(self) -> str:
        gap = self.certificate.get("gap") if self.certificate is not None else None
        about = f", relative gap {output.number(float(gap))}" if isinstance(gap, int | float) else ""
        return f"{self.path}, written {self.written:%Y-%m-%d %H:%M}{about}"

    def report(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"written": self.written.isoformat(timespec="seconds"), "certificate": self.certificate}


def former(path: Path) -> Former | None:
    """Return what is at a place; None for nothing, an empty file or a device, which hold nothing to lose."""
    if not (path.is_file() or path.is_dir()) or (path.is_file() and path.stat().st_size == 0):
        return None
    try:
        certificate = read_certificate(path)
    except ModelFileError:
        certificate = None
    return Former(path, datetime.fromtimestamp(path.stat().st_mtime), certificate)


def refuse_inputs(path: Path, inputs: Iterable[Path | str], option: str) -> None:
    """Reject a destination that the command also reads."""
    for read in map(Path, inputs):
        if path.exists() and read.is_file() and path.samefile(read):
            raise InputError(f"{path} is also read by this command; choose another file with {option}")


def check_model_file(path: Path, *, force: bool | None, option: str = "--output") -> Former | None:
    """Return what a model file at `path` would replace; reject anything but a model, unless `force`.

    `force` is None for commands without that option, and `option` is the one that names the place.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; choose a file with {option}")
    found = former(path)
    if found is not None and found.certificate is None and not force:
        raise InputError(
            f"{path} exists and is not a model; choose another file with {option}"
            f"{', or replace it with --force' if force is not None else ''}"
        )
    return found
