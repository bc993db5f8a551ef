"""Virtual environments of the other libraries, created from PyPI on first use.

They cannot share one: liblinear-official and liblinear-multicore have the same import name, and libpecos needs older
versions of NumPy and SciPy.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class UnavailableError(Exception):
    """A library or data set is not available here. The message says why and what to do."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment: the arguments of each call of pip, and the Python versions that have wheels."""

    name: str
    steps: tuple[tuple[str, ...], ...]
    pythons: tuple[tuple[int, int], ...] = ()

    @property
    def folder(self) -> Path:
        return ROOT / f".venv-{self.name}"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def ensure(self) -> Path:
        """Return the environment's interpreter, creating the environment if needed.

        Raises
        ------
        UnavailableError
            If no suitable Python is found, or pip fails.
        """
        recipe = "\n".join(" ".join(step) for step in self.steps)
        done = self.folder / ".done"
        if done.exists() and done.read_text() == recipe:
            return self.python
        _call([self._base_python(), "-m", "venv", "--clear", str(self.folder)], self.name)
        for step in self.steps:
            pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _call([*pip, *step], self.name)
        done.write_text(recipe)
        return self.python

    def _base_python(self) -> str:
        if not self.pythons or sys.version_info[:2] in self.pythons:
            return sys.executable
        for major, minor in self.pythons:
            found = shutil.which(f"python{major}.{minor}")
            # A version manager may have a launcher for a version that is not enabled.
            if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
                return found
        wanted = " or ".join(f"{major}.{minor}" for major, minor in self.pythons)
        raise UnavailableError(f"{self.name} has wheels for Python {wanted} only, and none of these is on the path")


# XLinearModel needs neither torch nor transformers, which libpecos lists for its other models. Naming its
# dependencies here, instead of resolving them, saves several gigabytes.
ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        Environment("liblinear", (("liblinear-official>=2.47", "numpy", "scipy"),)),
        Environment("multicore", (("liblinear-multicore>=2.47", "numpy", "scipy"),)),
        Environment("napkinxc", (("napkinxc==0.7.2", "numpy", "scipy"),)),
        Environment(
            "pecos",
            (("numpy<2", "scipy<1.14", "scikit-learn"), ("--no-deps", "libpecos==1.2.8")),
            pythons=((3, 11), (3, 12), (3, 10)),
        ),
    )
}


def _call(command: list[str], name: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise UnavailableError(f"the environment of {name} could not be created: {' '.join(last)}")
